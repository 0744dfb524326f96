// An extent or cell on its way to the disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "engine/cache/cache_block.h"
#include "engine/open_object.h"
#include "format/stored_extent.h"

namespace mdfs::engine {

// Bytes of contiguous blocks that staging allocates at once.
inline constexpr std::uint64_t kBytesAskedAtOnce = 4u << 20;

// Second copies of an object's extents are groups of their own: with this bit in the number of the owner.
inline constexpr std::uint64_t kCopyOwner = std::uint64_t{1} << 62;

// The pieces of a file's blocks that a change is about.
enum class CellPieceKind : std::uint8_t { kBoth, kFirst, kCopy };

// One extent or cell in staging. The caller fills in the first fields, stage() the others.
struct Staged {
  std::uint64_t index = 0;
  geometry::Coord coord{};
  BufferRef decoded;         // none: zeros
  ConstBytes frame;          // of `decoded`, if there is one already
  std::uint32_t blocks = 0;  // files: bit i = block i of the cell is written anew
  std::uint32_t holes = 0;   // files: bit i = block i becomes a hole
  // Files: kBoth replaces the blocks with their copies, or takes these away. kFirst and kCopy leave the other piece.
  CellPieceKind cell_piece = CellPieceKind::kBoth;
  bool stores_zeros = false;  // an extent of zeros gets a record, and is no hole
  bool is_moved = false;      // the bytes stay the same, and bytes in an image's strips still replace them
  CacheBlockPtr block;        // for the caller's use

  format::StoredExtent extent;  // without runs: a hole; publishing sets the generations
  BufferRef stored;             // the bytes to write; released after the write
};

// Blocks of each piece of an encoded extent.
inline std::uint32_t blocks_of(const OpenObject& object, const Staged& staged) {
  if (!staged.stored) return 0;
  return static_cast<std::uint32_t>(ceil_div(staged.extent.stored_bytes, object.block_size));
}

}  // namespace mdfs::engine
