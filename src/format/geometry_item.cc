// Geometry and placement items.
// SPDX-License-Identifier: Apache-2.0
#include "format/geometry_item.h"

#include <cmath>

#include "base/checked.h"
#include "base/text.h"
#include "format/fields.h"

namespace mdfs::format {
namespace {

using geometry::Geometry;
using geometry::Placement;

constexpr std::array<std::uint8_t, 12> kElementBytes = {0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};  // by MDFS_TYPE_*
constexpr std::size_t kDiskAxes = MDFS_MAX_RANK;
static_assert(kDiskAxes == geometry::kMaxRank);
constexpr std::size_t kUnitBytes = sizeof(mdfs_geometry::unit[0]);

std::size_t shape_offset(std::size_t i) { return offsetof(mdfs_geometry, shape) + 8 * i; }
std::size_t extent_offset(std::size_t i) { return offsetof(mdfs_geometry, extent) + 4 * i; }
std::size_t axis_offset(std::size_t i) { return offsetof(mdfs_geometry, axis) + i; }
std::size_t spacing_offset(std::size_t i) { return offsetof(mdfs_geometry, spacing) + 8 * i; }
std::size_t unit_offset(std::size_t i) { return offsetof(mdfs_geometry, unit) + kUnitBytes * i; }

Status decode_fixed(ConstBytes value, Geometry& geometry) {
  geometry.rank = MDFS_GET(value, 0, mdfs_geometry, rank);
  MDFS_FORMAT_REQUIRE(geometry.rank >= 1 && geometry.rank <= geometry::kMaxRank, "geometry.rank");
  const auto type = MDFS_GET(value, 0, mdfs_geometry, element_type);
  MDFS_FORMAT_REQUIRE(type >= MDFS_TYPE_U8 && type <= MDFS_TYPE_F64, "geometry.type");
  geometry.type = static_cast<geometry::ElementType>(type);
  geometry.channels = MDFS_GET(value, 0, mdfs_geometry, channels);
  MDFS_FORMAT_REQUIRE(geometry.channels >= 1, "geometry.channels");
  const auto codec = MDFS_GET(value, 0, mdfs_geometry, codec);
  MDFS_FORMAT_REQUIRE(codec < geometry::kCodecs, "geometry.codec");
  geometry.codec = static_cast<geometry::Codec>(codec);
  geometry.codec_level = MDFS_GET(value, 0, mdfs_geometry, codec_level);
  MDFS_FORMAT_REQUIRE(MDFS_GET(value, 0, mdfs_geometry, level) == 0, "geometry.level");
  const auto policy = MDFS_GET(value, 0, mdfs_geometry, policy);
  MDFS_FORMAT_REQUIRE(policy < geometry::kAllocationPolicies, "geometry.policy");
  geometry.policy = static_cast<geometry::AllocationPolicy>(policy);
  return {};
}

Status decode_lengths(ConstBytes value, Geometry& geometry) {
  const std::uint64_t sample =
      std::uint64_t{geometry.channels} * kElementBytes[static_cast<std::size_t>(geometry.type)];
  std::uint64_t shape_bytes = sample;
  std::uint64_t extent_bytes = sample;
  for (std::size_t i = kDiskAxes; i-- > 0;) {
    const auto shape = load_le<std::uint64_t>(value, shape_offset(i));
    const auto extent = load_le<std::uint32_t>(value, extent_offset(i));
    if (i >= geometry.rank) {
      MDFS_FORMAT_REQUIRE(shape == 0, "geometry.shape");
      MDFS_FORMAT_REQUIRE(extent == 0, "geometry.extent");
      continue;
    }
    MDFS_FORMAT_REQUIRE(shape > 0 || i == 0, "geometry.shape");
    const auto shape_product = checked_mul(shape_bytes, shape);
    MDFS_FORMAT_REQUIRE(shape_product && *shape_product <= geometry::kMaxImageBytes, "geometry.shape");
    const auto extent_product = checked_mul(extent_bytes, extent);
    MDFS_FORMAT_REQUIRE(extent > 0 && extent_product && *extent_product <= MDFS_MAX_EXTENT, "geometry.extent");
    shape_bytes = *shape_product;
    extent_bytes = *extent_product;
    geometry.shape[i] = shape;
    geometry.extent[i] = extent;
  }
  return {};
}

Status decode_axes(ConstBytes value, Geometry& geometry) {
  for (std::size_t i = 0; i < geometry.rank; ++i) {
    const char letter = static_cast<char>(load_le<std::uint8_t>(value, axis_offset(i)));
    MDFS_FORMAT_REQUIRE(letter >= 'a' && letter <= 'z' && geometry.axes.find(letter) == std::string::npos,
                        "geometry.axis");
    geometry.axes += letter;
    const double spacing = std::bit_cast<double>(load_le<std::uint64_t>(value, spacing_offset(i)));
    MDFS_FORMAT_REQUIRE(std::isfinite(spacing) && spacing >= 0, "geometry.spacing");
    geometry.spacing[i] = spacing;
    geometry.unit[i] = get_padded_text(value, unit_offset(i), kUnitBytes);
    MDFS_FORMAT_REQUIRE(is_zero_padded(value, unit_offset(i), kUnitBytes) && geometry.unit[i].size() < kUnitBytes &&
                            is_one_line(geometry.unit[i]),
                        "geometry.unit");
  }
  const std::size_t rank = geometry.rank;
  const auto unused = [&](std::size_t first, std::size_t end) { return all_zero(value.subspan(first, end - first)); };
  MDFS_FORMAT_REQUIRE(unused(axis_offset(rank), axis_offset(sizeof(mdfs_geometry::axis))), "geometry.axis");
  MDFS_FORMAT_REQUIRE(unused(spacing_offset(rank), spacing_offset(kDiskAxes)), "geometry.spacing");
  MDFS_FORMAT_REQUIRE(unused(unit_offset(rank), unit_offset(kDiskAxes)), "geometry.unit");
  return {};
}

}  // namespace

ByteVector encode(const Geometry& geometry) {
  MDFS_CHECK(geometry.rank >= 1 && geometry.rank <= geometry::kMaxRank && geometry.axes.size() == geometry.rank);
  ByteVector out(sizeof(mdfs_geometry));
  MDFS_PUT(out, 0, mdfs_geometry, rank, static_cast<std::uint8_t>(geometry.rank));
  MDFS_PUT(out, 0, mdfs_geometry, element_type, static_cast<std::uint8_t>(geometry.type));
  MDFS_PUT(out, 0, mdfs_geometry, channels, static_cast<std::uint16_t>(geometry.channels));
  MDFS_PUT(out, 0, mdfs_geometry, codec, static_cast<std::uint8_t>(geometry.codec));
  MDFS_PUT(out, 0, mdfs_geometry, codec_level, static_cast<std::int8_t>(geometry.codec_level));
  MDFS_PUT(out, 0, mdfs_geometry, policy, static_cast<std::uint8_t>(geometry.policy));
  for (std::size_t i = 0; i < geometry.rank; ++i) {
    store_le<std::uint64_t>(out, shape_offset(i), geometry.shape[i]);
    store_le<std::uint32_t>(out, extent_offset(i), static_cast<std::uint32_t>(geometry.extent[i]));
    store_le<std::uint8_t>(out, axis_offset(i), static_cast<std::uint8_t>(geometry.axes[i]));
    store_le<std::uint64_t>(out, spacing_offset(i), std::bit_cast<std::uint64_t>(geometry.spacing[i]));
    MDFS_CHECK(geometry.unit[i].size() < kUnitBytes);
    put_text(out, unit_offset(i), geometry.unit[i]);
  }
  return out;
}

ByteVector encode_over(const Geometry& geometry, ConstBytes old) {
  ByteVector out = encode(geometry);
  MDFS_CHECK(old.size() == out.size());
  const auto keep = [&](std::size_t offset, std::size_t bytes) { put_bytes(out, offset, old.subspan(offset, bytes)); };
  keep(offsetof(mdfs_geometry, reserved1), sizeof(mdfs_geometry::reserved1));
  keep(offsetof(mdfs_geometry, reserved2), sizeof(mdfs_geometry::reserved2));
  return out;
}

Result<Geometry> decode_geometry(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() == sizeof(mdfs_geometry), "geometry.length");
  Geometry geometry;
  MDFS_TRY(decode_fixed(value, geometry));
  MDFS_TRY(decode_lengths(value, geometry));
  MDFS_TRY(decode_axes(value, geometry));
  return geometry;
}

