// Staging: encodes extents, allocates their blocks and writes them to their disks. No reader sees them until they are
// published.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core.h"
#include "format/stored_extent.h"

namespace mdfs::engine {

// Bytes of contiguous blocks that staging allocates at once.
inline constexpr std::uint64_t kBytesAskedAtOnce = 4u << 20;

// Second copies of an object's extents are groups of their own: with this bit in the number of the owner.
inline constexpr std::uint64_t kCopyOwner = std::uint64_t{1} << 62;

// One extent or cell in staging. The caller fills in the first fields, stage() the others.
struct Staged {
  std::uint64_t index = 0;
  geometry::Coord coord{};
  BufferRef decoded;          // none: zeros
  ConstBytes frame;           // of `decoded`, if there is one already
  std::uint32_t blocks = 0;   // files: bit i = block i of the cell is written anew
  std::uint32_t holes = 0;    // files: bit i = block i becomes a hole
  bool stores_zeros = false;  // an extent of zeros gets a record, and is no hole
  bool is_moved = false;      // the bytes stay the same, and bytes in an image's strips still replace them
  CacheBlockPtr block;        // for the caller's use

  format::StoredExtent extent;  // without runs: a hole; publishing sets the generations
  BufferRef stored;             // the bytes to write; released after the write
};

// Encodes on all cores, allocates in grid order so that neighbours lie together on each disk, and writes to all disks
// at once. Blocks come out of `reservation` as far as it reaches. After an error no blocks stay allocated. Any thread.
// `stop` ends the call with kCancelled before it encodes another extent. Several threads call `stop`.
Status stage(Core& core, OpenObject& object, std::vector<Staged>& extents, store::Reservation& reservation,
             const Stop& stop = {});

// Frees the blocks of staged extents that have not been published.
void abandon(Core& core, std::vector<Staged>& extents);

}  // namespace mdfs::engine
