// Compiling a machine, and splitting windows with the same code as the mount.
// SPDX-License-Identifier: Apache-2.0
#include "sim/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/check.h"
#include "base/checked.h"
#include "geometry/copies.h"
#include "geometry/decompose.h"
#include "geometry/default_extent.h"
#include "geometry/extent_grid.h"
#include "geometry/parity_box.h"
#include "geometry/plan.h"
#include "geometry/shape_text.h"
#include "model/trace.h"

namespace mdfs::sim {
namespace {

constexpr unsigned kMostParityDisks = 64;                        // as many as a volume has
constexpr std::uint64_t kMaxDiskBytes = std::uint64_t{1} << 62;  // that an image takes

}  // namespace

Result<geometry::Geometry> make_image(const std::string& shape, const std::string& extent, bool extent_given,
                                      unsigned bytes_per_pixel) {
  MDFS_TRY_ASSIGN(const geometry::Lengths lengths, geometry::parse_shape(shape));
  geometry::Geometry image;
  image.rank = lengths.rank;
  image.shape = lengths.length;
  image.channels = bytes_per_pixel;
  image.codec = geometry::Codec::kRaw;
  image.axes = geometry::default_axes(lengths.rank, false, bytes_per_pixel > 1);
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
  image.extent = geometry::trimmed_extent(image);
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
  MDFS_TRY(system.choose_rules());
  MDFS_TRY(system.check_copies());
  MDFS_TRY(system.check_parity());
  MDFS_TRY(system.place());
  MDFS_TRY(system.check_stored());
  system.route_.emplace(s.machine, s.disks, s.uniform_seeks);
  return system;
}

bool System::reads_as_mount() const {
  return setup_.stored != nullptr || setup_.machine.layout.requests == model::Layout::Requests::kMount;
}

std::uint64_t System::stored_extent_bytes() const {
  const std::uint64_t bytes = setup_.image.extent_bytes();
  if (!setup_.compressed_share) return bytes;
  const double stored = std::round(static_cast<double>(bytes) * *setup_.compressed_share);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(stored), 1,
                                   static_cast<std::uint64_t>(model::kMaxCompressedShare) * bytes);
}

std::uint64_t System::checksums_of_extent() const {
  return rules_.sub_block_bytes == 0 ? 1 : ceil_div(setup_.image.extent_bytes(), std::uint64_t{rules_.sub_block_bytes});
}

std::uint64_t System::step_bytes() const {
  return reads_as_mount() ? align_up(stored_extent_bytes(), rules_.block_bytes) : stored_extent_bytes();
}

Status System::choose_rules() {
  if (setup_.stored) rules_ = setup_.stored->rules;
  if (rules_.block_bytes == 0 || rules_.max_request_bytes == 0)
    return Error{Errc::kInvalidArgument, "a mount reads in blocks and requests of at least one byte"};
  if (const auto& share = setup_.compressed_share; share) {
    if (!(*share > 0 && *share <= model::kMaxCompressedShare))
      return Error{Errc::kInvalidArgument, fmt::format("a compressed size of {} times the bytes: not in 0 .. {}",
                                                       *share, model::kMaxCompressedShare)};
    if (setup_.machine.layout.kind == model::Layout::Kind::kStriped)
      return Error{Errc::kInvalidArgument, "a striped machine has no compressed images"};
    rules_.sub_block_bytes = 0;
  }
  if (geometry::extent_count(setup_.image.rank, setup_.image.grid()) > kMaxDiskBytes / step_bytes())
    return Error{Errc::kTooBig, "the extents of the image take more than 2^62 bytes on disk"};
  return {};
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
  const geometry::Placement placement =
      row ? geometry::offset_placement(disks, *row, setup_.plane_offset.value_or(0))
          : geometry::default_placement(setup_.image.rank, disks, setup_.image.grid());
  layout_ = ImageLayout(setup_.machine, setup_.image, placement, setup_.disks, step_bytes());
  if (setup_.copies == 2)
    second_ =
        ImageLayout(setup_.machine, setup_.image, placement, setup_.disks, step_bytes(), ImageLayout::Copy::kSecond);
  if (setup_.width > 1)
    parities_ = std::make_shared<const ParityLayout>(ParityLayout::Options{.image = setup_.image,
                                                                           .placement = placement,
                                                                           .width = setup_.width,
                                                                           .checksums = checksums_of_extent(),
                                                                           .step_bytes = step_bytes()});
  return {};
}

