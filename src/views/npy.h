// The header of NumPy's .npy files: printed for windows, parsed from data written to windows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::views {

// The .npy of a whole image has its data at offset one page, so that a mapping is aligned like the file.
inline constexpr std::size_t kImageNpyHeaderBytes = 4096;
// The header size of numpy.save for arrays of few axes.
inline constexpr std::size_t kWindowNpyHeaderBytes = 128;
// A header of version 1.0 is never longer: 10 bytes and a 16-bit length.
inline constexpr std::size_t kMaxNpyHeaderBytes = 10 + 65535;

// Version 1.0, C order, padded with spaces to exactly `header_bytes` (a multiple of 64, large enough for any shape).
ByteVector npy_header(geometry::ElementType type, const std::vector<std::uint64_t>& shape, std::size_t header_bytes);

struct NpyHeader {
  geometry::ElementType type = geometry::ElementType::kU8;
  std::vector<std::uint64_t> shape;
  std::size_t header_bytes = 0;  // offset of the data

  std::uint64_t data_bytes() const;  // checked when read: no overflow
};

// Parses the header at the front of `bytes`, which may be shorter or longer than the header. Versions 1.0 to 3.0.
// kInvalidArgument names the problem: truncated, big-endian data, Fortran order, structured types.
Result<NpyHeader> parse_npy_header(ConstBytes bytes);

}  // namespace mdfs::views
