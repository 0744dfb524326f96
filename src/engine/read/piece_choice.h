// Which piece of each extent a load reads, of extents that have two. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/read_pace.h"
#include "format/stored_extent.h"

namespace mdfs::engine {

// A request counts as so many bytes.
using device::kRequestBytes;

// A disk that may be read.
struct DiskToRead {
  double queued = 0;    // bytes that it has to move before, requests counted as above; infinity: it is lost
  double slowness = 1;  // so many times as long as the other disks take for a byte (device/read_pace.h)
};

struct PieceToRead {
  const format::StoredExtent* extent = nullptr;  // its pieces lie in one run each
  std::uint64_t bytes = 0;                       // to read of either
};

// In order: true where the copy is read, so that the last disk to end does so as early as can be found
// (geometry/copies.h). First pieces that lie together are one request, and the copy of one of them counts one more,
// because it tears that request apart. Disks of pieces are below disks.size() (abort).
std::vector<bool> choose_pieces(std::span<const PieceToRead> pieces, std::span<const DiskToRead> disks);

}  // namespace mdfs::engine
