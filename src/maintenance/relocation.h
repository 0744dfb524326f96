// Relocation on request, the common part of draining, balancing and defragmentation. Each of them names candidates.
// This part walks over objects, moves candidates within the budget, commits and counts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "engine/map/layout.h"
#include "engine/relocate/mover.h"
#include "layout/image_layout.h"
#include "maintenance/operation.h"

namespace mdfs::maintenance {

enum class MoveReason : std::uint8_t {
  kInStrips,    // bytes are in strips: the extents are consolidated
  kDraining,    // on a disk that is drained, or behind its new end
  kWrongDisk,   // on another disk than the placement names
  kFragmented,  // windows lie in too many runs
  kInTheWay,    // in a block range that is being cleared
};

// Extents of one object to be relocated, the reason, and the target.
struct Candidate {
  Ino object = 0;
  MoveReason reason = MoveReason::kInStrips;
  engine::MoveRequest request{};  // without pace; not used for strips
  std::uint64_t bytes = 0;        // of the extents, in whole blocks
  store::Run run{};               // in the way: place of the whole piece
  store::Run range{};             // the block range that is cleared of it, or for it
  std::uint64_t tried_disks = 0;  // bits; without the first one
  engine::MoveOutcome outcome{};  // so far
};

// Some rows of the layout of an object.
struct ObjectPart {
  Ino object = 0;
  bool is_first = false, is_last = false;
  std::vector<layout::ExtentPlace> rows;  // of a file: the runs of its cells
  Status listed;                          // an error: the rest of the object cannot be listed, and is skipped
};

// Walks over all objects of the tree, ascending, some rows at a time. A volume has more objects, and an object more
// extents, than fit in memory. Objects without data have a part without rows. Parts include strips if the request says
// so.
class ObjectWalk {
 public:
  ObjectWalk(MaintainedVolume& volume, engine::LayoutOf of) : volume_(volume), of_(of) {}

  // Begins at this object.
  void begin(Ino object);
  // Begins at the object of the last part, from its first row on.
  void begin_again();
  Result<std::optional<ObjectPart>> next();
  // The object of the next rows.
  Ino position() const { return object_; }

 private:
  static constexpr std::size_t kRowsAtOnce = 1024;
  Status list(ObjectPart& part);

  MaintainedVolume& volume_;
  const engine::LayoutOf of_;
  Ino object_ = 0;
  Ino last_ = 0;  // object of the last part
  bool is_within_ = false, at_end_ = false;
  engine::LayoutCursor at_;
};

// An operation that relocates candidates. A step finds some candidates, or moves one. All state is forgotten between
// runs: what has moved is no longer a candidate, so an operation that resumes finds the rest.
class Relocation : public Operation {
 public:
  Result<bool> step(OperationRun& run) final;
  void rest() override { forget(); }

 protected:
  explicit Relocation(MaintainedVolume& volume) : volume_(volume) {}

  static constexpr std::size_t kExtentsAtOnce = 64;

  // ---- to be implemented by each operation
  // Looks further and queues candidates. Called while the queue is empty. False: all is done.
  virtual Result<bool> find(OperationRun& run) = 0;
  // The extents in the candidate's request found no space. True: try once more, with the candidate as changed here.
  virtual Result<bool> find_elsewhere(OperationRun&, Candidate&) { return false; }
  // The candidate has been tried. The error concerns the whole object: it has been deleted, or cannot be read (of
  // strips: also no space). In a dry run all of the candidate counts as moved.
  virtual Status done(OperationRun& run, Candidate candidate, const Status& status) = 0;
  // Called after each step but the last one.
  virtual void note_progress(OperationRun&) {}

  // ---- for the operations
  void forget();
  void queue(Candidate candidate) { queue_.push_back(std::move(candidate)); }
  std::deque<Candidate>& queued() { return queue_; }
  // Commits, so that blocks of moved extents become free.
  Status commit();

  MaintainedVolume& volume_;

 private:
  static constexpr std::int64_t kFindNs = 20'000'000;            // most time of a step
  static constexpr std::uint64_t kBytesPerCommit = 64ull << 20;  // so that freed blocks can be reused

  Status relocate(OperationRun& run, Candidate& candidate);
  Status consolidate(OperationRun& run, Candidate& candidate);
  Status note_written(std::uint64_t bytes);
  Status end(OperationRun& run, const Status& status);

  std::deque<Candidate> queue_;
  std::uint64_t uncommitted_bytes_ = 0;
  bool has_left_ = false;  // freed blocks are pending until commit()
};

// Notes extents that could not be read or do not match their checksum as errors of the run. The extents stay.
void note_damaged(OperationRecord& record, Ino object, const engine::MoveOutcome& moved);

}  // namespace mdfs::maintenance
