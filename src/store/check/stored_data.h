// Data on the disks with their checksums, as the tree's items describe them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "format/stored_extent.h"

namespace mdfs::store {

// An extent, its part in a strip, or blocks of a file, and whose it is.
struct StoredData : format::StoredExtent {
  std::uint64_t object = 0;
  std::uint64_t where = 0;  // page * 64 + place of an extent, first byte of blocks of a file
  bool is_extent = false;
  bool is_copy = false;  // the second copy
};

}  // namespace mdfs::store