std::string System::placement_text() const {
  const model::Layout& layout = setup_.machine.layout;
  if (layout.kind == model::Layout::Kind::kStriped)
    return fmt::format("striped, units of {} B over volumes of {} disks{}", layout.unit_bytes, layout.width,
                       layout.parity ? ", left-symmetric parity" : "");
  const geometry::Placement& placement = layout_.placement();
  return fmt::format("rows {}; planes {}", fmt::join(placement.row, " "), fmt::join(placement.plane, " "));
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
  const unsigned disk = layout_.disk_of(place, base);
  split.requests.push_back({.disk = disk,
                            .extent = split.extents,
                            .full_bytes = static_cast<double>(stored_extent_bytes()),
                            .part_bytes = part,
                            .address_bytes = layout_.address_of(layout_.offset_of(index), disk)});
}

Split System::split(const geometry::Window& window, std::uint64_t base) const { return split({&window, 1}, base); }

Split System::split(std::span<const geometry::Window> windows, std::uint64_t base,
                    std::span<const double> queued) const {
  if (reads_as_mount()) {
    double part_bytes = 0;
    const std::vector<ReadUnit> units = units_under(windows, base, part_bytes, queued);
    return split_units(units, part_bytes);
  }
  const geometry::Geometry& image = setup_.image;
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const double full = static_cast<double>(stored_extent_bytes());
  Split split;
  std::unordered_map<std::uint64_t, std::size_t> first_request;  // of an extent; used where there are several windows
  for (const geometry::Window& window : windows)
    for (const geometry::Piece& piece : geometry::decompose(bytes, geometry::byte_box(image, window))) {
      const auto part = static_cast<double>(geometry::box_bytes(image.rank, piece.in_extent));
      const std::uint64_t index = geometry::extent_index(bytes, piece.extent);
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
  if (stored.places.size() != geometry::extent_count(setup_.image.rank, setup_.image.grid()) ||
      stored.disk_bytes.size() != setup_.disks)
    return Error{Errc::kInvalidArgument, "the stored image does not fit the system"};
  for (const ExtentPlace& place : stored.places)
    if (place.disk >= setup_.disks)
      return Error{Errc::kInvalidArgument, fmt::format("an extent lies on disk {} of {}", place.disk, setup_.disks)};
  return {};
}

Status System::check_copies() const {
  const auto refused = [](std::string text) { return Error{Errc::kInvalidArgument, std::move(text)}; };
  if (setup_.copies < 1 || setup_.copies > 2) return refused(fmt::format("{} copies: not in 1..2", setup_.copies));
  if (!is_protected())
    return setup_.lost_disk ? Status(refused("with one copy the extents of a lost disk are lost")) : Status();
  if (setup_.lost_disk && *setup_.lost_disk >= setup_.disks)
    return refused(fmt::format("lost disk {}: not in 0..{}", *setup_.lost_disk, setup_.disks - 1));
  if (setup_.copies == 1) return {};
  if (setup_.stored || setup_.machine.layout.requests != model::Layout::Requests::kMount)
    return refused("two copies: the machine must place and read extents as a mount does");
  if (setup_.disks < 2) return refused("two copies: at least 2 disks");
  return {};
}

Status System::check_parity() const {
  const unsigned width = setup_.width;
  const auto refused = [](std::string text) { return Error{Errc::kInvalidArgument, std::move(text)}; };
  if (width == 1) return {};
  if (width == 0 || !geometry::is_parity_width(width))
    return refused(fmt::format("a parity of {} extents: must be 2, 4 or 8", width));
  if (setup_.copies != 1) return refused("an image has copies or parities, not both");
  if (setup_.stored || setup_.machine.layout.requests != model::Layout::Requests::kMount)
    return refused("parity: the machine must place and read extents as a mount does");
  if (setup_.disks <= width || setup_.disks > kMostParityDisks)
    return refused(fmt::format("a parity of {} extents needs {} to {} disks, not {}", width, width + 1,
                               kMostParityDisks, setup_.disks));
  if (geometry::extent_count(setup_.image.rank, setup_.image.grid()) > ParityLayout::kMostExtents)
    return {Errc::kTooBig,
            fmt::format("more than {} extents: parities of so many are not simulated", ParityLayout::kMostExtents)};
  return {};
}

std::uint64_t System::offset_of_parity(const ParityLayout::Group& group) const {
  // As much room as second copies would take: there are fewer of these.
  const std::uint64_t before = ceil_div(parities_->extents(), std::uint64_t{setup_.disks}) * 2;
  return layout_.offset_of_rank(before + group.rank);
}

std::optional<ExtentPlace> System::copy_of(std::uint64_t number, const geometry::Coord& extent,
                                           std::uint64_t base) const {
  if (setup_.copies == 2) return ExtentPlace{second_.disk_of(extent, base), second_.offset_of(number), 0};
  const ParityLayout::Group group = parities_->group(parities_->group_of(number));
  if (!group.is_copy()) return std::nullopt;
  return ExtentPlace{disk_of_group(group, base), offset_of_parity(group), 0};
}

void System::choose_copies(std::vector<ReadUnit>& units, std::uint64_t base, std::span<const double> queued) const {
  constexpr std::size_t kNone = SIZE_MAX;
  const geometry::ByteGeometry bytes = geometry::byte_geometry(setup_.image);
  std::vector<geometry::CopiesOfExtent> extents;
  std::vector<std::uint64_t> offsets;  // of their copies
  std::vector<std::size_t> extent_of_unit;
  for (const ReadUnit& unit : units) {  // ascending by extent
    const std::size_t before = extent_of_unit.size();
    if (before == 0 || units[before - 1].extent != unit.extent) {
      const auto copy = copy_of(unit.extent, geometry::extent_coord(bytes, unit.extent), base);
      extent_of_unit.push_back(copy ? extents.size() : kNone);
      if (!copy) continue;
      extents.push_back({{unit.place.disk, copy->disk}, {kBytesOfAnAccess, kBytesOfAnAccess}});
      offsets.push_back(copy->address_bytes);
    } else {
      extent_of_unit.push_back(extent_of_unit.back());
      if (extent_of_unit.back() == kNone) continue;
    }
    for (double& cost : extents.back().cost) cost += static_cast<double>(unit.place.length_bytes);
  }
  if (extents.empty()) return;
  std::vector<double> busy(queued.begin(), queued.end());
  busy.resize(setup_.disks);
  if (setup_.lost_disk) busy[*setup_.lost_disk] = std::numeric_limits<double>::infinity();
  const std::vector<std::uint8_t> chosen = geometry::choose_copies(extents, busy);
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::size_t extent = extent_of_unit[i];
    if (extent == kNone || chosen[extent] == 0) continue;
    geometry::PlanPart& place = units[i].place;
    place.disk = extents[extent].disk[1];
    place.offset_bytes = place.offset_bytes - layout_.offset_of(units[i].extent) + offsets[extent];
  }
}

