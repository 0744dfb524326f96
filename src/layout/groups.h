// Groups: which extents of an image are written together, and in what order they lie on their disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "geometry/geometry.h"
#include "mdfs/ondisk.h"

namespace mdfs::layout {

// Extents are ordered along bands three grid rows high: column by column, and in a column row by row. So the extents of
// a disk that a window needs make about one run for each band that it crosses, in whichever order its placement deals
// them to the disks. For windows of 512x512x3 over eight disks and whole extents of 128x128x3 the busiest disk
// gets 2.3 requests, against 3.3 with boxes of 8x8 extents and 4.0 row by row. A band is cut into groups of a few MiB,
// which are written when all their extents are full. In three dimensions bands lie in one step along the slowest axis.
// Pure.
class Groups {
 public:
  // Every extent is a group of its own: an ordinary file, an image of rank 1.
  Groups() = default;
  // grid[0] is not looked at.
  Groups(unsigned rank, const geometry::Coord& grid, std::uint64_t extent_bytes);

  // Ascending as extents lie on the disks.
  std::uint64_t order_of(const geometry::Coord& extent) const;
  std::uint64_t group_of(const geometry::Coord& extent) const { return order_of(extent) / (rows_ * columns_); }
  // Number of the run in which the extent lies on its disk in a fresh copy on `disks` disks: extents of
  // one disk with equal numbers are meant to be contiguous there. About kRunBytes of a disk, whole groups.
  std::uint64_t run_of(const geometry::Coord& extent, unsigned disks) const;
  static constexpr std::uint64_t kRunBytes = 4u << 20;
  // Extents of a run on all disks together.
  std::uint64_t run_extents(unsigned disks) const;
  // The inverse of order_of() in an image whose grid is `rows` steps long along the slowest axis; nothing where the
  // order has a place for which there is no extent. All orders are below order_end().
  std::optional<geometry::Coord> extent_at(std::uint64_t order, std::uint64_t rows) const;
  std::uint64_t order_end(std::uint64_t rows) const;
  // How many extents the group of this one has in an image whose grid is `rows` steps long along the slowest axis.
  std::uint64_t extents_in_group(const geometry::Coord& extent, std::uint64_t rows) const;

 private:
  unsigned rank_ = 1;
  std::uint64_t unit_bytes_ = MDFS_FILE_CELL;
  std::uint64_t rows_ = 1, columns_ = 1;  // of a group
  geometry::Coord grid_{};
  std::uint64_t padded_ = 1;  // columns of a band, rounded up to whole groups
};

}  // namespace mdfs::layout
