// The places at which an image may end while it is shortened in steps. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "geometry/decompose.h"

namespace mdfs::engine {

// Byte offsets at which parts of one kind begin: `first`, and more at equal distances.
struct CutStarts {
  std::uint64_t first = 0;
  std::uint64_t distance = 0;
  std::uint64_t count = 0;  // at least 1
  std::uint64_t at(std::uint64_t number) const { return first + number * distance; }
  std::uint64_t last() const { return at(count - 1); }
};

// All are in [size_bytes, old_size), in the order of their last offset. First come the rows of extents along axis 0,
// and single steps of axis 0. Then, within the last step of each axis, rows of extents and single steps of the next.
// Runs of `most` extents of the last row of bytes, and single extents there, come last. `most` and old_size are at
// least 1, and size_bytes is smaller than old_size.
std::vector<CutStarts> cut_starts(const geometry::ByteGeometry& array, std::uint64_t old_size, std::uint64_t size_bytes,
                                  std::uint64_t most);

}  // namespace mdfs::engine
