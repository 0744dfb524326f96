// Write-back: dirty bytes, their way to the disks, and the threads that wait while too many bytes are dirty.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/core.h"
#include "engine/read/loader.h"
#include "engine/write/publisher.h"
#include "engine/write/stage.h"
#include "engine/write/write_choice.h"

namespace mdfs::engine {

// Any thread. Two threads of write-back write full groups as soon as they make a good batch. Appended bytes that are
// about to be synced go first. Other cache blocks follow when more bytes are dirty than the limit allows.
// Cache blocks of a batch are locked, staged from snapshots, and published in one transaction, in strips or whole. A
// cache block that changes meanwhile stays dirty. After an error the cache blocks are dirty as before, and the error
// stays with the object; but what lost bytes under some extents keep from being stored, keeps back these alone. The
// size that a transaction publishes reaches the end of all that it publishes. The tree therefore holds nothing at or
// beyond its size.
class WriteBack {
 public:
  // Stored bytes are damaged, or on a disk that is not there: no other try will find them.
  static bool is_lost(const Error& error) { return error.code == Errc::kCorrupt || error.code == Errc::kMissingDisk; }

  WriteBack(Core& core, Loader& loader);
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;
  ~WriteBack();

  // The change of a cache block by a write. The caller of the next three methods holds the cache block's mutex.
  struct Change {
    std::uint32_t blocks = 0;  // files
    ChangedBytes changed;      // images
    std::uint64_t bytes = 0;
    store::Reservation reservation;
  };
  void note_change(OpenObject& object, const CacheBlockPtr& block, Change change);
  // The bytes are on the disks, or no longer wanted. Releases the cache block's reservation.
  void note_clean(OpenObject& object, CacheBlock& block);
  // For a write that makes a small file outgrow the tree, before and after it: the bytes in the tree must be written as
  // well, and `reservation` holds space for them.
  static bool outgrows_tree(OpenObject& object, std::uint64_t end);
  Status note_outgrown(OpenObject& object, store::Reservation reservation);
  // Takes the cache block's part out of the object's reservation.
  store::Reservation take_reservation(OpenObject& object, CacheBlock& block);

  // Returns when the dirty bytes are within the limit. Error: they cannot be written.
  Status wait_for_room(const Stop& stop);
  // The same, with a share for `bytes` that may become dirty before the share ends. kCancelled: `stop` returned true.
  Result<ByteBudget::Share> admit(std::size_t bytes, const Stop& stop);
  // Called after note_clean() of some cache blocks.
  void wake_waiters();

  static constexpr std::int64_t kWhenever = INT64_MAX;
  // Whole groups with a block that has been dirty since then; or all groups.
  Status write_back(OpenObject& object, std::int64_t since_ns = kWhenever);
  Status write_back_all(std::int64_t at_least_age_ns);
  // Writes dirty cache blocks of lower indices back, so that their bytes are published before later ones; the size is
  // not published. The caller reports an error. Nothing is lost, and the next write-back tries again.
  Status write_back_below(OpenObject& object, std::uint64_t index);
  // Called before a sync of the whole object. Programs that append and sync in turns should wait for few bytes.
  static void note_sync(OpenObject& object);
  // The object has grown without a write. Its size is published with dirty bytes, or at its next write-back.
  void note_size(OpenObject& object);
  // Forgets the object if nothing of it must be written back.
  void forget_if_clean(OpenObject& object);

 private:
  static constexpr unsigned kThreads = 2;
  static constexpr std::size_t kMaxBatchBlocks = 1024;
  static constexpr std::int64_t kIdleCheckMs = 200;

  struct Snapshot {  // of a locked cache block, beside its Staged
    std::uint64_t changes = 0;
    ChangedBytes changed;
    store::SpaceAmount reserved;
    std::uint64_t end = 0;  // the written bytes of the block lie before this offset of the canonical file
  };
  struct Locked {  // cache blocks, each with its snapshot
    std::vector<Staged> extents;
    std::vector<Snapshot> snapshots;
    std::uint64_t end = 0;  // the bytes of the snapshots lie before this offset
  };
  struct StripJob {  // the same bytes of some extents of one page
    StagedStrip staged;
    std::vector<std::size_t> extents;  // that were locked, in the order of their places
    std::uint16_t disk = 0, copy_disk = 0;
    std::uint32_t blocks = 0;
    std::uint64_t order = 0;
    store::Run run;                 // no blocks: no place was found
    store::Run copy;                // no blocks: there is none
    std::vector<std::byte*> parts;  // to be written, one after another
    BufferRef bytes;                // of parts that are not written from their cache blocks
  };
  struct Batch {
    Locked whole;
    Locked in_parts;  // those that go to strips
    std::vector<StripJob> strips;
    store::Reservation reservation;
    bool inline_bytes = false;  // cache block 0 goes into the tree
    bool postponed = false;     // not written after all; to be tried again
    std::uint64_t size = 0;     // of the object before the first cache block was locked
  };

