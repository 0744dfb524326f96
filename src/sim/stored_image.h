// How a mount reads the extents of an image, and where they lie on real disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace mdfs::sim {

// The reads of a mount: the parts of an extent, and how reads are merged. The defaults are those of a mount.
struct ReadRules {
  std::uint32_t sub_block_bytes = 16u << 10;     // a window reads at least this much of a raw extent; 0: all of it
  std::uint64_t block_bytes = 4096;              // reads are multiples of it
  std::uint64_t max_request_bytes = 256u << 10;  // neighbours on a disk are read in one request, of at most this
};

struct ExtentPlace {
  unsigned disk = 0;
  std::uint64_t address_bytes = 0;
  std::uint64_t stored_bytes = 0;  // 0: a hole, which costs nothing
};

// An image as it lies on the disks of a mounted volume.
struct StoredImage {
  std::vector<ExtentPlace> places;  // by extent, row-major
  std::vector<double> disk_bytes;   // by disk: heads move as far as the address of this size, on their capacity
  ReadRules rules;
};

}  // namespace mdfs::sim
