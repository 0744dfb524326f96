// Compiling a machine, and splitting windows with the same code as the mount.
// SPDX-License-Identifier: Apache-2.0
#include "sim/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/check.h"
#include "base/checked.h"
#include "geometry/decompose.h"
#include "geometry/default_extent.h"
#include "geometry/plan.h"
#include "geometry/shape_text.h"

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

std::uint64_t extent_number(unsigned rank, const geometry::Coord& grid, const geometry::Coord& extent) {
  std::uint64_t number = 0;
  for (unsigned axis = 0; axis < rank; ++axis) number = number * grid[axis] + extent[axis];
  return number;
}

Result<geometry::Geometry> make_image(const std::string& shape, const std::string& extent, bool extent_given,
                                      unsigned bytes_per_pixel) {
  MDFS_TRY_ASSIGN(const geometry::Lengths lengths, geometry::parse_shape(shape));
  geometry::Geometry image;
  image.rank = lengths.rank;
  image.shape = lengths.length;
  image.channels = bytes_per_pixel;
  image.codec = geometry::Codec::kRaw;
  image.axes = lengths.rank == 1 ? "x" : lengths.rank == 2 ? "yx" : "zyx";
  MDFS_TRY_ASSIGN(const geometry::Lengths sides, geometry::parse_shape(extent));
  if (sides.rank == lengths.rank) {
    image.extent = sides.length;
  } else if (extent_given) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("an extent of {} axes does not fit an image of {}", sides.rank, lengths.rank)};
  } else {
    image.extent = geometry::default_extent(lengths.rank, lengths.length, bytes_per_pixel, image.axes);
  }
  MDFS_TRY(geometry::check(image));
  if (image.shape[0] == 0) return Error{Errc::kInvalidArgument, "the image is empty"};
  return image;
}

Result<Setup> default_setup(const model::Machine& machine) {
  Setup setup;
  setup.machine = machine;
  setup.disks = machine.disks;
  MDFS_TRY_ASSIGN(setup.image, make_image(machine.shape, machine.extent, false, machine.bytes_per_pixel));
  return setup;
}

Result<System> System::make(Setup setup) {
  System system;
  system.setup_ = std::move(setup);
  const Setup& s = system.setup_;
  if (s.disks < 1 || s.disks > model::kMaxDisks)
    return Error{Errc::kInvalidArgument, fmt::format("{} disks: not in 1..{}", s.disks, model::kMaxDisks)};
  MDFS_TRY(geometry::check(s.image));
  MDFS_TRY(system.place());
  MDFS_TRY(system.check_stored());
  system.route_.emplace(s.machine, s.disks, s.uniform_seeks);
  system.rank_extents();
  return system;
}

Status System::place() {
  const model::Layout& layout = setup_.machine.layout;
  if (layout.kind == model::Layout::Kind::kStriped && !setup_.stored) {
    if (setup_.disks % layout.width != 0)
      return Error{Errc::kInvalidArgument,
                   fmt::format("{} disks make no whole volumes of {}", setup_.disks, layout.width)};
    if (setup_.row_offset || setup_.plane_offset)
      return Error{Errc::kInvalidArgument, "a striped machine has no row or plane offset"};
    return {};
  }
  std::vector<std::uint16_t> disks(setup_.disks);
  std::iota(disks.begin(), disks.end(), std::uint16_t{0});
  std::optional<unsigned> row = setup_.row_offset;
  if (!row && setup_.image.rank <= 2) row = model::row_offset(setup_.machine, setup_.disks);
  if (!row && setup_.plane_offset) row = model::row_offset(setup_.machine, setup_.disks).value_or(1);
  placement_ = row ? geometry::offset_placement(disks, *row, setup_.plane_offset.value_or(0))
                   : geometry::default_placement(setup_.image.rank, disks, setup_.image.grid());
  return {};
}

std::string System::placement_text() const {
  const model::Layout& layout = setup_.machine.layout;
  if (layout.kind == model::Layout::Kind::kStriped)
    return fmt::format("striped, units of {} B over volumes of {} disks{}", layout.unit_bytes, layout.width,
                       layout.parity ? ", left-symmetric parity" : "");
  return fmt::format("rows {}; planes {}", fmt::join(placement_.row, " "), fmt::join(placement_.plane, " "));
}

