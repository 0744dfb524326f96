// Draining a disk, so that it can be removed from the volume: new blocks avoid it, what lies on it moves, then it is no
// member. Or draining its end, so that it becomes smaller. A disk that becomes larger has nothing to move.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "geometry/geometry.h"
#include "maintenance/relocation.h"
#include "store/members.h"

namespace mdfs::maintenance {

// Parameters of the record: 0 the disk; 1 the disk that takes all of it, plus 1, or 0: spread over the others; 2 the
// size in blocks that the disk gets, or 0: the disk is removed. Cursor: 0 passes over the objects so far.
// Candidates are all extents with blocks that have to go: of objects with such blocks in strips after those have been
// consolidated. They move where the placement says, else to any other disk, else one by one. Then tree nodes move. What
// writers place on the disk while they do not know yet that it drains is found by another pass. Extents that cannot be
// read stay, and are named; the disk stays too then.
class Drain final : public Relocation {
 public:
  explicit Drain(MaintainedVolume& volume) : Relocation(volume), walk_(volume, engine::LayoutOf::kAll) {}

  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;
  void rest() override;

 private:
  enum class Phase : std::uint8_t { kData, kNodes, kRemove };
  static constexpr std::uint64_t kMostPasses = 16;

  Result<bool> find(OperationRun& run) override;
  Result<bool> find_elsewhere(OperationRun& run, Candidate& candidate) override;
  Status done(OperationRun& run, Candidate candidate, const Status& status) override;
  void note_progress(OperationRun& run) override;

  unsigned disk(const OperationRun& run) const { return static_cast<unsigned>(run.record.parameters[0]); }
  std::optional<unsigned> target(const OperationRun& run) const;
  // The disk stays, and gets so many blocks; 0: it is removed.
  static std::uint64_t new_blocks(const OperationRun& run) { return run.record.parameters[2]; }
  // What lies at or behind this block of the disk has to go.
  std::uint64_t first_block(const OperationRun& run) const;
  std::uint64_t used_bytes(const OperationRun& run) const;  // that has to go
  Status begin_resize(OperationRun& run);
  Status limit(const OperationRun& run, std::uint64_t* missing_blocks);
  Status check(const OperationRun& run) const;
  Status check_room(OperationRun& run) const;
  void begin_pass(OperationRun& run);

  Status look_at(OperationRun& run, const ObjectPart& part);
  Status queue_units(const OperationRun& run, Ino object, const std::vector<geometry::Coord>& extents);
  Result<engine::MoveRequest> request_for(const OperationRun& run, Ino object, std::vector<geometry::Coord> extents);
  void note_stuck(OperationRun& run, Ino object, const Error& error);
  Result<bool> remove(OperationRun& run);
  bool is_done(const OperationRun& run) const;

  ObjectWalk walk_;
  Phase phase_ = Phase::kData;
  Ino consolidated_ = 0;                  // the object that was last
  std::uint64_t stuck_ = 0;               // extents of this pass that stay where they are
  std::uint64_t no_room_ = 0;             // those of them that found no room
  std::optional<unsigned> limited_disk_;  // gets nothing new behind the end that it is to have
  store::NodePosition node_;              // the next one
};

}  // namespace mdfs::maintenance
