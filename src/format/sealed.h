// A sector that carries its own checksum: labels and commit slots.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace mdfs::format {

// CRC-32C of all bytes, the four at `crc_offset` taken as zero. They lie inside the sector.
std::uint32_t sealed_crc32c(ConstBytes sector, std::size_t crc_offset);
// Writes the checksum, and tests it.
void seal(MutableBytes sector, std::size_t crc_offset);
bool seal_holds(ConstBytes sector, std::size_t crc_offset);

}  // namespace mdfs::format
