// The size classes of buffers, and the sizes of slabs: pure arithmetic.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/checked.h"

namespace mdfs::engine {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kHugePageBytes = 2u << 20;
// A buffer of which at most this part is filled first is a sparse one.
inline constexpr std::size_t kSparseShare = 4;

// The size class of a buffer. A power of two has eight classes, so at most an eighth of a buffer is unused. Up to eight
// pages every multiple of a page is a class. `size` > 0.
constexpr std::size_t class_of(std::size_t size) {
  const std::size_t step = std::max(kPageBytes, std::bit_floor(size) / 8);
  return align_up(size, step);
}

// The size class of a buffer that is held briefly: a power of two, so that the next such buffer can reuse it.
constexpr std::size_t brief_class_of(std::size_t size) { return std::bit_ceil(std::max(size, kPageBytes)); }

// Slabs are cut into pieces of one class. A slab of small pages backs the pages that are used.
constexpr std::size_t small_slab_bytes(std::size_t piece) {
  return std::max<std::size_t>(1, (1u << 20) / piece) * piece;
}

// A slab of huge pages is allocated as a whole. At most a sixteenth of it is left over behind its pieces, which are
// charged for the rest. A piece of a huge page or more is a slab of its own; its end may lie in small pages.
constexpr std::size_t kLeastShareLeftOver = 16;
constexpr std::size_t huge_slab_bytes(std::size_t piece) {
  if (piece >= kHugePageBytes) return piece;
  std::size_t bytes = kHugePageBytes;
  while (bytes % piece > bytes / kLeastShareLeftOver) bytes += kHugePageBytes;
  return bytes;
}

// The charge of a piece of a slab of huge pages, rounded down: the sum over a slab can miss some bytes of it.
constexpr std::size_t huge_slab_charge(std::size_t slab_bytes, std::size_t piece) {
  return slab_bytes / (slab_bytes / piece);
}

}  // namespace mdfs::engine
