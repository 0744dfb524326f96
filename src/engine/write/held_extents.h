// Finds the extents of a byte range that hold data: stored ones and dirty ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/core.h"

namespace mdfs::engine {

// An extent, and its pieces in the range.
struct HeldExtent {
  std::uint64_t index = 0;
  geometry::Coord coord{};
  std::vector<geometry::Piece> pieces;  // in_box is not set
};

// Finds the extents of an image that hold some of the bytes [offset, offset + length); all other bytes are zero. The
// cost depends on stored and dirty extents near the range, never on its length. The caller holds its part of the grid,
// so that no extent becomes dirty meanwhile. Calls `visit` once for each extent, dirty ones first. An error of `visit`
// ends the walk.
Status each_held_extent(Core& core, OpenObject& object, std::uint64_t offset, std::uint64_t length,
                        const std::function<Status(const HeldExtent&)>& visit);

// The pieces of [offset, offset + length) in one extent.
std::vector<geometry::Piece> pieces_of_extent(const OpenObject& object, std::uint64_t offset, std::uint64_t length,
                                              const geometry::Coord& coord);

// The same as each_held_extent, without the pieces.
Status each_held_coord(Core& core, OpenObject& object, std::uint64_t offset, std::uint64_t length,
                       const std::function<Status(const geometry::Coord&)>& visit);

}  // namespace mdfs::engine
