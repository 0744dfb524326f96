// The tree of names of a Zarr group.
// SPDX-License-Identifier: Apache-2.0
#include "views/zarr_name.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"

namespace mdfs::views {
namespace {

using geometry::Geometry;

constexpr std::string_view kLockSuffix = ".__lock", kPartialSuffix = ".partial";

Error no_entry(std::string_view name) { return Error{Errc::kNotFound, std::string(name)}; }

}  // namespace

std::vector<ZarrAxis> zarr_axes(const Geometry& geometry) {
  std::vector<ZarrAxis> axes;
  bool has_channels = geometry.channels == 1;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    if (!has_channels && geometry::is_space_axis(geometry.axes[axis])) {
      axes.push_back({ZarrAxis::kChannels});
      has_channels = true;
    }
    axes.push_back({axis});
  }
  if (!has_channels) axes.push_back({ZarrAxis::kChannels});
  return axes;
}

std::uint64_t chunks_along(const Geometry& geometry, ZarrAxis axis) {
  return axis.axis == ZarrAxis::kChannels ? 1 : geometry.grid()[axis.axis];
}

Result<ZarrName> zarr_entry(const Geometry& geometry, unsigned levels, const ZarrName& directory,
                            std::string_view name) {
  ZarrName entry = directory;
  switch (directory.kind) {
    case ZarrKind::kGroup: {
      entry.kind = ZarrKind::kGroupMetadata;
      if (name == kZarrMetadataName) return entry;
      entry.kind = ZarrKind::kArray;
      const auto level = parse_index(name);
      if (!level || *level > levels) return no_entry(name);
      entry.level = static_cast<unsigned>(*level);
      return entry;
    }
    case ZarrKind::kArray:
      entry.kind = name == kZarrMetadataName ? ZarrKind::kArrayMetadata : ZarrKind::kChunks;
      if (name != kZarrMetadataName && name != kZarrChunksName) return no_entry(name);
      return entry;
    case ZarrKind::kChunks: {
      const std::vector<ZarrAxis> axes = zarr_axes(geometry);
      const auto number = parse_index(name);
      if (!number || *number >= chunks_along(geometry, axes[directory.depth])) return no_entry(name);
      entry.index[entry.depth++] = *number;
      if (entry.depth == axes.size()) entry.kind = ZarrKind::kChunk;
      return entry;
    }
    case ZarrKind::kGroupMetadata:
    case ZarrKind::kArrayMetadata:
    case ZarrKind::kChunk:
      break;
  }
  return Error{Errc::kNotDirectory, std::string(name)};
}

bool is_lock_name(std::string_view name) { return name.ends_with(kLockSuffix); }

Result<ZarrName> chunk_of_temporary(const Geometry& geometry, const ZarrName& directory, std::string_view name) {
  if (!holds_chunks(geometry, directory)) return no_entry(name);
  std::string_view key = name.substr(0, name.find('.'));
  const std::string_view rest = name.substr(key.size());
  const bool partial = rest.ends_with(kPartialSuffix) && rest.size() > kPartialSuffix.size() + 1;
  if (rest != kLockSuffix && !partial) return no_entry(name);
  return zarr_entry(geometry, directory.level, directory, key);
}

bool is_inside(const Geometry& geometry, const ZarrName& name) {
  const std::vector<ZarrAxis> axes = zarr_axes(geometry);
  if (name.depth > axes.size()) return false;
  for (unsigned i = 0; i < name.depth; ++i)
    if (name.index[i] >= chunks_along(geometry, axes[i])) return false;
  return true;
}

bool holds_chunks(const Geometry& geometry, const ZarrName& directory) {
  return directory.kind == ZarrKind::kChunks && directory.depth + 1 == zarr_axes(geometry).size();
}

geometry::Coord extent_of(const Geometry& geometry, const ZarrName& name) {
  const std::vector<ZarrAxis> axes = zarr_axes(geometry);
  MDFS_CHECK(name.depth <= axes.size());
  geometry::Coord extent{};
  for (unsigned i = 0; i < name.depth; ++i)
    if (axes[i].axis != ZarrAxis::kChannels) extent[axes[i].axis] = name.index[i];
  return extent;
}

std::string to_key(const ZarrName& name) {
  if (name.kind == ZarrKind::kGroup) return "group";
  if (name.kind == ZarrKind::kGroupMetadata) return "group/metadata";
  std::string key = fmt::format("{}", name.level);
  if (name.kind == ZarrKind::kArrayMetadata) key += "/metadata";
  if (name.kind == ZarrKind::kChunks || name.kind == ZarrKind::kChunk) key += "/c";
  for (unsigned i = 0; i < name.depth; ++i) key += fmt::format("/{}", name.index[i]);
  return key;
}

}  // namespace mdfs::views
