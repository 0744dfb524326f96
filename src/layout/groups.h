// Groups: extents of an image that are written together, and their order on the disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "geometry/geometry.h"
#include "mdfs/ondisk.h"

namespace mdfs::layout {

// Extents are ordered along bands three grid rows high: column by column, and in a column row by row. The extents of a
// disk that a window needs then make about one run for each band, in any order of the disks in the placement. For
// windows of 512x512x3 over eight disks and extents of 128x128x3 the busiest disk gets 2.3 requests. Boxes of 8x8
// extents give 3.3, row by row gives 4.0.
// A band is cut into groups of a few MiB, which are written when all their extents are full. Of three and
// more axes bands lie in one step along the axes before the last two. Pure.
class Groups {
 public:
  // Every extent is a group of its own: an ordinary file, an image of rank 1.
  Groups() = default;
  // grid[0] is not used.
  Groups(unsigned rank, const geometry::Coord& grid, std::uint64_t extent_bytes);

  // Ascending in the order of extents on the disks.
  std::uint64_t order_of(const geometry::Coord& extent) const;
  std::uint64_t group_of(const geometry::Coord& extent) const { return order_of(extent) / (rows_ * columns_); }
  // Number of the run of the extent on its disk, in a fresh copy on `disks` disks. Extents of one disk with equal
  // numbers are contiguous there. About kRunBytes of a disk, in whole groups.
  std::uint64_t run_of(const geometry::Coord& extent, unsigned disks) const;
  static constexpr std::uint64_t kRunBytes = 4u << 20;
  // Extents of a run on all disks together.
  std::uint64_t run_extents(unsigned disks) const;
  // The inverse of order_of() in an image with `rows` steps of the grid along the slowest axis. Nothing for an order
  // without an extent. All orders are below order_end().
  std::optional<geometry::Coord> extent_at(std::uint64_t order, std::uint64_t rows) const;
  std::uint64_t order_end(std::uint64_t rows) const;
  // The number of extents in the group of this one, in an image with `rows` steps of the grid along the slowest axis.
  std::uint64_t extents_in_group(const geometry::Coord& extent, std::uint64_t rows) const;

 private:
  unsigned rank_ = 1;
  std::uint64_t unit_bytes_ = MDFS_FILE_CELL;
  std::uint64_t rows_ = 1, columns_ = 1;  // of a group
  geometry::Coord grid_{};
  std::uint64_t padded_ = 1;  // columns of a band, rounded up to whole groups
};

}  // namespace mdfs::layout