void System::rank_extents() {
  const geometry::Geometry& image = setup_.image;
  const auto& resources = setup_.machine.resources;
  const bool heads =
      std::any_of(resources.begin(), resources.end(), [](const model::Resource& one) { return one.head.has_value(); });
  const geometry::Coord grid = image.grid();
  std::uint64_t extents = 1;
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    if (grid[axis] > kMaxRanked / extents) return;
    extents *= grid[axis];
  }
  if (!heads || setup_.machine.layout.kind != model::Layout::Kind::kExtents) return;
  std::vector<std::uint32_t> on_disk(setup_.disks);
  rank_.reserve(extents);
  for (std::uint64_t index = 0; index < extents; ++index) {
    geometry::Coord place{};
    std::uint64_t rest = index;
    for (unsigned axis = image.rank; axis > 0; --axis) {
      place[axis - 1] = rest % grid[axis - 1];
      rest /= grid[axis - 1];
    }
    rank_.push_back(on_disk[geometry::disk_of(placement_, image.rank, 0, place)]++);
  }
}

double System::address_of(std::uint64_t index, unsigned disk) const {
  const double extent_bytes = static_cast<double>(setup_.image.extent_bytes());
  const double group_bytes = setup_.machine.layout.group_bytes;
  const std::uint64_t local = rank_.empty() ? index / setup_.disks : rank_[index];
  const double capacity = model::head_capacity(setup_.machine);
  if (group_bytes <= extent_bytes)
    return setup_.machine.layout.filled * capacity + static_cast<double>(local) * extent_bytes;
  const auto per_group = static_cast<std::uint64_t>(group_bytes / extent_bytes);
  const std::uint64_t group = std::min(local / per_group, kMaxGroups);
  const double share = static_cast<double>(mix(group * model::kMaxDisks + disk) >> 11) * 0x1p-53;
  const double slots = std::max(std::floor(capacity / group_bytes), 1.0);
  return std::floor(share * slots) * group_bytes + static_cast<double>(local % per_group) * extent_bytes;
}

// The extent's bytes lie one after another in the file; each unit that they touch is a request of its own.
void System::split_striped(std::uint64_t index, double part_bytes, std::uint64_t base, Split& split) const {
  const model::Layout& layout = setup_.machine.layout;
  const unsigned data_disks = layout.width - (layout.parity ? 1 : 0);
  const unsigned volumes = setup_.disks / layout.width;
  const auto first_disk = static_cast<unsigned>(base % volumes) * layout.width;
  const auto unit_bytes = static_cast<std::uint64_t>(layout.unit_bytes);
  const std::uint64_t extent_bytes = setup_.image.extent_bytes();
  std::uint64_t at = index * extent_bytes;
  const std::uint64_t end = at + extent_bytes;
  while (at < end) {
    const std::uint64_t unit = at / unit_bytes;
    const std::uint64_t length = std::min(end, (unit + 1) * unit_bytes) - at;
    const std::uint64_t stripe = unit / data_disks;
    const auto place = static_cast<unsigned>(unit % data_disks);
    const unsigned parity = layout.width - 1 - static_cast<unsigned>(stripe % layout.width);
    const unsigned disk = layout.parity ? (parity + 1 + place) % layout.width : place;
    const double bytes = static_cast<double>(length);
    split.requests.push_back({.disk = first_disk + disk,
                              .extent = split.extents,
                              .full_bytes = bytes,
                              .part_bytes = part_bytes * bytes / static_cast<double>(extent_bytes),
                              .address_bytes = static_cast<double>(stripe * unit_bytes + at % unit_bytes)});
    at += length;
  }
}

void System::split_extent(std::uint64_t index, const geometry::Coord& place, double part, std::uint64_t base,
                          Split& split) const {
  if (setup_.machine.layout.kind == model::Layout::Kind::kStriped) return split_striped(index, part, base, split);
  const unsigned disk = geometry::disk_of(placement_, setup_.image.rank, base, place);
  split.requests.push_back({.disk = disk,
                            .extent = split.extents,
                            .full_bytes = static_cast<double>(setup_.image.extent_bytes()),
                            .part_bytes = part,
                            .address_bytes = address_of(index, disk)});
}

Split System::split(const geometry::Window& window, std::uint64_t base) const { return split({&window, 1}, base); }

