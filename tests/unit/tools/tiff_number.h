// Numbers as TIFF files hold them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace mdfs::imagefile {

inline std::string tiff_number(std::uint64_t value, std::size_t width_bytes, bool big_endian) {
  std::string text;
  for (std::size_t i = 0; i < width_bytes; ++i)
    text += static_cast<char>(value >> 8 * (big_endian ? width_bytes - 1 - i : i));
  return text;
}

}  // namespace mdfs::imagefile
