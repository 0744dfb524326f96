// The store: one copy-on-write tree of small items over the disks of a volume, its transactions and commits, and the
// space that data blocks take. It knows nothing of files; the volume gives items their meaning.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "alloc/run.h"
#include "base/bytes.h"
#include "base/environment.h"
#include "base/result.h"
#include "base/uuid.h"
#include "device/disk.h"
#include "format/key.h"  // format::Key {object, kind, offset}, ordered
#include "geometry/geometry.h"

namespace mdfs::store {

using alloc::Run;
using format::Key;

struct Item {
  Key key;
  ByteVector value;
};

// What a transaction or a promise leaves alone, so that what matters more still finds room on a full volume.
// kNormal: whatever has been promised; room for the nodes that linking written data and freeing change at a time; the
// reserve of data blocks. kPromised (linking data of writes that were acknowledged, writing blocks anew that will be
// free again): promises, room for freeing, half of the reserve. kFreeing (unlink, truncate, punch): promises.
enum class Purpose : std::uint8_t { kNormal, kPromised, kFreeing };

// The changes of one transaction: seen by its own reads at once, by everybody else when transact() returns, by the
// disks with the next commit; all of them or none. Used by one thread, inside transact() only.
class Transaction {
 public:
  virtual ~Transaction() = default;
  virtual Result<std::optional<ByteVector>> get(const Key& key) = 0;
  // The items with first <= key <= last, in key order, at most `limit`.
  virtual Result<std::vector<Item>> scan(const Key& first, const Key& last, std::size_t limit) = 0;
  virtual void put(const Key& key, ConstBytes value) = 0;  // value.size() <= MDFS_MAX_ITEM; inserts or replaces
  virtual void erase(const Key& key) = 0;                  // absent is fine
  // Allocated blocks, written and completed on their disk, become part of the volume.
  virtual void link(const Run& run) = 0;
  // Blocks leave the volume; reused when no committed state that recovery may fall back to holds them.
  virtual void unlink(const Run& run) = 0;
  // A number never used before for an object of this volume.
  virtual std::uint64_t new_object() = 0;
  virtual void count_objects(std::int64_t change) = 0;  // inodes in use, for statfs
  // The generation in which these changes will be committed; a later one if the transaction has to commit what came
  // before it to find room.
  virtual std::uint64_t generation() const = 0;
};

struct AllocationRequest {
  std::uint16_t disk = 0;             // wished for
  std::uint32_t blocks = 0;           // 1..; contiguous
  std::uint64_t owner = 0;            // object: blocks of one owner on one disk are kept together in groups
  std::uint64_t near_block = 0;       // continue at this block if it is free; 0 = the owner's group, or a new one
  std::uint64_t around_block = 0;     // first of all as near as can be to this block, which is replaced; 0 = none is
  std::uint64_t expected_blocks = 0;  // that the owner will want on this disk from now on, these included; 0: not known
  bool fits = false;                  // no group: into the smallest hole that holds them all
  std::uint64_t at_block = 0;         // exactly here, also in a frozen range; 0 = anywhere
  bool may_spill = true;              // another disk if the wished one is full or missing
  geometry::AllocationPolicy policy =
      geometry::AllocationPolicy::kDefault;  // where a new group begins; default: the store's
};

// What some data take at most: blocks to hold them, and what linking them puts into the tree.
struct Room {
  std::uint64_t blocks = 0;
  std::uint64_t puts = 0;   // of items that are new or become larger
  std::uint64_t bytes = 0;  // by which they become larger, in sum

