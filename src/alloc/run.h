// A run of blocks on one disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace mdfs::alloc {

struct Run {
  std::uint16_t disk = 0;
  std::uint64_t block = 0;  // first, in units of the volume's block size
  std::uint32_t blocks = 0;
  auto operator<=>(const Run&) const = default;
};

}  // namespace mdfs::alloc
