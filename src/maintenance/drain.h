// Draining a disk, so that it can be removed from the volume: new blocks avoid it, what lies on it moves, then it is no
// member. Or draining its end, so that it becomes smaller. A disk that becomes larger has nothing to move.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/map/layout.h"
#include "engine/relocate/mover.h"
#include "geometry/geometry.h"
#include "maintenance/objects.h"
#include "maintenance/operation.h"

namespace mdfs::maintenance {

// Parameters of the record: 0 the disk; 1 the disk that takes all of it, plus 1, or 0: spread over the others; 2 the
// size in blocks that the disk gets, or 0: the disk is removed.
// Cursor: 0 what is being done (Phase), 1 the next object, 2 passes over the objects so far.
// A step moves some units of one object, or some tree nodes. What writers place on the disk while they do not know yet
// that it drains is found by another pass. Units that cannot be read stay, and are named; the disk stays too then.
class Drain final : public Operation {
 public:
  explicit Drain(MaintainedVolume& volume) : volume_(volume) {}

  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;
  Result<bool> step(OperationRun& run) override;
  void rest() override;

 private:
  enum Phase : std::uint64_t { kData = 0, kNodes = 1, kRemove = 2 };
  static constexpr std::size_t kUnitsAtOnce = 64;
  static constexpr std::uint64_t kMostPasses = 16;
  static constexpr std::uint64_t kBytesPerCommit = 64ull << 20;  // so that what is freed can be used again

  unsigned disk(const OperationRun& run) const { return static_cast<unsigned>(run.record.parameters[0]); }
  std::optional<unsigned> target(const OperationRun& run) const;
  // The disk stays, and gets so many blocks; 0: it is removed.
  static std::uint64_t new_blocks(const OperationRun& run) { return run.record.parameters[2]; }
  // What lies at or behind this block of the disk has to go.
  std::uint64_t first_block(const OperationRun& run) const;
  bool has_to_go(const OperationRun& run, const UnitPlace& place) const;
  std::uint64_t used_bytes(const OperationRun& run) const;  // that has to go
  Status begin_resize(OperationRun& run);
  Status limit(const OperationRun& run, std::uint64_t* missing_blocks);
  Status check(const OperationRun& run) const;
  Status check_room(OperationRun& run) const;
  void begin_pass(OperationRun& run);
  void note_progress(OperationRun& run) const;

  Result<bool> move_data(OperationRun& run);
  Result<bool> find_object(OperationRun& run);
  // The next ones of the object that have a block on the disk, in units_; some of the object is looked at.
  Status list_some(OperationRun& run, std::uint64_t object);
  void note_unlisted(OperationRun& run, std::uint64_t object, const Error& error);
  // Are there bytes of it in strips there?
  Result<bool> strips_on(const OperationRun& run, std::uint64_t object);
  Status settle_some(OperationRun& run);
  Result<bool> move_units(OperationRun& run, std::vector<geometry::Coord> units);
  Result<engine::MoveRequest> request_for(OperationRun& run, std::vector<geometry::Coord> units);
  Status move_anywhere(OperationRun& run, engine::MoveOutcome& outcome, const engine::MoveRequest& tried);
  Status move_singly(OperationRun& run, engine::MoveOutcome& outcome, const engine::MoveRequest& tried);
  Result<bool> remove(OperationRun& run);
  bool is_done(const OperationRun& run) const;

  MaintainedVolume& volume_;
  // Of the object that the cursor names, some at a time; forgotten between runs.
  std::vector<geometry::Coord> units_;
  std::size_t next_unit_ = 0;
  engine::LayoutCursor at_;    // where the next ones are looked for
  bool listing_ = false;       // the object has more of them to look at
  bool settling_ = false;      // its strips, before its units are moved
  bool written_back_ = false;  // before that
  std::uint64_t stuck_ = 0;    // units of this pass that stay where they are
  std::uint64_t no_room_ = 0;  // those of them that found no room
  std::uint64_t uncommitted_bytes_ = 0;
  std::optional<unsigned> limited_disk_;  // gets nothing new behind the end that it is to have
  std::uint16_t node_level_ = 0;
  format::Key next_node_ = format::kMinKey;
};

}  // namespace mdfs::maintenance
