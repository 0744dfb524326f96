// Headers of NPY and PNM files: text in, an array out, and back. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "imagefile/image_file.h"

namespace mdfs::imagefile {

// A longer header is refused.
inline constexpr std::size_t kMaxHeaderBytes = 64u << 10;

// Layout of the samples behind a header.
struct PackedHeader {
  ArrayInfo array;
  std::uint64_t data_offset = 0;  // bytes from the start of the file
  bool big_endian = false;
};

bool is_npy(ConstBytes start);
// `start` is the beginning of the file, min(its size, kMaxHeaderBytes) long; errors begin with `name`.
// Versions 1, 2 and 3. Fortran order of more than one axis, structured, complex and object types are refused; bool is
// u8.
Result<PackedHeader> parse_npy(ConstBytes start, const std::string& name);
// Version 1, C order, little endian, padded so that the samples start at a multiple of 64 bytes.
std::string npy_header(const ArrayInfo& array);

bool is_pnm(ConstBytes start);
// Binary grey (P5) and colour (P6), 8 and 16 bits; refuses the other kinds by name.
Result<PackedHeader> parse_pnm(ConstBytes start, const std::string& name);
// Refuses arrays that are not yx or yxc with 1 or 3 channels of u8 or u16.
Result<std::string> pnm_header(const ArrayInfo& array, const std::string& name);

}  // namespace mdfs::imagefile