  void run();
  // Returns when the present bytes of the blocks are published.
  Status write_blocks(OpenObject& object, std::vector<CacheBlockPtr> blocks);
  std::shared_ptr<OpenObject> choose(bool may_be_pieces, WhichBlocks& which);
  static std::vector<CacheBlockPtr> dirty_before(OpenObject& object, std::int64_t since_ns);
  // Dirty cache blocks that are not locked, in the order of their groups, up to a batch.
  std::vector<CacheBlockPtr> collect(OpenObject& object, WhichBlocks which);
  // Whole steps that were appended to unlocked cache blocks, where all cache blocks of a page in a row of the grid have
  // such steps. Up to a batch.
  std::vector<CacheBlockPtr> collect_pieces(OpenObject& object);
  // Writes the cache blocks back that can be locked; the others stay dirty. Writes in parts where the space does not
  // suffice to publish all together.
  Status write_batch(OpenObject& object, std::vector<CacheBlockPtr> blocks);
  enum class Way : std::uint8_t { kStripsWhereWorth, kWhole };
  Status write_at_once(OpenObject& object, std::vector<CacheBlockPtr> blocks, Way way);
  // Moves cache blocks whose changes are worth a strip from `whole` to `in_parts`.
  Status take_parts(OpenObject& object, std::vector<CacheBlockPtr>& whole, std::vector<CacheBlockPtr>& in_parts);
  void lock_all(OpenObject& object, const std::vector<CacheBlockPtr>& whole, const std::vector<CacheBlockPtr>& in_parts,
                Batch& batch);
  bool lock_changes(OpenObject& object, const CacheBlockPtr& block, Batch& batch);
  // Writes the strips. Cache blocks that get no strip leave the batch, dirty as before.
  Status write_strips(OpenObject& object, Batch& batch, std::vector<CacheBlockPtr>& not_taken);
  Result<std::vector<StripJob>> plan_strips(OpenObject& object, const Locked& locked);
  Status place_strips(OpenObject& object, std::vector<StripJob>& jobs, store::Reservation& reservation);
  Status place_strip_copies(OpenObject& object, std::vector<StripJob>& jobs, store::Reservation& reservation);
  Status store_strips(OpenObject& object, const Locked& locked, std::vector<StripJob>& jobs);
  void abandon_strips(Batch& batch);
  // The size to publish with the batch. All bytes that the batch publishes lie before it. If possible, no dirty bytes
  // lie before it either: after a crash the file is shorter rather than full of zeros. The caller holds state_mutex.
  static std::uint64_t size_to_publish(const OpenObject& object, const Batch& batch);
  // An estimate of the bytes that the write-back of the cache block writes. The caller holds its mutex.
  static std::uint64_t bytes_to_write(const OpenObject& object, const CacheBlock& block);
  Status load_rest(OpenObject& object, const std::vector<CacheBlockPtr>& blocks);
  // For a small file that has outgrown the tree: its first block must be written with the others.
  Status leave_inline(OpenObject& object, std::vector<CacheBlockPtr>& blocks);
  bool lock_whole(OpenObject& object, const CacheBlockPtr& block, Batch& batch);
  Status publish_batch(OpenObject& object, Batch& batch);
  Status publish_inline(OpenObject& object, Batch& batch);
  void finish(OpenObject& object, Batch& batch, bool written);
  void finish(OpenObject& object, Locked& locked, store::Reservation& reservation, bool written, bool in_strips);
  store::Reservation reserve_again(store::Reservation& rest, const Snapshot& snapshot);
  Status publish_size(OpenObject& object, std::uint64_t at_least);
  std::vector<std::shared_ptr<OpenObject>> dirty_objects();

  Core& core_;
  Loader& loader_;
  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable work_;
  std::condition_variable room_;
  std::map<OpenObject*, std::shared_ptr<OpenObject>> dirty_;
  std::atomic<bool> kicked_{false};  // set and cleared under the mutex
  bool stuck_ = false;               // over the limit, and nothing can be written
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mdfs::engine
