// Compiling a machine, and splitting windows with the same code as the mount.
// SPDX-License-Identifier: Apache-2.0
#include "sim/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "geometry/decompose.h"
#include "geometry/default_extent.h"
#include "geometry/shape_text.h"

namespace mdfs::sim {
namespace {

constexpr std::uint64_t kMaxGroups = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxRanked = std::uint64_t{1} << 24;

// Row-major number of an extent in its grid.
std::uint64_t row_major(unsigned rank, const geometry::Coord& grid, const geometry::Coord& index) {
  std::uint64_t number = 0;
  for (unsigned axis = 0; axis < rank; ++axis) number = number * grid[axis] + index[axis];
  return number;
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

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
  system.topology_ = model::topology(s.machine, s.disks);
  std::uint32_t next = 0;
  for (const unsigned count : system.topology_.count) {
    system.first_station_.push_back(next);
    next += count;
  }
  system.compile();
  system.rank_extents();
  return system;
}

Status System::place() {
  const model::Layout& layout = setup_.machine.layout;
  if (layout.kind == model::Layout::Kind::kStriped) {
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

void System::compile() {
  bool extents_seen = false;
  for (const model::Stage& stage : setup_.machine.stages) {
    Plan plan;
    plan.resource = stage.resource;
    plan.when = stage.when;
    extents_seen |= !stage.per_window;
    plan.phase = !stage.per_window ? Phase::kExtent : extents_seen ? Phase::kAfter : Phase::kBefore;
    for (const model::Cost& cost : stage.costs) {
      switch (cost.kind) {
        case model::Cost::Kind::kFixed:
          plan.fixed_s += cost.low_s;
          break;
        case model::Cost::Kind::kSeek:
          if (setup_.uniform_seeks) {
            plan.drawn.push_back({.kind = model::Cost::Kind::kUniform, .low_s = 0, .high_s = 2 * cost.low_s});
          } else {
            plan.fixed_s += cost.low_s;
          }
          break;
        case model::Cost::Kind::kTransfer:
          plan.fixed_s += cost.bytes / cost.bytes_per_s;
          plan.full_s_per_byte += cost.full / cost.bytes_per_s;
          plan.part_s_per_byte += cost.part / cost.bytes_per_s;
          break;
        case model::Cost::Kind::kHead:
          plan.head = true;
          break;
        case model::Cost::Kind::kUniform:
        case model::Cost::Kind::kExponential:
          plan.drawn.push_back(cost);
          break;
      }
    }
    plans_.push_back(std::move(plan));
  }
}

void System::rank_extents() {
  const geometry::Geometry& image = setup_.image;
  const bool heads = std::any_of(plans_.begin(), plans_.end(), [](const Plan& plan) { return plan.head; });
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
  if (group_bytes <= extent_bytes) return static_cast<double>(local) * extent_bytes;
  double capacity = 0;
  for (const model::Resource& resource : setup_.machine.resources)
    if (resource.head) capacity = resource.head->capacity_bytes;
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

Split System::split(const geometry::Window& window, std::uint64_t base) const {
  const geometry::Geometry& image = setup_.image;
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const double full = static_cast<double>(image.extent_bytes());
  const geometry::Coord grid = image.grid();
  Split split;
  for (const geometry::Piece& piece : geometry::decompose(bytes, geometry::byte_box(image, window))) {
    double part = 1;
    for (unsigned axis = 0; axis < image.rank; ++axis) part *= static_cast<double>(piece.in_extent.length[axis]);
    const std::uint64_t index = row_major(image.rank, grid, piece.extent);
    if (setup_.machine.layout.kind == model::Layout::Kind::kStriped) {
      split_striped(index, part, base, split);
    } else {
      const unsigned disk = geometry::disk_of(placement_, image.rank, base, piece.extent);
      split.requests.push_back({.disk = disk,
                                .extent = split.extents,
                                .full_bytes = full,
                                .part_bytes = part,
                                .address_bytes = address_of(index, disk)});
    }
    ++split.extents;
    split.full_bytes += full;
    split.part_bytes += part;
  }
  return split;
}

void System::add_stations(Engine& engine) const {
  for (std::size_t i = 0; i < topology_.count.size(); ++i)
    for (unsigned instance = 0; instance < topology_.count[i]; ++instance) {
      const model::Resource& resource = setup_.machine.resources[i];
      [[maybe_unused]] const std::uint32_t index = engine.add_station(resource.servers, resource.head);
      MDFS_CHECK(index == station(i, instance));
    }
}

double System::draw_s(const model::Cost& cost, Random& random) const {
  if (cost.kind == model::Cost::Kind::kUniform) return random.uniform(cost.low_s, cost.high_s);
  return random.exponential(cost.low_s);
}

void System::steps(Phase phase, const Request& request, Random& random, std::vector<Step>& steps) const {
  steps.clear();
  const double hit_ratio = setup_.machine.hit_ratio;
  const bool hit = phase == Phase::kExtent && hit_ratio > 0 && random.unit() < hit_ratio;
  for (const Plan& plan : plans_) {
    if (plan.phase != phase) continue;
    if (plan.when != model::When::kAlways && (plan.when == model::When::kHit) != hit) continue;
    Step step;
    step.station = station(plan.resource, topology_.of_disk[plan.resource][request.disk]);
    step.service_s =
        plan.fixed_s + plan.full_s_per_byte * request.full_bytes + plan.part_s_per_byte * request.part_bytes;
    for (const model::Cost& cost : plan.drawn) step.service_s += draw_s(cost, random);
    if (plan.head) {
      step.address_bytes = request.address_bytes;
      step.length_bytes = request.full_bytes;
    }
    steps.push_back(step);
  }
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
