// The disks that may take another piece of an extent or a group, the best ones first. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mdfs::geometry {

// All disks but those of `taken` (a bit each; there are 64 at most): first the wanted one, then those with most free
// blocks, so that the pieces of a lost disk come on all others alike. Of disks with as much room the lower number.
std::vector<std::uint16_t> disks_by_room(std::uint64_t taken, std::span<const std::uint64_t> free_blocks,
                                         std::optional<unsigned> wanted = std::nullopt);

}  // namespace mdfs::geometry
