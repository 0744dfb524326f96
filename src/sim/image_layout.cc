// Counting extents on their disks, and scattering groups.
// SPDX-License-Identifier: Apache-2.0
#include "sim/image_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "geometry/extent_grid.h"
#include "layout/groups.h"

namespace mdfs::sim {
namespace {

constexpr std::uint64_t kMaxGroups = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxRanked = std::uint64_t{1} << 24;

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

ImageLayout::ImageLayout(const model::Machine& machine, const geometry::Geometry& image, geometry::Placement placement,
                         unsigned disks, std::uint64_t step_bytes, Copy copy)
    : placement_(std::move(placement)),
      copy_(copy),
      image_rank_(image.rank),
      disks_(disks),
      step_bytes_(step_bytes),
      group_bytes_(machine.layout.group_bytes),
      capacity_bytes_(model::head_capacity(machine)),
      filled_(machine.layout.filled) {
  if (group_bytes_ > static_cast<double>(step_bytes))
    per_group_ = static_cast<std::uint64_t>(group_bytes_ / static_cast<double>(step_bytes));
  if (copy == Copy::kSecond)
    before_ = ceil_div(geometry::extent_count(image.rank, image.grid()), std::uint64_t{disks}) * 2;
  const bool as_mount = machine.layout.requests == model::Layout::Requests::kMount;
  // Without heads and neighbours it does not matter where an extent lies.
  if (capacity_bytes_ > 0 || as_mount) rank_extents(image, as_mount);
}

void ImageLayout::rank_extents(const geometry::Geometry& image, bool as_mount) {
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const geometry::Coord grid = image.grid();
  const std::uint64_t extents = geometry::extent_count(image.rank, grid);
  if (extents > kMaxRanked) return;
  std::vector<std::uint32_t> on_disk(disks_);
  rank_.resize(extents);
  const auto place = [&](const geometry::Coord& extent) {
    rank_[geometry::extent_index(bytes, extent)] = on_disk[disk_of(extent, 0)]++;
  };
  if (!as_mount) {
    for (std::uint64_t number = 0; number < extents; ++number) place(geometry::extent_coord(bytes, number));
    return;
  }
  const layout::Groups groups(image.rank, grid, image.extent_bytes());
  for (std::uint64_t order = 0; order < groups.order_end(grid[0]); ++order)
    if (const auto extent = groups.extent_at(order, grid[0])) place(*extent);
}

std::uint64_t ImageLayout::offset_of(std::uint64_t number) const {
  return offset_of_rank(before_ + (rank_.empty() ? number / disks_ : rank_[number]));
}

std::uint64_t ImageLayout::offset_of_rank(std::uint64_t local) const {
  if (per_group_ == 0) return local * step_bytes_;
  return (local / per_group_ * 2 * per_group_ + local % per_group_) * step_bytes_;  // a gap as large as a group
}

double ImageLayout::address_of(std::uint64_t offset_bytes, unsigned disk) const {
  if (per_group_ == 0) return filled_ * capacity_bytes_ + static_cast<double>(offset_bytes);
  const std::uint64_t step = 2 * per_group_ * step_bytes_;
  const std::uint64_t group = std::min(offset_bytes / step, kMaxGroups);
  const double share = static_cast<double>(mix(group * model::kMaxDisks + disk) >> 11) * 0x1p-53;
  const double slots = std::max(std::floor(capacity_bytes_ / group_bytes_), 1.0);
  return std::floor(share * slots) * group_bytes_ + static_cast<double>(offset_bytes % step);
}

}  // namespace mdfs::sim
