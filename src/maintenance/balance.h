// Disks that came take their share of what is stored already.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/map/layout.h"
#include "engine/relocate/mover.h"
#include "geometry/geometry.h"
#include "maintenance/operation.h"

namespace mdfs::maintenance {

// Parameters of the record: 0 the disks that take, as bits; 1, of a request alone: 1 adds every healthy disk that has
// less than 15/16 of its share. Cursor: 0 the next object.
// Placements that are meant for all disks name these too, by weight, from the beginning on; of each object the extents
// and cells move whose disk is one of these by that, and no others, until the disk has its share by weight: the least
// that gives it to them. A step moves some units of one object. What finds no room stays where it is, as does what
// cannot be read. A dry run counts.
class Balance final : public Operation {
 public:
  enum Figure : std::uint8_t { kMovedBytes, kNoRoom };  // in a dry run: that would move; units

  explicit Balance(MaintainedVolume& volume) : volume_(volume) {}

  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;
  Result<bool> step(OperationRun& run) override;

 private:
  static constexpr std::uint64_t kLeastLacking = 16;  // a disk that lacks a smaller part of its share is left alone
  static constexpr std::size_t kUnitsAtOnce = 64;
  static constexpr std::uint64_t kBytesPerCommit = 64ull << 20;  // so that what is freed can be used again

  struct Unit {
    geometry::Coord unit{};
    std::uint64_t blocks = 0;
  };
  Status check(const OperationRun& run) const;
  // The healthy disks that have too little, as bits.
  std::uint64_t lacking_disks() const;
  // Blocks that a disk would hold more if everything were spread by weight.
  std::uint64_t lacking_blocks(unsigned disk) const;
  Result<bool> find_object(OperationRun& run);
  // The next ones of the object that move, in units_; some of the object is looked at.
  Status list_some(OperationRun& run, std::uint64_t object);
  // False if that failed: what cannot be listed stays.
  bool can_list(OperationRun& run, std::uint64_t object);
  Status move_units(OperationRun& run);
  Result<std::optional<engine::MoveOutcome>> move(OperationRun& run, std::uint64_t object, engine::MoveRequest request);

  MaintainedVolume& volume_;
  // Of the object that the cursor names, some at a time; forgotten between runs.
  std::vector<Unit> units_;
  std::size_t next_unit_ = 0;
  engine::LayoutCursor at_;  // where the next ones are looked for
  bool listing_ = false;     // the object has more of them to look at
  std::uint64_t uncommitted_bytes_ = 0;
  std::map<unsigned, std::uint64_t> lacking_;  // blocks, by disk that takes: counted down by what is chosen
};

}  // namespace mdfs::maintenance
