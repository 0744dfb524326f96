// The disks of a volume: their state, and how they join, change and are removed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "alloc/run.h"
#include "base/result.h"
#include "base/uuid.h"
#include "device/disk.h"
#include "device/urgency.h"
#include "format/key.h"

namespace mdfs::store {

using format::Key;

// Free space in the filesystem below a disk, beside the nodes of the commit: for data that are written meanwhile.
inline constexpr std::uint64_t kCommitRoomBytes = 4u << 20;

// kFailed: smaller than the volume needs. kNone: no disk has this index. kDraining: healthy, and being drained.
// kDeleted: a file without a name, whose contents can be read until it is closed. kOut: present, but it failed, and
// commits continue without it; it is only read.
enum class DiskState : std::uint8_t { kHealthy, kMissing, kStale, kFailed, kNone, kDraining, kDeleted, kOut };

struct DiskInfo {
  std::string name;  // of the device or file, empty if missing
  Uuid uuid;
  DiskState state = DiskState::kHealthy;
  std::uint64_t blocks = 0;
  std::uint64_t device_bytes = 0;  // of the device or file; the smallest size seen of one that was truncated
  std::uint64_t free_blocks = 0;
  std::uint16_t weight = 1;            // 0: tree nodes alone
  std::uint64_t data_blocks = 0;       // outside of the metadata region
  std::uint64_t data_free_blocks = 0;  // of these: free now
  std::uint64_t zone_blocks = 0;
  std::uint64_t fallback_runs = 0;  // on other disks because this one was full, since the store was opened
  // Marked as out, whether it is present or not; the newest commit in which it took part, and when it was marked.
  bool is_out = false;
  std::uint64_t out_generation = 0;
  std::int64_t out_ns = 0;

  // Its data cannot be read.
  bool is_lost() const { return state == DiskState::kMissing || state == DiskState::kFailed; }
  // The disk can be read and written, whether it gets new blocks or not.
  bool is_there() const { return state == DiskState::kHealthy || state == DiskState::kDraining; }
};

// The position of a walk over the tree nodes: level by level, from the leaves up.
struct NodePosition {
  std::uint16_t level = 0;
  Key next = format::kMinKey;
};

// The possible sizes of a disk: whole label areas, both ends included.
struct SizeRange {
  std::uint64_t least_blocks = 0;
  std::uint64_t most_blocks = 0;    // limited by the device and by room_blocks
  std::uint64_t room_blocks = 0;    // limit of the space pages
  std::uint64_t device_blocks = 0;  // of the device or file
};

// A disk that is to become a member, open for writing; its contents are lost.
struct JoiningDisk {
  std::unique_ptr<device::Disk> disk;
  std::uint16_t weight = 1;  // 0: tree nodes alone
};

// All methods may be called from any thread.
class Members {
 public:
  virtual ~Members() = default;
  virtual unsigned disk_count() const = 0;
  virtual DiskInfo disk_info(unsigned index) const = 0;
  // Looks at all devices and files. kIo names the first that was truncated or deleted; disk_info() then tells of all.
  virtual Status examine_disks() { return {}; }
  // Free bytes of the filesystem below a disk that is a file with holes; UINT64_MAX: no such limit. No commit begins
  // with less than kCommitRoomBytes.
  virtual std::uint64_t room_below(unsigned) { return UINT64_MAX; }
  bool is_whole() const;             // every member is present
  std::uint64_t lost_disks() const;  // missing and failed ones, a bit each
  std::uint64_t gone_disks() const;  // members that are not there, a bit each
  unsigned data_disks() const;       // members that take data
  // For data blocks only. A missing disk answers every request with kMissingDisk.
  virtual device::Disk& disk(unsigned index) = 0;
  // While true, the disks get their requests in the order of schedules (device/request_schedule.h), by the urgency of
  // the threads that submit them (device/urgency.h). The busy time is counted by the index of the disk.
  virtual void keep_schedules(bool) {}
  // A trial has found this time for a byte of reads of the disk, requests counted as device::kRequestBytes each.
  virtual void note_trial(unsigned /*disk*/, double /*ns_per_byte*/) {}
  // Requests for blocks of this run that wait in a schedule get the urgency, if that is earlier.
  virtual void hurry(const alloc::Run& /*run*/, const device::Urgency&) {}
  // Requests and errors of the disk since the mount; null if they are not counted.
  virtual device::DiskCounters* counters(unsigned) { return nullptr; }
  // Bytes from this disk did not match their checksum, and the tree still names their blocks.
  void note_checksum_error(unsigned disk);