  bool empty() const { return blocks == 0 && puts == 0 && bytes == 0; }
  Room& operator+=(const Room& other);
  // What is missing beside `there`.
  Room less(const Room& there) const;
};

// What a delayed write has been promised. Blocks allocated with it come out of the promise; the rest goes back when
// it ends. Movable; returned to the store it came from, which outlives it.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : store_(std::exchange(other.store_, nullptr)), room_(std::exchange(other.room_, {})) {}
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();
  const Room& room() const { return room_; }
  std::uint64_t blocks() const { return room_.blocks; }
  // Takes over the promise of `other`, which is of the same store.
  void absorb(Reservation&& other) {
    if (store_ == nullptr) store_ = other.store_;
    room_ += std::exchange(other.room_, {});
  }
  // Parts with at most so much of the promise.
  Reservation split(const Room& wanted) {
    const Room left = room_.less(wanted);
    const Room taken = room_.less(left);
    room_ = left;
    return {store_, taken};
  }

 private:
  friend class Store;
  Reservation(class Store* store, const Room& room) : store_(store), room_(room) {}
  class Store* store_ = nullptr;
  Room room_;
};

// kNone: a hole in the table, no disk has this index. kDraining: healthy, and being drained.
enum class DiskState : std::uint8_t { kHealthy, kMissing, kStale, kFailed, kNone, kDraining };

struct DiskInfo {
  std::string name;  // of the device or file, empty if missing
  Uuid uuid;
  DiskState state = DiskState::kHealthy;
  std::uint64_t blocks = 0;
  std::uint64_t free_blocks = 0;
  std::uint16_t weight = 1;
  std::uint64_t data_blocks = 0;       // outside of what is kept for metadata
  std::uint64_t data_free_blocks = 0;  // of them: could be given out now
  std::uint64_t zone_blocks = 0;
  std::uint64_t spilled_runs =
      0;  // wished for here, stored on other disks for want of room, since the store was opened

  // What lies on it cannot be read.
  bool is_lost() const { return state == DiskState::kMissing || state == DiskState::kFailed; }
  // It can be read and written, whether new blocks are given out of it or not.
  bool is_there() const { return state == DiskState::kHealthy || state == DiskState::kDraining; }
};

// A zone of a disk: its blocks for data, none in a zone that is all metadata, and those in use after the last change.
struct ZoneUse {
  std::uint64_t blocks = 0;
  std::uint64_t used_blocks = 0;
};

// Sizes that a disk can be given: whole label areas, both included.
struct SizeRange {
  std::uint64_t least_blocks = 0;
  std::uint64_t most_blocks = 0;    // the device is no larger now, or the room is not
  std::uint64_t room_blocks = 0;    // what the space pages have room for
  std::uint64_t device_blocks = 0;  // what the device or file has
};

// A disk that is to become a member, open for writing; what it holds is lost.
struct JoiningDisk {
  std::unique_ptr<device::Disk> disk;
  std::uint16_t weight = 1;
};

struct SpaceInfo {
  std::uint64_t total_blocks = 0;      // for data, on the disks that are there
  std::uint64_t free_blocks = 0;       // of them: used neither by data nor by nodes beyond the metadata regions
  std::uint64_t available_blocks = 0;  // free, less what is reserved and promised
  std::uint64_t objects = 0;
};

// How far a disk has been told of its free blocks.
struct DiscardPosition {
  std::uint64_t next = 0;      // block
  std::uint64_t hole_end = 0;  // block: so far `next` lies in a hole that is long enough
};

// Telling a disk of its free blocks, some at a time. kRefused: it cannot be told; kNotThere: there is no healthy disk.
struct DiskTrim {
  enum class State : std::uint8_t { kMore, kDone, kRefused, kFailed, kNotThere };
  State state = State::kMore;
  DiscardPosition position;
  std::uint64_t end = UINT64_MAX;      // block: here it is done
  std::uint64_t discarded_blocks = 0;  // so far
  std::string why;                     // kFailed
};

