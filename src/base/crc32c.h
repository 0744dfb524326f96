// CRC-32C (Castagnoli), the checksum of every block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace mdfs {

// The usual CRC-32C: initial value and final complement included; "123456789" gives 0xe3069283.
// `previous` continues a checksum: crc32c(b, crc32c(a)) == crc32c(a followed by b). The CRC-32C of no bytes is 0.
std::uint32_t crc32c(ConstBytes bytes, std::uint32_t previous = 0);

}  // namespace mdfs