// All images are alike, and lie one disk further each.
unsigned System::disk_of_group(const ParityLayout::Group& group, std::uint64_t base) const {
  return static_cast<unsigned>((group.disk + base) % setup_.disks);
}

void System::find_others(std::vector<ReadUnit>& units, std::uint64_t base) const {
  const geometry::ByteGeometry bytes = geometry::byte_geometry(setup_.image);
  for (ReadUnit& unit : units) {
    if (unit.place.disk != setup_.lost_disk) continue;
    const ParityLayout::Group group = parities_->group(parities_->group_of(unit.extent));
    const std::uint64_t begin = unit.place.offset_bytes - layout_.offset_of(unit.extent);
    for (const std::uint32_t member : group.members)
      if (member != unit.extent)
        unit.others.push_back({layout_.disk_of(geometry::extent_coord(bytes, member), base),
                               layout_.offset_of(member) + begin, unit.place.length_bytes});
    unit.others.push_back({disk_of_group(group, base), offset_of_parity(group) + begin, unit.place.length_bytes});
  }
}

ExtentPlace System::place_of(std::uint64_t number, const geometry::Coord& extent, std::uint64_t base) const {
  if (setup_.stored) return setup_.stored->places[number];
  return {layout_.disk_of(extent, base), layout_.offset_of(number), stored_extent_bytes()};
}