ExtentTableShape table_shape(const Geometry& geometry) {
  return {static_cast<std::uint8_t>(geometry.codec), static_cast<std::uint32_t>(geometry.extent_bytes())};
}

ByteVector encode(const Placement& placement) {
  const std::size_t slots = placement.slot.size();
  MDFS_CHECK(slots >= 1 && slots <= kMaxPlacementSlots && placement.row.size() == slots &&
             placement.plane.size() == slots);
  ByteVector out(sizeof(mdfs_placement) + 6 * slots);
  MDFS_PUT(out, 0, mdfs_placement, disks, static_cast<std::uint16_t>(placement.disks));
  MDFS_PUT(out, 0, mdfs_placement, slots, static_cast<std::uint16_t>(slots));
  MDFS_PUT(out, 0, mdfs_placement, fourth, placement.fourth);
  MDFS_PUT(out, 0, mdfs_placement, fifth, placement.fifth);
  for (std::size_t i = 0; i < slots; ++i) {
    const std::size_t base = sizeof(mdfs_placement) + 2 * i;
    store_le<std::uint16_t>(out, base, placement.row[i]);
    store_le<std::uint16_t>(out, base + 2 * slots, placement.plane[i]);
    store_le<std::uint16_t>(out, base + 4 * slots, placement.slot[i]);
  }
  return out;
}

Result<Placement> decode_placement(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() >= sizeof(mdfs_placement), "placement.length");
  Placement placement;
  placement.disks = MDFS_GET(value, 0, mdfs_placement, disks);
  const std::size_t slots = MDFS_GET(value, 0, mdfs_placement, slots);
  MDFS_FORMAT_REQUIRE(placement.disks >= 1 && placement.disks <= MDFS_MAX_DISKS, "placement.disks");
  MDFS_FORMAT_REQUIRE(slots >= placement.disks && slots <= kMaxPlacementSlots, "placement.slots");
  MDFS_FORMAT_REQUIRE(value.size() == sizeof(mdfs_placement) + 6 * slots, "placement.length");
  placement.fourth = MDFS_GET(value, 0, mdfs_placement, fourth);
  placement.fifth = MDFS_GET(value, 0, mdfs_placement, fifth);
  MDFS_FORMAT_REQUIRE(placement.fourth < slots && placement.fifth < slots, "placement.offsets");
  for (std::size_t i = 0; i < slots; ++i) {
    const std::size_t base = sizeof(mdfs_placement) + 2 * i;
    placement.row.push_back(load_le<std::uint16_t>(value, base));
    placement.plane.push_back(load_le<std::uint16_t>(value, base + 2 * slots));
    placement.slot.push_back(load_le<std::uint16_t>(value, base + 4 * slots));
    MDFS_FORMAT_REQUIRE(placement.row[i] < slots && placement.plane[i] < slots && placement.slot[i] < MDFS_MAX_DISKS,
                        "placement.tables");
  }
  return placement;
}

}  // namespace mdfs::format
