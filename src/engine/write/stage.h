// Staging: extents are encoded, given places, and written to their disks, where nobody sees them until they are
// published.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core.h"

namespace mdfs::engine {

// Contiguous blocks for what is written.
inline constexpr std::uint64_t kBytesAskedAtOnce = 4u << 20;

// What becomes of one extent. The first part is what the caller wants, the rest is filled in by stage().
struct Staged {
  std::uint64_t index = 0;
  geometry::Coord coord{};
  BufferRef decoded;         // none: zeros
  std::uint32_t blocks = 0;  // files: bit i = block i of the cell is written anew
  std::uint32_t holes = 0;   // files: bit i = block i becomes a hole
  bool is_moved = false;     // the bytes stay what they are, and those in an image's strips are newer as before
  CacheBlockPtr block;       // for the caller's use

  std::vector<store::Run> runs;    // in order of the stored bytes; none: a hole
  std::uint32_t stored_bytes = 0;  // images
  std::vector<std::uint32_t> crc32c;
  BufferRef stored;  // what is written; given back after it has been
};

// Blocks that staging an extent takes at most.
std::uint64_t worst_case_blocks(const OpenObject& object, const Staged& staged);

// Encodes on all cores, allocates in grid order so that neighbours lie together on each disk, and writes to all disks
// at once. Blocks come out of `reservation` as far as it goes. After an error nothing is allocated. Any thread.
Status stage(Core& core, OpenObject& object, std::vector<Staged>& extents, store::Reservation& reservation);

// Gives the blocks of staged extents back, which have not been published.
void abandon(Core& core, std::vector<Staged>& extents);

}  // namespace mdfs::engine