Split System::split(std::span<const geometry::Window> windows, std::uint64_t base) const {
  if (setup_.stored) return split_stored(windows);
  const geometry::Geometry& image = setup_.image;
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const double full = static_cast<double>(image.extent_bytes());
  const geometry::Coord grid = image.grid();
  Split split;
  std::unordered_map<std::uint64_t, std::size_t> first_request;  // of an extent; used where there are several windows
  for (const geometry::Window& window : windows)
    for (const geometry::Piece& piece : geometry::decompose(bytes, geometry::byte_box(image, window))) {
      double part = 1;
      for (unsigned axis = 0; axis < image.rank; ++axis) part *= static_cast<double>(piece.in_extent.length[axis]);
      const std::uint64_t index = extent_number(image.rank, grid, piece.extent);
      split.part_bytes += part;
      if (windows.size() > 1) {
        const auto [known, added] = first_request.emplace(index, split.requests.size());
        if (!added) {
          const std::uint32_t extent = split.requests[known->second].extent;
          for (std::size_t i = known->second; i < split.requests.size() && split.requests[i].extent == extent; ++i)
            split.requests[i].part_bytes += part * split.requests[i].full_bytes / full;
          continue;
        }
      }
      split_extent(index, piece.extent, part, base, split);
      ++split.extents;
      split.full_bytes += full;
    }
  return split;
}

Status System::check_stored() const {
  if (!setup_.stored) return {};
  const StoredImage& stored = *setup_.stored;
  std::uint64_t extents = 1;
  const geometry::Coord grid = setup_.image.grid();
  for (unsigned axis = 0; axis < setup_.image.rank; ++axis) extents *= grid[axis];
  if (stored.places.size() != extents || stored.disk_bytes.size() != setup_.disks || stored.block_bytes == 0 ||
      stored.max_request_bytes == 0)
    return Error{Errc::kInvalidArgument, "the stored image does not fit the system"};
  for (const StoredImage::Place& place : stored.places)
    if (place.disk >= setup_.disks)
      return Error{Errc::kInvalidArgument, fmt::format("an extent lies on disk {} of {}", place.disk, setup_.disks)};
  return {};
}

// What the engine of a mount reads of each extent, merged and cut into requests by the same code.
Split System::split_stored(std::span<const geometry::Window> windows) const {
  const StoredImage& stored = *setup_.stored;
  const geometry::Geometry& image = setup_.image;
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const std::uint64_t extent_bytes = image.extent_bytes();
  const geometry::Coord grid = image.grid();
  std::vector<geometry::PlanPart> parts;
  Split split;
  const auto read = [&](const StoredImage::Place& place, std::uint64_t begin, std::uint64_t end) {
    parts.push_back({place.disk, place.address_bytes + begin, align_up(end, stored.block_bytes) - begin});
  };
  for (const geometry::Window& window : windows)
    for (const geometry::Piece& piece : geometry::decompose(bytes, geometry::byte_box(image, window))) {
      double part = 1;
      for (unsigned axis = 0; axis < image.rank; ++axis) part *= static_cast<double>(piece.in_extent.length[axis]);
      split.part_bytes += part;
      const StoredImage::Place& place = stored.places[extent_number(image.rank, grid, piece.extent)];
      if (place.stored_bytes == 0) continue;
      if (stored.sub_block_bytes == 0) {
        read(place, 0, place.stored_bytes);
        continue;
      }
      const auto touched = geometry::touched_sub_blocks(bytes, piece.in_extent, stored.sub_block_bytes);
      for (std::size_t i = 0; i < touched.size(); ++i)
        if (touched[i])
          read(place, i * stored.sub_block_bytes, std::min((i + 1) * stored.sub_block_bytes, extent_bytes));
    }
  const std::vector<geometry::DiskLimits> limits(setup_.disks, {.max_request_bytes = stored.max_request_bytes});
  const auto plan = geometry::plan_requests(parts, limits);
  MDFS_CHECK(plan.ok());
  for (const geometry::DiskPlan& disk : plan->disks)
    for (const geometry::PlanRequest& request : disk.requests) {
      const auto length = static_cast<double>(request.length_bytes);
      const double scale = model::head_scale(setup_.machine, stored.disk_bytes[disk.disk]);
      split.requests.push_back({.disk = disk.disk,
                                .extent = split.extents++,
                                .full_bytes = length,
                                .part_bytes = length,
                                .address_bytes = static_cast<double>(request.offset_bytes) * scale,
                                .span_bytes = length * scale});
      split.full_bytes += length;
    }
  return split;
}

std::vector<double> System::mean_demand_s(const Request& request) const {
  std::vector<double> demand(setup_.machine.resources.size());
  const double hit_ratio = setup_.machine.hit_ratio;
  for (const model::Stage& stage : setup_.machine.stages) {
    const double share = stage.when == model::When::kAlways ? 1
                         : stage.when == model::When::kHit  ? hit_ratio
                                                            : 1 - hit_ratio;
    for (const model::Cost& cost : stage.costs)
      demand[stage.resource] += share * cost.mean_s(request.full_bytes, request.part_bytes);
  }
  return demand;
}

}  // namespace mdfs::sim
