// The options that say what an image is to be: shared by image create and image import.
// SPDX-License-Identifier: Apache-2.0
#include "image_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>
#include <utility>

#include "alloc/policy.h"
#include "codec/codec_table.h"
#include "convert.h"
#include "geometry/default_extent.h"
#include "geometry/shape_text.h"
#include "geometry/units.h"
#include "support/ranges.h"
#include "support/streams.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

// A mistyped unit would otherwise be stored without a word.
void note_unknown_units(const geometry::Spacing& spacing) {
  std::set<std::string> noted = {""};
  for (const std::string& unit : spacing.unit)
    if (geometry::find_unit(unit) == nullptr && noted.insert(unit).second)
      print_err("mdfs: --spacing: the unit {} is stored as it is; units with a known meaning are {}\n", unit,
                geometry::unit_symbols());
}

}  // namespace

void ImageOptions::add_to(CLI::App& command) {
  command.add_option(
      "--axes", axes,
      "One letter for each axis, slowest first, such as tczyx; a last c stands for interleaved channels: yxc");
  command.add_option("--spacing", spacing, "Distance between samples along each axis: 0.5,0.2,0.2um");
  command.add_option("--extent", extent, "Shape of an extent: 128x128 (default: 48 to 256 KiB)");
  command.add_option("--codec", codec, "Codec of the extents: " + mdfs::codec::choices_text())
      ->type_name("{" + mdfs::codec::choice_list() + "}");
  command.add_option("--policy", policy, "Allocation policy (default: the policy of the mount)")
      ->type_name("{" + alloc::policy_list() + "}");
  command.add_option("--disks", disks, "Spread the image over this many disks (default: all)")
      ->check(whole_number(1, MDFS_IOC_MAX_DISKS));
  command
      .add_option("--row-offset", row_offset,
                  "Instead of the placement tables: disks from one row of extents to the next")
      ->check(whole_number(0, INT32_MAX));
  command
      .add_option("--plane-offset", plane_offset,
                  "Instead of the placement tables: disks from one plane of extents to the next")
      ->check(whole_number(0, INT32_MAX));
}

Status ImageOptions::check_axes() const {
  if (axes.empty()) return {};
  const auto order = geometry::parse_axes(axes);
  return order.ok() ? Status() : Status{Errc::kUsage, "--axes: " + order.error().where};
}

Status ImageOptions::apply(geometry::Geometry& geometry) const {
  if (!spacing.empty()) {
    MDFS_TRY_ASSIGN(geometry::Spacing parsed, named("--spacing", geometry::parse_spacing(spacing, geometry.rank)));
    note_unknown_units(parsed);
    geometry.spacing = parsed.distance;
    geometry.unit = std::move(parsed.unit);
  }
  if (!extent.empty()) {
    MDFS_TRY_ASSIGN(const geometry::Lengths lengths, named("--extent", geometry::parse_shape(extent)));
    if (lengths.rank != geometry.rank)
      return {Errc::kUsage, fmt::format("--extent {}: must have {} lengths, one for each axis", extent, geometry.rank)};
    for (unsigned axis = 0; axis < geometry.rank; ++axis)
      if (lengths.length[axis] < 1 || lengths.length[axis] > UINT32_MAX)
        return {Errc::kUsage, fmt::format("--extent {}: lengths must be from 1 to {}", extent, UINT32_MAX)};
    geometry.extent = lengths.length;
    if (const Status sound = geometry::check(geometry); !sound.ok())
      return {Errc::kUsage, fmt::format("--extent {}: {}", extent, sound.error().where)};
    if (const Status sound = geometry::check_extent(geometry); !sound.ok())
      return {Errc::kUsage, fmt::format("--extent {}: {}", extent, sound.error().where)};
  }
  if (row_offset && geometry.rank < 2) return {Errc::kUsage, "--row-offset requires an image of two axes or more"};
  if (plane_offset && geometry.rank < 3)
    return {Errc::kUsage, "--plane-offset requires an image of three axes or more"};
  if (!policy.empty()) {
    const auto chosen = alloc::parse_policy(policy);
    if (!chosen.ok()) return {Errc::kUsage, fmt::format("--policy {}: must be {}", policy, alloc::policy_names())};
    geometry.policy = *chosen;
  }
  if (!codec.empty()) {
    MDFS_TRY_ASSIGN(const auto chosen, named("--codec", mdfs::codec::parse_choice(codec)));
    geometry.codec = chosen.codec;
    geometry.codec_level = chosen.level;
  }
  return {};
}

mdfs_ioc_geometry ImageOptions::request(const geometry::Geometry& geometry) const {
  mdfs_ioc_geometry request = client::from_geometry(geometry);
  request.placed_disks = disks.value_or(0);
  if (row_offset) request.row_offset = static_cast<std::int32_t>(*row_offset);
  if (plane_offset) request.plane_offset = static_cast<std::int32_t>(*plane_offset);
  return request;
}

Error with_options(Error error) {
  for (const auto& [field, option] :
       {std::pair{"row_offset", "--row-offset"}, std::pair{"plane_offset", "--plane-offset"}}) {
    const std::string text = fmt::format(": {} ", field);
    if (const std::size_t at = error.where.rfind(text); at != std::string::npos)
      error.where.replace(at, text.size(), fmt::format(": {} ", option));
  }
  return error;
}

}  // namespace mdfs::tools
