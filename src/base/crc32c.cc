// CRC-32C by ISA-L.
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <isa-l.h>

#include <algorithm>
#include <limits>

namespace mdfs {

std::uint32_t crc32c(ConstBytes bytes, std::uint32_t previous) {
  constexpr std::size_t kStep = std::numeric_limits<int>::max() / 2;
  std::uint32_t state = ~previous;
  while (!bytes.empty()) {
    const std::size_t step = std::min(bytes.size(), kStep);
    // ISA-L takes a pointer to non-const and does not write through it.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(step), state);
    bytes = bytes.subspan(step);
  }
  return ~state;
}

}  // namespace mdfs
