// Write-back: what is dirty, how it gets to the disks, and who waits when there is too much of it.
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

// Any thread. Two threads of its own write full groups back as soon as they make a good batch, what has been appended
// and is about to be synced before that, and other cache blocks when there is more dirty than the limit allows.
//
// Cache blocks of a batch are locked, staged from snapshots, and published in one transaction, whether they go to
// strips or are written whole; a cache block changed meanwhile stays dirty. After an error the cache blocks are dirty
// as before and the error stays with the object. The size that a transaction publishes reaches the end of all that it
// publishes: nothing in the tree lies at or beyond the size that the tree has.
class WriteBack {
 public:
  WriteBack(Core& core, Loader& loader);
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;
  ~WriteBack();

  // What a change of a cache block adds. The cache block's mutex is held in these three.
  struct Change {
    std::uint32_t blocks = 0;  // files
    ChangedBytes changed;      // images
    std::uint64_t bytes = 0;
    store::Reservation reservation;
  };
  void note_change(OpenObject& object, const CacheBlockPtr& block, Change change);
  // The bytes are on the disks or not wanted any more; gives the cache block's reservation back.
  void note_clean(OpenObject& object, CacheBlock& block);
  // Before a write that lets a small file outgrow the tree, and after it: the bytes in the tree have to be written as
  // well, and `reservation` holds space for them.
  static bool outgrows_tree(OpenObject& object, std::uint64_t end);
  Status note_outgrown(OpenObject& object, store::Reservation reservation);
  // Takes the cache block's part out of the object's reservation.
  store::Reservation take_reservation(OpenObject& object, CacheBlock& block);

  // Returns when the dirty bytes are within the limit; an error if they cannot be written.
  Status wait_for_room(const Stop& stop);
  // The same, with a share for `bytes` that may become dirty before the share ends. kCancelled: `stop` said so.
  Result<ByteBudget::Share> admit(std::size_t bytes, const Stop& stop);
  // After note_clean() of some cache blocks: wakes who waits for room.
  void wake_waiters();

  static constexpr std::int64_t kWhenever = INT64_MAX;
  // Groups in which something has been dirty since then, whole; or all.
  Status write_back(OpenObject& object, std::int64_t since_ns = kWhenever);
  Status write_back_all(std::int64_t at_least_age_ns);
  // Dirty cache blocks of lower indices than this, so that what they hold is published before what follows; the size is
  // not. An error is the caller's to report: nothing is lost, and the next write-back tries again.
  Status write_back_below(OpenObject& object, std::uint64_t index);
  // Before somebody asks for all of it to be on the disks: those who append and ask in turns are to wait for little.
  static void note_sync(OpenObject& object);
  // The object has become larger without a write: its size is published with what is dirty, or at its next write-back.
  void note_size(OpenObject& object);
  // Nothing of it has to be written back any more, if that is so.
  void forget_if_clean(OpenObject& object);

 private:
  static constexpr unsigned kThreads = 2;
  static constexpr std::size_t kMaxBatchBlocks = 1024;
  static constexpr std::int64_t kIdleCheckMs = 200;

  struct Snapshot {  // of a locked cache block, beside its Staged
    std::uint64_t changes = 0;
    ChangedBytes changed;
    store::SpaceAmount reserved;
    std::uint64_t end = 0;  // no byte of it that is written lies at or beyond this one of the canonical file
  };
  struct Locked {  // cache blocks, each with its snapshot
    std::vector<Staged> extents;
    std::vector<Snapshot> snapshots;
    std::uint64_t end = 0;  // no byte of the snapshots lies at or beyond it
  };
  struct StripJob {  // the same bytes of some extents of one page
    StagedStrip staged;
    std::vector<std::size_t> extents;  // that were locked, in the order of their places
    std::uint16_t disk = 0;
    std::uint32_t blocks = 0;
    std::uint64_t order = 0;
    store::Run run;                 // no blocks: none was found
    std::vector<std::byte*> parts;  // what is written, one behind the other
    BufferRef bytes;                // of parts that are not written from their cache blocks
  };
  struct Batch {
    Locked whole;
    Locked in_parts;  // those that go to strips
    std::vector<StripJob> strips;
    store::Reservation reservation;
    bool inline_bytes = false;  // cache block 0 goes into the tree
    bool postponed = false;     // not written after all, to be tried again
    std::uint64_t size = 0;     // of the object before the first cache block was locked
  };

  void run();
  // Returns when all that they hold by now is published.
  Status write_blocks(OpenObject& object, std::vector<CacheBlockPtr> blocks);
  std::shared_ptr<OpenObject> choose(bool may_be_pieces, WhichBlocks& which);
  static std::vector<CacheBlockPtr> dirty_before(OpenObject& object, std::int64_t since_ns);
  // Dirty cache blocks that nobody has locked, in the order of their groups, up to a batch.
  std::vector<CacheBlockPtr> collect(OpenObject& object, WhichBlocks which);
  // Whole steps that were appended to cache blocks that nobody has locked, where all cache blocks of a page in a row
  // of the grid have them, up to a batch.
  std::vector<CacheBlockPtr> collect_pieces(OpenObject& object);
  // Writes those back that can be locked; the others stay as they are. Where there is no room to publish them together,
  // in parts.
  Status write_batch(OpenObject& object, std::vector<CacheBlockPtr> blocks);
  enum class Way : std::uint8_t { kStripsWhereWorth, kWhole };
  Status write_at_once(OpenObject& object, std::vector<CacheBlockPtr> blocks, Way way);
  // Of `whole`, to `in_parts`: those whose changes are worth a strip.
  Status take_parts(OpenObject& object, std::vector<CacheBlockPtr>& whole, std::vector<CacheBlockPtr>& in_parts);
  void lock_all(OpenObject& object, const std::vector<CacheBlockPtr>& whole, const std::vector<CacheBlockPtr>& in_parts,
                Batch& batch);
  bool lock_changes(OpenObject& object, const CacheBlockPtr& block, Batch& batch);
  // Writes the strips. Cache blocks for which none is made leave the batch, dirty as before.
  Status write_strips(OpenObject& object, Batch& batch, std::vector<CacheBlockPtr>& not_taken);
  Result<std::vector<StripJob>> plan_strips(OpenObject& object, const Locked& locked);
  Status place_strips(OpenObject& object, std::vector<StripJob>& jobs, store::Reservation& reservation);
  Status store_strips(OpenObject& object, const Locked& locked, std::vector<StripJob>& jobs);
  void abandon_strips(Batch& batch);
  // Nothing lies beyond it of what the batch publishes; if that is so, no dirty bytes lie before it, so that a crash
  // shows a shorter file rather than zeros. state_mutex is held.
  static std::uint64_t size_to_publish(const OpenObject& object, const Batch& batch);
  // What writing the cache block back takes about; its mutex is held.
  static std::uint64_t bytes_to_write(const OpenObject& object, const CacheBlock& block);
  Status load_rest(OpenObject& object, const std::vector<CacheBlockPtr>& blocks);
  // A small file that has outgrown the tree: its first block is to be written with the others.
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