struct StoreOptions {
  bool read_only = false;
  bool degraded = false;  // write without a majority of disks
  // Reads an older commit: of this generation, or for 0 the one before the newest. With read_only alone.
  std::optional<std::uint64_t> rollback;
  std::size_t node_cache_bytes = 16u << 20;
  std::size_t dirty_node_limit = 512;  // more dirty nodes than this start a commit
  geometry::AllocationPolicy policy =
      geometry::AllocationPolicy::kDefault;  // default: the one that the volume was made with
  bool discard = false;                      // set_discard()
};

// Blocks that have left the volume, or are about to, and that somebody still reads: as long as the hold lasts they are
// not allocated again. Where nothing else is free the store breaks the hold: what is read of its blocks from then on
// does not count. Any thread; released before the store ends.
class BlockHold {
 public:
  BlockHold() = default;
  BlockHold(const BlockHold&) = delete;
  BlockHold& operator=(const BlockHold&) = delete;
  virtual ~BlockHold() = default;
  virtual bool is_broken() const { return false; }
};

// All methods may be called from any thread. Transactions run one after another; reads run beside them.
// Nothing here calls back into the store's user while holding a lock, except transact() itself.
class Store {
 public:
  // Takes the disks found (any order; of one volume), recovers the newest valid commit and makes it present on all
  // disks (unless read_only). Errors: kForeignDisk, kNewerFormat, kFork, kNoQuorum, kCorrupt.
  static Result<std::unique_ptr<Store>> open(std::vector<std::unique_ptr<device::Disk>> disks,
                                             const StoreOptions& options, Environment& environment);
  virtual ~Store() = default;

  virtual const Uuid& volume_uuid() const = 0;
  virtual std::string volume_name() const = 0;
  virtual std::uint32_t block_size() const = 0;
  // Of what has none of its own; never kDefault.
  virtual geometry::AllocationPolicy policy() const = 0;
  virtual std::uint64_t features_incompat() const = 0;  // MDFS_INCOMPAT_*, as the volume was made
  virtual std::uint64_t generation() const = 0;         // of the last commit
  virtual bool read_only() const = 0;
  virtual std::string read_only_reason() const = 0;  // empty if not read-only
  virtual unsigned disk_count() const = 0;
  virtual DiskInfo disk_info(unsigned index) const = 0;
  bool is_whole() const;             // every member is there
  std::uint64_t lost_disks() const;  // those that are missing or have failed, a bit each
  // For data blocks only. A missing disk is one that answers every request with kMissingDisk.
  virtual device::Disk& disk(unsigned index) = 0;

  virtual Result<std::optional<ByteVector>> get(const Key& key) = 0;
  virtual Result<std::vector<Item>> scan(const Key& first, const Key& last, std::size_t limit) = 0;

  // Transactions are not nested. Runs `change`; if it succeeds and there is room, its changes take effect together,
  // else none does. What `promise` holds for the tree, which stays as it is, is there for it.
  virtual Status transact(Purpose purpose, const std::function<Status(Transaction&)>& change,
                          const Reservation* promise) = 0;
  Status transact(Purpose purpose, const std::function<Status(Transaction&)>& change) {
    return transact(purpose, change, nullptr);
  }

  // Returns when everything that transact() completed before the call is on the disks. Callers share commits. A commit
  // also brings nodes back that a full volume has put among the data, as far as they have room elsewhere again; that
  // may take some commits, after the last of which generation() stays as it is. After a failed commit the store is
  // read-only and every later commit fails.
  virtual Status commit() = 0;
  // A small commit ends with one flush, and is known for good by the checksums of what it wrote. This writes down that
  // it is good, so that it stays known even if something of that is damaged later. To be called now and then, when the
  // disks have time, and before the disks are left. An error makes the store read-only; what was committed is there.
  virtual Status finalize() { return {}; }
  // Waits until a commit is not finalized and no other has been made or begun for `idle`: true, the caller finalizes.
  // False once stop_waiting() has been called, and of a store whose commits are final at once. One thread.
  virtual bool wait_for_unfinalized(std::chrono::nanoseconds /*idle*/) { return false; }
  virtual void stop_waiting() {}
  // Something would be written by a commit: changes, or copies of nodes that were found bad when they were read.
  virtual bool dirty() const = 0;
  // A disk is absent that has the newest commit, and nothing has been committed since: the first commit makes it stale.
  // So nothing is to be written but what somebody asks for; the store itself repairs nothing.
  virtual bool holds_still() const { return false; }
  // Since open().
  virtual bool has_committed() const { return true; }

