// Relocation on request: what draining, balancing and defragmentation share. Each of them names candidates; here is
// how candidates are found object by object, moved within the budget, committed and counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "engine/map/layout.h"
#include "engine/relocate/mover.h"
#include "layout/laid_image.h"
#include "maintenance/operation.h"

namespace mdfs::maintenance {

enum class Reason : std::uint8_t {
  kInStrips,    // bytes lie in strips: they are written into their extents
  kDraining,    // on a disk that leaves, or behind its new end
  kWrongDisk,   // on another disk than the placement says
  kFragmented,  // windows lie in too many runs
  kInTheWay,    // in a block range that is cleared for others
};

// What of one object is to be relocated, why, and where to.
struct Candidate {
  Ino object = 0;
  Reason reason = Reason::kInStrips;
  engine::MoveRequest request{};  // without pace; of strips: not used
  std::uint64_t bytes = 0;        // of the extents, in whole blocks
  store::Run run{};               // in the way: where all of it lies
  store::Run range{};             // the block range that is cleared of it, or for it
  std::uint64_t tried_disks = 0;  // bits; beside the first one
  engine::MoveOutcome outcome{};  // so far
};

// Some rows of the layout of an object.
struct ObjectPart {
  Ino object = 0;
  bool is_first = false, is_last = false;
  std::vector<layout::ExtentPlace> rows;  // of a file: the runs of its cells
  Status listed;                          // an error: the rest of the object cannot be listed, and is passed over
};

// All objects of the tree, ascending, some rows at a time: a volume has more objects, and an object more extents, than
// fit in memory. Objects without data have a part without rows. Strips count where the request says so.
class ObjectWalk {
 public:
  ObjectWalk(MaintainedVolume& volume, engine::LayoutOf of) : volume_(volume), of_(of) {}

  // From this object on.
  void begin(Ino object);
  // The object of the last part, from its first row on.
  void begin_again();
  Result<std::optional<ObjectPart>> next();
  // The object whose next rows come next.
  Ino position() const { return object_; }

 private:
  static constexpr std::size_t kRowsAtOnce = 1024;
  Status list(ObjectPart& part);

  MaintainedVolume& volume_;
  const engine::LayoutOf of_;
  Ino object_ = 0;
  Ino last_ = 0;  // that a part was of
  bool is_within_ = false, at_end_ = false;
  engine::LayoutCursor at_;
};

// An operation that relocates what it finds. A step finds some candidates, or moves one. Everything here is forgotten
// between runs: what has moved is no candidate any more, so an operation that resumes finds the rest.
class Relocation : public Operation {
 public:
  Result<bool> step(OperationRun& run) final;
  void rest() override { forget(); }

 protected:
  explicit Relocation(MaintainedVolume& volume) : volume_(volume) {}

  static constexpr std::size_t kExtentsAtOnce = 64;

  // ---- what each operation brings
  // Looks a little further, and queues what it finds; called while nothing is queued. False: all is done.
  virtual Result<bool> find(OperationRun& run) = 0;
  // Some extents of the candidate, those that its request names now, had no room: true if it is to be tried once more,
  // as it has been changed here.
  virtual Result<bool> find_elsewhere(OperationRun&, Candidate&) { return false; }
  // It has been tried. The error is one of the object as a whole: it has been deleted, or cannot be read (of strips:
  // also that there is no room). In a dry run all of it counts as moved.
  virtual Status done(OperationRun& run, Candidate candidate, const Status& status) = 0;
  // After each step but the last one.
  virtual void note_progress(OperationRun&) {}

  // ---- what they use
  void forget();
  void queue(Candidate candidate) { queue_.push_back(std::move(candidate)); }
  std::deque<Candidate>& queued() { return queue_; }
  // So that what has been left before is free.
  Status commit();

  MaintainedVolume& volume_;

 private:
  static constexpr std::int64_t kFindNs = 20'000'000;            // of a step
  static constexpr std::uint64_t kBytesPerCommit = 64ull << 20;  // so that what is freed can be used again

  Status relocate(OperationRun& run, Candidate& candidate);
  Status consolidate(OperationRun& run, Candidate& candidate);
  Status note_written(std::uint64_t bytes);
  Status end(OperationRun& run, const Status& status);

  std::deque<Candidate> queue_;
  std::uint64_t uncommitted_bytes_ = 0;
  bool has_left_ = false;  // blocks that are in use until commit()
};

// What could not be read, or does not match its checksum, stays where it is and is an error record of the run.
void note_damaged(OperationRecord& record, Ino object, const engine::MoveOutcome& moved);

}  // namespace mdfs::maintenance
