// A run of blocks on one disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "format/pointer.h"

namespace mdfs::format {

// Blocks that lie one after another on a disk. A run that comes from a disk may lie beyond the end of its own disk.
struct Run {
  std::uint16_t disk = 0;
  std::uint64_t block = 0;  // first, in units of the volume's block size
  std::uint32_t blocks = 0;

  auto operator<=>(const Run&) const = default;
  std::uint64_t end() const { return block + blocks; }
  Address address() const { return {disk, block}; }
};

}  // namespace mdfs::format
