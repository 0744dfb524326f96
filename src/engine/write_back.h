// Write-back: what is dirty, how it gets to the disks, and who waits when there is too much of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/core.h"
#include "engine/link.h"
#include "engine/loader.h"
#include "engine/stage.h"

namespace mdfs::engine {

// Any thread. Two threads of its own write full groups back as soon as they make a good batch, and other units when
// there is more dirty than the limit allows.
//
// Units of a batch are claimed, staged from snapshots, and linked in one transaction; a unit changed meanwhile stays
// dirty. After an error the units are dirty as before and the error stays with the content.
class WriteBack {
 public:
  WriteBack(Core& core, Loader& loader);
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;
  ~WriteBack();

  // What a change of a unit adds. The unit's mutex is held in these three.
  struct Change {
    std::uint32_t blocks = 0;  // files
    ChangedBytes changed;      // images
    std::uint64_t bytes = 0;
    store::Reservation promise;
  };
  void note_change(Content& content, const UnitPtr& unit, Change change);
  // The bytes are on the disks or not wanted any more; gives the unit's promise back.
  void note_clean(Content& content, Unit& unit);
  // Before a write that lets a small file outgrow the tree, and after it: the bytes in the tree have to be written as
  // well, and are promised room with `promise`.
  static bool outgrows_tree(Content& content, std::uint64_t end);
  Status note_outgrown(Content& content, store::Reservation promise);
  // Takes the unit's promise out of the content's reservation.
  store::Reservation take_promise(Content& content, Unit& unit);

  // Returns when the dirty bytes are within the limit; an error if they cannot be written.
  Status wait_for_room();
  // The same, with a share for `bytes` that may become dirty before the share ends.
  Result<ByteBudget::Share> admit(std::size_t bytes);
  // After note_clean() of some units: wakes who waits for room.
  void wake_waiters();

  Status write_back(Content& content);
  Status write_back_all(std::int64_t at_least_age_ns);
  // The size that the tree is told when `units` are linked and the content has `size`: no dirty bytes lie before it, so
  // that a crash shows a shorter file rather than zeros. state_mutex is held.
  static std::uint64_t size_to_link(const Content& content, std::uint64_t size, const std::vector<Staged>& units);

 private:
  static constexpr unsigned kThreads = 2;
  static constexpr std::size_t kMaxBatchUnits = 1024;
  static constexpr std::int64_t kIdleCheckMs = 200;

  enum class Which : std::uint8_t { kRipe, kFull, kAll };  // of groups that are full; that are full; dirty
  struct Snapshot {                                        // of a claimed unit, beside its Staged
    std::uint64_t changes = 0;
    ChangedBytes changed;
    store::Room promised;
  };
  struct Batch {
    std::vector<Staged> units;
    std::vector<Snapshot> snapshots;
    store::Reservation reservation;
    bool inline_bytes = false;        // unit 0 goes into the tree
    bool postponed = false;           // not written after all, to be tried again
    std::uint64_t size = 0;           // of the content when the batch began
    std::vector<StagedStrip> strips;  // that the units go to, instead of whole extents
  };
  struct StripJob;  // write_strips.cc

  void run();
  std::shared_ptr<Content> choose(Which& which);
  // Dirty units that nobody has claimed, in the order of their groups, up to a batch.
  std::vector<UnitPtr> collect(Content& content, Which which);
  // Writes those back that can be claimed; the others stay as they are. Where there is no room to link them together,
  // in parts.
  Status write_batch(Content& content, std::vector<UnitPtr> units);
  Status write_at_once(Content& content, std::vector<UnitPtr> units);
  // Takes those out of `units` whose changes are worth a strip, and writes them.
  Status write_strips(Content& content, std::vector<UnitPtr>& units);
  enum class Claimed : std::uint8_t { kTaken, kNot, kNotInParts };
  Claimed claim_changes(Content& content, const UnitPtr& unit, Batch& batch);
  Result<std::vector<StripJob>> plan_strips(Content& content, const Batch& batch);
  Status place_strips(Content& content, std::vector<StripJob>& jobs, store::Reservation& reservation);
  Status store_strips(Content& content, const Batch& batch, std::vector<StripJob>& jobs);
  // What writing the unit back takes about; its mutex is held.
  static std::uint64_t bytes_to_write(const Content& content, const Unit& unit);
  Status load_rest(Content& content, const std::vector<UnitPtr>& units);
  // A small file that has outgrown the tree: its first block is to be written with the others.
  Status leave_inline(Content& content, std::vector<UnitPtr>& units);
  bool claim(Content& content, const UnitPtr& unit, Batch& batch);
  Status link_batch(Content& content, Batch& batch);
  Status link_inline(Content& content, Batch& batch);
  void finish(Content& content, Batch& batch, bool written);
  store::Reservation promise_again(store::Reservation& rest, const Snapshot& snapshot);
  Status link_size(Content& content);
  std::vector<std::shared_ptr<Content>> dirty_contents();

  Core& core_;
  Loader& loader_;
  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable work_;
  std::condition_variable room_;
  std::map<Content*, std::shared_ptr<Content>> dirty_;
  bool kicked_ = false;
  bool stuck_ = false;  // over the limit, and nothing can be written
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mdfs::engine