Request System::request_of(unsigned disk, std::uint64_t offset_bytes, std::uint64_t length_bytes) const {
  const auto length = static_cast<double>(length_bytes);
  const double scale = setup_.stored ? model::head_scale(setup_.machine, setup_.stored->disk_bytes[disk]) : 1;
  return {.disk = disk,
          .full_bytes = length,
          .part_bytes = length,
          .address_bytes =
              setup_.stored ? static_cast<double>(offset_bytes) * scale : layout_.address_of(offset_bytes, disk),
          .span_bytes = length * scale};
}

std::vector<ReadUnit> System::units_under(std::span<const geometry::Window> windows, std::uint64_t base,
                                          double& part_bytes, std::span<const double> queued) const {
  const geometry::Geometry& image = setup_.image;
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const std::uint64_t extent_bytes = image.extent_bytes();
  const std::uint32_t sub_block = rules_.sub_block_bytes;
  std::vector<ReadUnit> units;
  part_bytes = 0;
  for (const geometry::Window& window : windows)
    for (const geometry::Piece& piece : geometry::decompose(bytes, geometry::byte_box(image, window))) {
      part_bytes += static_cast<double>(geometry::box_bytes(image.rank, piece.in_extent));
      const std::uint64_t number = geometry::extent_index(bytes, piece.extent);
      const ExtentPlace place = place_of(number, piece.extent, base);
      if (place.stored_bytes == 0) continue;
      const auto add = [&](std::size_t unit, std::uint64_t memory_bytes, std::uint64_t begin, std::uint64_t end) {
        units.push_back({.extent = number,
                         .unit = static_cast<std::uint32_t>(unit),
                         .memory_bytes = memory_bytes,
                         .place = {place.disk, place.address_bytes + begin, align_up(end, rules_.block_bytes) - begin},
                         .others = {}});
      };
      if (sub_block == 0) {
        add(0, extent_bytes, 0, place.stored_bytes);
        continue;
      }
      for (const geometry::ByteRun& run : geometry::part_runs(bytes.rank, bytes.extent, piece.in_extent, sub_block))
        for (std::uint64_t begin = run.begin; begin < run.end; begin += sub_block) {
          const std::uint64_t end = std::min<std::uint64_t>(begin + sub_block, run.end);
          add(begin / sub_block, end - begin, begin, end);
        }
    }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  if (is_protected()) choose_copies(units, base, queued);
  if (setup_.width > 1 && setup_.lost_disk) find_others(units, base);
  return units;
}

// Merged and cut into requests by the code of a mount.
Split System::split_units(std::span<const ReadUnit> units, double part_bytes,
                          std::vector<std::size_t>* request_of_unit) const {
  std::vector<geometry::PlanPart> parts;
  std::vector<std::size_t> unit_of_part, made_of_unit;  // the latter with units that have several parts
  parts.reserve(units.size());
  Split split;
  split.part_bytes = part_bytes;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const ReadUnit& unit = units[i];
    if (unit.others.empty()) {
      parts.push_back(unit.place);
    } else {
      parts.insert(parts.end(), unit.others.begin(), unit.others.end());
      made_of_unit.resize(units.size());
      split.made.push_back({i, {}});
      made_of_unit[i] = split.made.size();
    }
    unit_of_part.resize(parts.size(), i);
  }
  const std::vector<geometry::DiskLimits> limits(setup_.disks, {.max_request_bytes = rules_.max_request_bytes});
  auto plan = geometry::plan_requests(parts, limits);
  MDFS_CHECK(plan.ok());
  if (request_of_unit != nullptr) request_of_unit->assign(units.size(), 0);
  for (const geometry::DiskPlan& disk : plan->disks) {
    for (const geometry::PlanRequest& request : disk.requests) {
      for (const geometry::RequestPiece& piece : disk.pieces_of(request)) {
        const std::size_t unit = unit_of_part[piece.part];
        if (request_of_unit != nullptr) (*request_of_unit)[unit] = split.requests.size();
        if (!made_of_unit.empty() && made_of_unit[unit] > 0)
          split.made[made_of_unit[unit] - 1].requests.push_back(static_cast<std::uint32_t>(split.requests.size()));
      }
      split.requests.push_back(request_of(disk.disk, request.offset_bytes, request.length_bytes));
      split.requests.back().extent = split.extents++;
      split.full_bytes += split.requests.back().full_bytes;
    }
  }
  for (Split::Made& made : split.made)
    made.requests.erase(std::unique(made.requests.begin(), made.requests.end()), made.requests.end());
  return split;
}

}  // namespace mdfs::sim
