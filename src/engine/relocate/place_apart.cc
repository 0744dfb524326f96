// Blocks for a new piece.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/place_apart.h"

#include <algorithm>
#include <vector>

#include "format/extents.h"
#include "geometry/piece_disks.h"

namespace mdfs::engine {
namespace {

// In runs that are as long as can be had.
bool allocate(Core& core, store::AllocationRequest request, std::uint64_t blocks, bool contiguous,
              store::Reservation& reservation, format::Runs& to) {
  auto left = static_cast<std::uint32_t>(blocks);
  for (std::uint32_t piece = left; left > 0;) {
    request.blocks = std::min(piece, left);
    const Result<store::Run> run =
        core.store.allocate(request, reservation.blocks() >= request.blocks ? &reservation : nullptr);
    if (run.ok()) {
      format::append_run(to, *run);
      left -= run->blocks;
    }
    if (to.size() > format::kMaxExtentRuns || (!run.ok() && (piece == 1 || contiguous))) {
      for (const store::Run& given : to) core.store.abandon(given);
      to.clear();
      return false;
    }
    if (!run.ok()) piece /= 2;
  }
  return true;
}

}  // namespace

bool place_apart(Core& core, const PieceToPlace& piece, std::span<const std::uint64_t> free_blocks,
                 store::Reservation& reservation, format::Runs& to) {
  for (const std::uint16_t disk : geometry::disks_by_room(piece.taken, free_blocks, piece.where.disk)) {
    store::AllocationRequest alone = piece.where;
    alone.disk = disk;
    alone.avoided_disks = ~(std::uint64_t{1} << disk);
    if (allocate(core, alone, piece.blocks, piece.contiguous, reservation, to)) return true;
  }
  store::AllocationRequest any = piece.where;
  any.avoided_disks = piece.taken;
  return !piece.on_one_disk && !piece.contiguous && allocate(core, any, piece.blocks, false, reservation, to);
}

}  // namespace mdfs::engine
