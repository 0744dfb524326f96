// The order of extents on their disks.
// SPDX-License-Identifier: Apache-2.0
#include "layout/groups.h"

#include <algorithm>

#include "base/checked.h"

namespace mdfs::layout {
namespace {

constexpr std::uint64_t kBandRows = 3;
constexpr std::uint64_t kGroupBytes = 8u << 20;

}  // namespace

Groups::Groups(unsigned rank, const geometry::Coord& grid, std::uint64_t extent_bytes)
    : rank_(rank), unit_bytes_(extent_bytes), grid_(grid) {
  if (rank < 2) return;
  rows_ = kBandRows;
  const std::uint64_t across = std::max<std::uint64_t>(1, grid[rank - 1]);
  const std::uint64_t most = std::clamp<std::uint64_t>(kGroupBytes / (extent_bytes * rows_), 1, across);
  columns_ = ceil_div(across, ceil_div(across, most));
  padded_ = align_up(across, columns_);
}

std::uint64_t Groups::order_of(const geometry::Coord& extent) const {
  if (rank_ < 2) return extent[0];
  const std::uint64_t row = extent[rank_ - 2];
  std::uint64_t band = row / rows_;
  std::uint64_t step = 0;  // along the axes before the last two
  for (unsigned axis = 0; axis + 2 < rank_; ++axis) step = step * grid_[axis] + extent[axis];
  if (rank_ > 2) band += step * ceil_div(grid_[rank_ - 2], rows_);
  return (band * padded_ + extent[rank_ - 1]) * rows_ + row % rows_;
}

std::uint64_t Groups::run_extents(unsigned disks) const {
  const std::uint64_t group_extents = rows_ * columns_;
  return group_extents * std::max<std::uint64_t>(1, disks * kRunBytes / (group_extents * unit_bytes_));
}

std::uint64_t Groups::run_of(const geometry::Coord& extent, unsigned disks) const {
  return order_of(extent) / run_extents(disks);
}

std::optional<geometry::Coord> Groups::extent_at(std::uint64_t order, std::uint64_t rows) const {
  if (rank_ < 2) return order < rows ? std::optional(geometry::Coord{order}) : std::nullopt;
  geometry::Coord extent{};
  std::uint64_t band = order / rows_ / padded_;
  extent[rank_ - 1] = order / rows_ % padded_;
  if (rank_ > 2) {
    const std::uint64_t bands = ceil_div(grid_[rank_ - 2], rows_);
    std::uint64_t step = band / bands;
    band %= bands;
    for (unsigned axis = rank_ - 3; axis > 0; --axis) {
      extent[axis] = step % grid_[axis];
      step /= grid_[axis];
    }
    extent[0] = step;
  }
  extent[rank_ - 2] = band * rows_ + order % rows_;
  bool inside = extent[0] < rows;
  for (unsigned axis = 1; axis < rank_; ++axis) inside = inside && extent[axis] < grid_[axis];
  return inside ? std::optional(extent) : std::nullopt;
}

std::uint64_t Groups::order_end(std::uint64_t rows) const {
  if (rank_ < 2) return rows;
  std::uint64_t bands = rank_ == 2 ? ceil_div(rows, rows_) : rows * ceil_div(grid_[rank_ - 2], rows_);
  for (unsigned axis = 1; axis + 2 < rank_; ++axis) bands *= grid_[axis];
  return bands * padded_ * rows_;
}

std::uint64_t Groups::extents_in_group(const geometry::Coord& extent, std::uint64_t rows) const {
  if (rank_ < 2) return 1;
  const auto inside = [](std::uint64_t at, std::uint64_t step, std::uint64_t end) {
    const std::uint64_t begin = at / step * step;
    return begin >= end ? step : std::min(step, end - begin);
  };
  return inside(extent[rank_ - 2], rows_, rank_ == 2 ? rows : grid_[rank_ - 2]) *
         inside(extent[rank_ - 1], columns_, grid_[rank_ - 1]);
}

}  // namespace mdfs::layout
