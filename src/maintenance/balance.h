// Disks that came take their share of what is stored already.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "maintenance/relocation.h"

namespace mdfs::maintenance {

// Parameters of the record: 0 the disks that take, as bits; 1, of a request alone: 1 adds every healthy disk that has
// less than 15/16 of its share. Cursor: 0 the next object.
// Placements that are meant for all disks name these too, by weight, from the beginning on. Candidates are the extents
// and cells whose disk is one of these by that, and no others, until the disk has its share by weight: the least that
// gives it to them. What finds no room stays where it is, as does what cannot be read. A dry run counts.
class Balance final : public Relocation {
 public:
  enum Figure : std::uint8_t { kMovedBytes, kNoRoom };  // in a dry run: that would move; extents

  explicit Balance(MaintainedVolume& volume) : Relocation(volume), walk_(volume, engine::LayoutOf::kExtents) {}

  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;

 private:
  static constexpr std::uint64_t kLeastLacking = 16;  // a disk that lacks a smaller part of its share is left alone

  Result<bool> find(OperationRun& run) override;
  Status done(OperationRun& run, Candidate candidate, const Status& status) override;

  Status check(const OperationRun& run) const;
  // The healthy disks that have too little, as bits.
  std::uint64_t lacking_disks() const;
  // Blocks that a disk would hold more if everything were spread by weight.
  std::uint64_t lacking_blocks(unsigned disk) const;
  Status look_at(OperationRun& run, const ObjectPart& part);

  ObjectWalk walk_;
  std::map<unsigned, std::uint64_t> lacking_;  // blocks, by disk that takes: counted down by what is queued
};

}  // namespace mdfs::maintenance
