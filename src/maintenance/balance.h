// Balancing: added disks take their share of the stored extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "maintenance/relocation.h"

namespace mdfs::maintenance {

// Parameters of the record: 0 the disks that take extents, as bits; 1, of a request only: 1 adds every healthy disk
// with less than 15/16 of its share. Cursor: 0 the next object.
// At the beginning, placements for all disks are changed to name these disks as well, by weight. Candidates are the
// extents and cells that the new placement puts on one of these disks. A disk takes candidates until it has its share
// by weight, and no more. Extents that find no space or cannot be read stay. A dry run counts.
class Balance final : public Relocation {
 public:
  enum Figure : std::uint8_t { kMovedBytes, kNoRoom };  // in a dry run: that would move; extents

  explicit Balance(MaintainedVolume& volume) : Relocation(volume), walk_(volume, engine::LayoutOf::kPieces) {}

  Status begin(OperationRun& run) override;
  Status resume(OperationRun& run) override;

 private:
  static constexpr std::uint64_t kLeastLacking = 16;  // disks that lack a smaller part of their share are left alone

  Result<bool> find(OperationRun& run) override;
  Status done(OperationRun& run, Candidate candidate, const Status& status) override;

  Status check(const OperationRun& run) const;
  // The healthy disks that lack extents, as bits.
  std::uint64_t lacking_disks() const;
  // Blocks that a disk lacks until everything is spread by weight.
  std::uint64_t lacking_blocks(unsigned disk) const;
  Status look_at(OperationRun& run, const ObjectPart& part);

  ObjectWalk walk_;
  std::map<unsigned, std::uint64_t> lacking_;  // blocks, by taking disk: reduced by queued extents
};

}  // namespace mdfs::maintenance
