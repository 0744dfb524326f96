// Drains a disk so that it can be removed: new blocks avoid it, its blocks move, and it stops being a member. Also
// drains the end of a disk that becomes smaller. A disk that becomes larger has nothing to move.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "geometry/geometry.h"
#include "maintenance/relocation.h"
#include "store/members.h"

namespace mdfs::maintenance {

// Parameters of the record: 0 the disk; 1 the disk that takes all of it, plus 1, or 0: the other disks; 2 the new size
// of the disk in blocks, or 0: the disk is removed. Cursor: 0 the passes over the objects so far.
// Candidates are all extents with blocks that must go. Objects with such blocks in strips are consolidated first.
// Extents move to the disk that the placement names, else to any other disk, else one by one. Then tree nodes move. A
// writer that does not know of the drain yet may place blocks on the disk; a further pass finds them. Extents that
// cannot be read stay and are named, and the disk stays as well.
class Drain final : public Relocation {
 public:
  explicit Drain(MaintainedVolume& volume) : Relocation(volume), walk_(volume, engine::LayoutOf::kPieces) {}

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
  // The new size of a disk that stays, in blocks; 0: the disk is removed.
  static std::uint64_t new_blocks(const OperationRun& run) { return run.record.parameters[2]; }
  // Blocks of the disk at or behind this one must go.
  std::uint64_t first_block(const OperationRun& run) const;
  std::uint64_t used_bytes(const OperationRun& run) const;  // of the blocks that must go
  Status begin_resize(OperationRun& run);
  Status limit(const OperationRun& run, std::uint64_t* missing_blocks);
  Status check(const OperationRun& run) const;
  // Files with copies or parities need two disks for data beside the drained one.
  Status check_pieces(const OperationRun& run) const;
  Status check_room(OperationRun& run) const;
  void begin_pass(OperationRun& run);

  Status look_at(OperationRun& run, const ObjectPart& part);
  Status form_groups(Ino object);
  Status regroup(const OperationRun& run, Ino object, engine::MoveOutcome& outcome);
  Status queue_units(const OperationRun& run, Ino object, const std::vector<geometry::Coord>& extents, bool of_copies);
  Result<engine::MoveRequest> request_for(const OperationRun& run, Ino object, std::vector<geometry::Coord> extents,
                                          bool of_copies);
  Result<std::size_t> forget_of_level(Ino object, engine::MoveOutcome& outcome);
  void note_stuck(OperationRun& run, Ino object, const Error& error);
  Result<bool> remove(OperationRun& run);
  unsigned healthy_disks() const;
  bool is_done(const OperationRun& run) const;

  ObjectWalk walk_;
  Phase phase_ = Phase::kData;
  Ino regrouped_ = 0;                     // the last object whose groups were made anew
  Ino consolidated_ = 0;                  // the last consolidated object
  std::uint64_t stuck_ = 0;               // extents of this pass that could not move
  std::uint64_t no_room_ = 0;             // of these: found no space
  std::optional<unsigned> limited_disk_;  // gets no new blocks behind its new end
  store::NodePosition node_;              // the next one
};

}  // namespace mdfs::maintenance
