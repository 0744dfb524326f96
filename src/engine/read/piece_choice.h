// Which piece of each extent a load reads, of extents that have two. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/stored_extent.h"

namespace mdfs::engine {

// A request counts as much as so many bytes, which a disk transfers in the time that the request costs beside: between
// flash, 0.05 ms, and magnetic disks, 9 ms.
inline constexpr std::uint64_t kRequestBytes = 256u << 10;

struct PieceToRead {
  const format::StoredExtent* extent = nullptr;  // its pieces lie in one run each
  std::uint64_t bytes = 0;                       // to read of either
};

// In order: true where the copy is read, so that the last disk to end does so as early as can be found
// (geometry/copies.h). `queued`: the bytes that each disk has to move before, requests counted as above; infinity: it
// is lost. First pieces that lie together are one request, and the copy of one of them counts one more, because it
// tears that request apart. Disks of pieces are below queued.size() (abort).
std::vector<bool> choose_pieces(std::span<const PieceToRead> pieces, std::span<const double> queued);

}  // namespace mdfs::engine
