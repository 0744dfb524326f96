// The header of NumPy's .npy files: written for windows, read from what is written to them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::views {

// A whole image's .npy has its data at one page, so that a mapping of them is aligned as the file's is.
inline constexpr std::size_t kImageNpyHeaderBytes = 4096;
// What numpy.save itself takes for arrays of few axes.
inline constexpr std::size_t kWindowNpyHeaderBytes = 128;
// A header of version 1.0 is never longer: 10 bytes and a 16-bit length.
inline constexpr std::size_t kMaxNpyHeaderBytes = 10 + 65535;

// Version 1.0, C order, padded with spaces to exactly `header_bytes` (a multiple of 64, large enough for any shape).
ByteVector npy_header(geometry::ElementType type, const std::vector<std::uint64_t>& shape, std::size_t header_bytes);

struct NpyHeader {
  geometry::ElementType type = geometry::ElementType::kU8;
  std::vector<std::uint64_t> shape;
  std::size_t header_bytes = 0;  // where the data begin

  std::uint64_t data_bytes() const;  // checked when read: no overflow
};

// Reads the header at the front of `bytes`, which may hold less or more than the header. Versions 1.0 to 3.0.
// kInvalidArgument says what is not understood: truncated, big-endian data, Fortran order, structured types.
Result<NpyHeader> parse_npy_header(ConstBytes bytes);

}  // namespace mdfs::views
