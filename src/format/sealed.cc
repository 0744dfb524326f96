// Checksums of labels and commit slots.
// SPDX-License-Identifier: Apache-2.0
#include "format/sealed.h"

#include <array>

#include "base/crc32c.h"

namespace mdfs::format {

std::uint32_t sealed_crc32c(ConstBytes sector, std::size_t crc_offset) {
  static constexpr std::array<std::byte, sizeof(std::uint32_t)> kZero{};
  std::uint32_t crc = crc32c(sector.first(crc_offset));
  crc = crc32c(kZero, crc);
  return crc32c(sector.subspan(crc_offset + kZero.size()), crc);
}

void seal(MutableBytes sector, std::size_t crc_offset) {
  store_le<std::uint32_t>(sector, crc_offset, sealed_crc32c(sector, crc_offset));
}

bool seal_holds(ConstBytes sector, std::size_t crc_offset) {
  return load_le<std::uint32_t>(sector, crc_offset) == sealed_crc32c(sector, crc_offset);
}

}  // namespace mdfs::format