  // ---- members. One such call works at a time; each change is one commit, and safe to cut anywhere. kReadOnly: the
  // store cannot be written. kInvalidArgument: no such disk, or it is in the wrong state. kNotSupported: a store whose
  // members are fixed.
  // Formats the disks and makes them members. Their indexes, in order; holes are filled first. Errors before the
  // commit leave the volume as it was, and the disks may be given again. On an error the disks are closed.
  virtual Result<std::vector<unsigned>> add_disks(std::vector<JoiningDisk> disks);
  virtual Status set_weight(unsigned index, std::uint16_t weight);
  // From now on the disk gets no new blocks; or it gets them again. A disk that is not there can leave, too.
  // kNoSpace: the others have no room for what lies on it; `missing_blocks`, unless null, is how much they lack.
  virtual Status set_draining(unsigned index, bool draining, std::uint64_t* missing_blocks);
  // ---- another size of a disk, which the device or file must have already (larger) or may get afterwards (smaller).
  // Asks the device for its size.
  virtual Result<SizeRange> size_range(unsigned index);
  // Nothing new is put behind the end that a disk of so many blocks has; the size it has: everywhere again. kNoSpace:
  // there is no room elsewhere for what lies there; `missing_blocks`, unless null, is how much is lacking.
  virtual Status set_disk_end(unsigned index, std::uint64_t blocks, std::uint64_t* missing_blocks);
  // Blocks in use behind that end, what waits for being reused included; 0 for a disk that is not there.
  virtual std::uint64_t used_behind_end(unsigned index) const;
  // The disk has so many blocks from now on; a smaller one after set_disk_end(). kNotEmpty: something lies behind the
  // end. kInvalidArgument names the sizes that are possible. After any other error the size is the old one, or the new
  // one and the next mount moves the labels.
  virtual Status resize_disk(unsigned index, std::uint64_t blocks);

  // Blocks in use on the disk, by data and nodes; what waits for being reused included. 0 for one that is not there.
  virtual std::uint64_t used_blocks(unsigned index) const;
  // Moves copies of tree nodes off a disk that is being drained, or off what lies behind its end, some at a time, and
  // commits: true when there are none left. `level` and `next` are where to go on, at first 0 and kMinKey.
  virtual Result<bool> move_nodes_off(unsigned index, std::uint16_t& level, Key& next);
  // A disk that is being drained and holds nothing any more stops being a member; then its labels are wiped and it is
  // closed. kNotEmpty: something is still there. For a disk that is not there nobody can know: the caller has looked.
  virtual Status remove_disk(unsigned index);