  // ---- changes of members. One such call works at a time. Each change is one commit, safe against a power cut at any
  // write. kReadOnly: the store cannot be written. kInvalidArgument: no such disk, or a disk in the wrong state.
  // kNotSupported: a store whose members are fixed.
  // Formats the disks and makes them members. Returns their indexes, in order; unused indexes are filled first. An
  // error before the commit leaves the volume unchanged, and the disks may be given again. An error closes the disks.
  virtual Result<std::vector<unsigned>> add_disks(std::vector<JoiningDisk> disks);
  virtual Status set_weight(unsigned index, std::uint16_t weight);
  // Stops giving the disk new blocks, or gives it new blocks again. Also for a disk that is absent. kNoSpace: the other
  // disks have too little space for its contents; `missing_blocks`, unless null, is how much they lack.
  virtual Status set_draining(unsigned index, bool draining, std::uint64_t* missing_blocks);
  // Keeps room free: data that are stored twice, each on two disks, can be stored twice again without any so many of
  // the disks, those included that are lost and rebuilt already. Ordinary allocations leave it alone. Until the store
  // is closed.
  virtual void set_spare_disks(unsigned) {}
  // The pieces that these lost disks had, a bit each, have been made anew on others: the room for them is free for all.
  // Until then ordinary allocations leave it alone.
  virtual void note_rebuilt(std::uint64_t /*disks*/) {}
  // ---- another size of a disk. The device or file has a larger size before the call, and may get a smaller size after
  // it.
  // Asks the device for its size.
  virtual Result<SizeRange> size_range(unsigned index);
  // Puts no new blocks behind the end of a disk of so many blocks; the present size lifts the limit. kNoSpace: the
  // space elsewhere does not suffice for the blocks there; `missing_blocks`, unless null, is how much is lacking.
  virtual Status set_disk_end(unsigned index, std::uint64_t blocks, std::uint64_t* missing_blocks);
  // Blocks in use behind that end, with blocks pending free; 0 for an absent disk.
  virtual std::uint64_t used_behind_end(unsigned index) const;
  // Sets the size of the disk, a smaller one after set_disk_end(). kNotEmpty: blocks behind the end are in use.
  // kInvalidArgument names the possible sizes. After another error the disk has the old size, or it has the new one and
  // the next mount moves the labels.
  virtual Status resize_disk(unsigned index, std::uint64_t blocks);

  // Blocks in use on the disk, by data and nodes, with blocks pending free; 0 for an absent disk.
  virtual std::uint64_t used_blocks(unsigned index) const;
  // Moves copies of tree nodes off a disk that is being drained, or from behind its end, some at a time, and commits.
  // True when none is left. `at` is the position for the next call.
  virtual Result<bool> move_nodes_off(unsigned index, NodePosition& at);
  // Spreads nodes that were written when the volume had fewer disks: they have fewer copies than new ones, or two on
  // one disk. Writes some of them anew, and commits; true when none is left. kNoSpace: the rest waits until a disk is
  // added. A store looks for such nodes once after it was opened, and whenever disks have been added.
  virtual Result<bool> spread_nodes();
  // False once spread_nodes() has looked at all nodes.
  virtual bool wants_spread() const;
  // Removes a drained disk from the members, wipes its labels and closes it. kNotEmpty: the disk still holds blocks.
  // The store cannot know that of an absent disk; the caller has checked.
  virtual Status remove_disk(unsigned index);
};

}  // namespace mdfs::store
