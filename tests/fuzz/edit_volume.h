// Edits of a stored volume whose checksums are made right afterwards: damage that no checksum shows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "memory_volume.h"

namespace mdfs::fuzz {

// One structure of a volume, and all the places where it is stored.
struct Structure {
  enum class Kind : std::uint8_t { kLabel, kSlot, kBitmap, kNode, kData };
  struct Place {
    std::size_t disk = 0;
    std::uint64_t offset = 0;  // bytes
  };
  Kind kind = Kind::kData;
  std::vector<Place> places;
  std::uint32_t bytes = 0;
};

// Labels, commit slots, bitmaps, reachable nodes and blocks of data, in an order that depends on the disks alone.
std::vector<Structure> find_structures(const test::MemoryDisks& disks);

// Carries out the edits that `script` asks for and makes every checksum right again, from the data up to the slots.
// The first byte: bit 0 leaves the checksums of data alone, bit 1 those of nodes, bit 2 those of bitmaps and their
// counts. Then any number of edits: u8 structure (of those), u8 flags (bit 0: at its first place only; bit 1: adds to
// the number there instead), u16 offset, u8 count, bytes.
void edit(const std::vector<Structure>& structures, ConstBytes script, const test::MemoryDisks& disks);

}  // namespace mdfs::fuzz
