// The options that say what an image is to be: shared by image create and image import.
// SPDX-License-Identifier: Apache-2.0
#include "image_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "alloc/policy.h"
#include "codec/codec_table.h"
#include "convert.h"
#include "geometry/shape_text.h"
#include "support/text.h"

namespace mdfs::tools {
void ImageOptions::add_to(CLI::App& command) {
  command.add_option("--axes", axes, "One letter for each axis, slowest first; import: c for channels: zyx, tyx, yxc");
  command.add_option("--spacing", spacing, "Distance of samples along each axis: 0.5,0.2,0.2um");
  command.add_option("--extent", extent, "Shape of an extent: 128x128 (default: 48 to 256 KiB)");
  command.add_option("--codec", codec, "Codec of the extents: " + mdfs::codec::choices_text())
      ->type_name("{" + mdfs::codec::choice_list() + "}");
  command.add_option("--policy", policy, "Allocation policy (default: the policy of the mount)")
      ->type_name("{" + alloc::policy_list() + "}");
  command.add_option("--disks", disks, "Spread the image over this many disks (default: all)");
  command.add_option("--row-offset", row_offset, "Replace the placement tables: disks from one row to the next");
  command.add_option("--plane-offset", plane_offset, "Replace the placement tables: disks from one plane to the next");
}

Status ImageOptions::apply(geometry::Geometry& geometry) const {
  if (!spacing.empty()) {
    MDFS_TRY_ASSIGN(geometry::Spacing parsed, named("--spacing", geometry::parse_spacing(spacing, geometry.rank)));
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
  }
  if (disks && *disks == 0) return {Errc::kUsage, "--disks 0: must be at least 1"};
  if (row_offset && geometry.rank < 2) return {Errc::kUsage, "--row-offset requires an image of two or three axes"};
  if (plane_offset && geometry.rank < 3) return {Errc::kUsage, "--plane-offset requires an image of three axes"};
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

Status check_channels(unsigned channels) {
  if (channels >= 1 && channels <= geometry::kMaxChannels) return {};
  return {Errc::kUsage, fmt::format("--channels {}: must be from 1 to {}", channels, geometry::kMaxChannels)};
}

mdfs_ioc_geometry ImageOptions::request(const geometry::Geometry& geometry) const {
  mdfs_ioc_geometry request = client::from_geometry(geometry);
  request.placed_disks = disks.value_or(0);
  if (row_offset) request.row_offset = static_cast<std::int32_t>(std::min(*row_offset, unsigned{INT32_MAX}));
  if (plane_offset) request.plane_offset = static_cast<std::int32_t>(std::min(*plane_offset, unsigned{INT32_MAX}));
  return request;
}

}  // namespace mdfs::tools