  // Contiguous blocks, in nobody's sight until linked. kNoSpace if no disk has such a run (try fewer blocks). May be
  // called inside a transaction. A run never crosses a bitmap page (32768 blocks).
  virtual Result<Run> allocate(const AllocationRequest& request, Reservation* reservation) = 0;
  // Allocated, never linked: free again.
  virtual void abandon(const Run& run) = 0;
  // A range of so many blocks of a disk, chosen so that little lies in it, that new blocks keep away from until it is
  // opened again: so that it can be cleared, and filled by at_block. Not one that overlaps `keep`. kNoSpace: there is
  // none with room elsewhere on the disk for what lies in it. Forgotten with the store.
  virtual Result<Run> freeze_range(unsigned disk, std::uint32_t blocks, const std::vector<Run>& keep) = 0;
  virtual void thaw_range(const Run& range) = 0;
  // Blocks that are given to others last from now on, in use or free, since somebody may want them back by at_block.
  // False: they are not, as enough is kept like this. Until let_go(), which knows what is not kept any more. Forgotten
  // with the store.
  virtual bool keep(const Run& place) = 0;
  virtual void let_go(const Run& place) = 0;
  // Holds blocks that are linked, or are held by a hold that is not broken. A store that cannot hold any returns a hold
  // that never breaks: its caller finds by the checksums that the blocks have been written over.
  virtual std::shared_ptr<BlockHold> hold(std::vector<Run> runs);
  // Nobody's, on a disk that new blocks are given out of.
  virtual bool is_free(const Run& run) = 0;
  // Commits until all that was unlinked before the call may be allocated again.
  virtual Status commit_unlinked() = 0;
  // The owner is gone: room that was kept for it behind its blocks is anybody's.
  virtual void close_owner(std::uint64_t owner) = 0;
  // kPromised may promise blocks of the reserve as well, to write anew what gives as many back, and kFreeing all of
  // it, for what is left of something that is cut.
  virtual Result<Reservation> reserve(const Room& room, Purpose purpose) = 0;
  Result<Reservation> reserve(std::uint64_t blocks, Purpose purpose = Purpose::kNormal) {
    return reserve(Room{blocks, 0, 0}, purpose);
  }
  virtual SpaceInfo space() const = 0;
  // Zones [first, first + count) of a disk, fewer at its end; none of a disk that is not healthy. Waits for the disk
  // where zones do not end with bitmap pages.
  virtual Result<std::vector<ZoneUse>> zone_use(unsigned disk, std::uint64_t first, std::size_t count) = 0;

  // ---- discards: blocks that no commit needs, neither one of the last four nor the next one, and that nobody has
  // reserved. kReadOnly: the store cannot be written. kBusy: holds_still(). kNotSupported: a store without disks.
  // Commits until all that has been freed before the call may be discarded.
  virtual Status commit_discardable();
  // Tells each disk that is not done (one entry each, by index) of one more free run, all at once. Runs of holes of at
  // least so many blocks. Those who need the blocks meanwhile wait for the disks.
  virtual Status trim_some(std::vector<DiskTrim>& disks, std::uint64_t smallest_blocks);
  // From now on disks are told of larger runs that have been freed, by discard_freed(). A bounded number of runs is
  // remembered; what is beyond it is left for trim_some().
  virtual void set_discard(bool /*wanted*/) {}
  // Waits for such runs and tells the disks of them. False once stop_waiting() has been called. One thread.
  virtual bool discard_freed() { return false; }

  // What the disk was asked for since the mount, and what went wrong; null if nobody counts.
  virtual device::DiskCounters* counters(unsigned) { return nullptr; }
  // Bytes from this disk did not match their checksum, and the tree still insists on them.
  void note_checksum_error(unsigned disk);

  // Null: a store without disks to look at (of tests).
  virtual class Verifier* verifier() { return nullptr; }

 protected:
  static Reservation make_reservation(Store* store, const Room& room) { return {store, room}; }
  static void take_from(Reservation& reservation, std::uint64_t blocks) { reservation.room_.blocks -= blocks; }
  friend class Reservation;
  virtual void give_back(const Room& room) = 0;
};

inline Room& Room::operator+=(const Room& other) {
  blocks += other.blocks;
  puts += other.puts;
  bytes += other.bytes;
  return *this;
}

inline Room Room::less(const Room& there) const {
  return {blocks - std::min(blocks, there.blocks), puts - std::min(puts, there.puts),
          bytes - std::min(bytes, there.bytes)};
}

inline Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  if (!room_.empty()) store_->give_back(room_);
  store_ = std::exchange(other.store_, nullptr);
  room_ = std::exchange(other.room_, {});
  return *this;
}

inline Reservation::~Reservation() {
  if (!room_.empty()) store_->give_back(room_);
}

}  // namespace mdfs::store
