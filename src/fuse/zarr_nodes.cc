// Nodes of ome.zarr/.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/zarr_nodes.h"

#include <dirent.h>

#include <algorithm>
#include <string>
#include <utility>

#include "views/zarr_chunk.h"
#include "views/zarr_json.h"

namespace mdfs::fuse {
namespace {

using geometry::Geometry;
using views::ZarrKind;
using views::ZarrName;

constexpr std::uint64_t kDots = 2;  // "." and ".." come before all other entries

NodeSpec spec_of(volume::Ino image, NodeId directory, const ZarrName& zarr) {
  const bool is_file = !views::is_directory(zarr.kind);
  return {.kind = is_file ? NodeKind::kZarrFile : NodeKind::kZarrDirectory,
          .ino = image,
          .parent = is_file ? 0 : directory,
          .name = {},
          .window = {},
          .canonical = views::to_key(zarr),
          .zarr = zarr};
}

// The numbers of entries of a directory of chunks, from `next` on, at most `limit`.
Result<std::vector<std::uint64_t>> numbers_from(volume::Volume& volume, const Geometry& geometry, const NodeSpec& spec,
                                                std::uint64_t next, std::size_t limit, const engine::Stop& stop) {
  const views::ZarrAxis axis = views::zarr_axes(geometry)[spec.zarr.depth];
  std::vector<std::uint64_t> numbers;
  if (!views::holds_chunks(geometry, spec.zarr)) {
    for (; next < views::chunks_along(geometry, axis) && numbers.size() < limit; ++next) numbers.push_back(next);
    return numbers;
  }
  geometry::Coord extent = views::extent_of(geometry, spec.zarr);
  if (axis.axis != views::ZarrAxis::kChannels) {  // then it is the fastest axis of the image
    extent[axis.axis] = next;
    return volume.written_in_row(spec.ino, extent, limit, stop);
  }
  MDFS_TRY_ASSIGN(const bool written, volume.is_written(spec.ino, extent));
  if (written && next == 0) numbers.push_back(0);
  return numbers;
}

}  // namespace

NodeSpec zarr_root(const Node& view) { return spec_of(view.spec.ino, view.id, {}); }

Result<NodeSpec> zarr_child(volume::Volume& volume, const Node& directory, std::string_view name) {
  MDFS_TRY_ASSIGN(const Geometry geometry, volume.image_geometry(directory.spec.ino));
  MDFS_TRY_ASSIGN(const ZarrName entry, views::zarr_entry(geometry, directory.spec.zarr, name));
  NodeSpec spec = spec_of(directory.spec.ino, directory.id, entry);
  MDFS_TRY(check_zarr_node(volume, spec));
  return spec;
}

Status check_zarr_node(volume::Volume& volume, const NodeSpec& spec) {
  MDFS_TRY_ASSIGN(const Geometry geometry, volume.image_geometry(spec.ino));
  if (!views::is_inside(geometry, spec.zarr)) return {Errc::kNotFound, spec.canonical + ": outside the image"};
  if (spec.zarr.kind != ZarrKind::kChunk) return {};
  MDFS_TRY_ASSIGN(const bool written, volume.is_written(spec.ino, views::extent_of(geometry, spec.zarr)));
  return written ? Status() : Status(Errc::kNotFound, spec.canonical + ": a hole");
}

std::uint64_t zarr_file_size(const Geometry& geometry, const ZarrName& name) {
  if (name.kind == ZarrKind::kGroupMetadata) return views::zarr_group_json(geometry).size();
  if (name.kind == ZarrKind::kArrayMetadata) return views::zarr_array_json(geometry).size();
  return geometry.extent_bytes();
}

Result<std::shared_ptr<views::View>> open_zarr_file(volume::Volume& volume, const Geometry& geometry,
                                                    const NodeSpec& spec) {
  if (!views::is_inside(geometry, spec.zarr)) return Error{Errc::kNotFound, spec.canonical + ": outside the image"};
  std::shared_ptr<views::View> view;
  if (spec.zarr.kind == ZarrKind::kGroupMetadata) {
    view = std::make_shared<views::TextView>(views::zarr_group_json(geometry));
  } else if (spec.zarr.kind == ZarrKind::kArrayMetadata) {
    view = std::make_shared<views::TextView>(views::zarr_array_json(geometry));
  } else {
    view = std::make_shared<views::ZarrChunk>(volume, spec.ino, geometry, views::extent_of(geometry, spec.zarr));
  }
  return view;
}

std::optional<geometry::Window> chunk_window(const Geometry& geometry, const ZarrName& name) {
  if (name.kind != ZarrKind::kChunk) return {};
  return views::window_of_extent(geometry, views::extent_of(geometry, name));
}

Result<std::vector<volume::DirectoryEntry>> read_zarr_directory(volume::Volume& volume, const Node& node,
                                                                std::uint64_t offset, std::size_t limit,
                                                                const engine::Stop& stop) {
  const ZarrName& directory = node.spec.zarr;
  MDFS_TRY_ASSIGN(const Geometry geometry, volume.image_geometry(node.spec.ino));
  if (!views::is_inside(geometry, directory)) return Error{Errc::kNotFound, node.spec.canonical};
  std::vector<volume::DirectoryEntry> entries;
  const auto add = [&](std::string name, std::uint8_t type, std::uint64_t number) {
    entries.push_back({.name = std::move(name), .ino = node.id, .type = type, .cookie = number + 1});
  };
  if (directory.kind != ZarrKind::kChunks) {
    const std::string_view second = directory.kind == ZarrKind::kGroup ? "0" : views::kZarrChunksName;
    const std::pair<std::string_view, std::uint8_t> all[] = {
        {".", DT_DIR}, {"..", DT_DIR}, {views::kZarrMetadataName, DT_REG}, {second, DT_DIR}};
    for (std::uint64_t i = offset; i < std::size(all) && entries.size() < limit; ++i)
      add(std::string(all[i].first), all[i].second, i);
    return entries;
  }
  for (; offset < kDots && entries.size() < limit; ++offset) add(offset == 0 ? "." : "..", DT_DIR, offset);
  if (entries.size() == limit) return entries;
  MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> numbers,
                  numbers_from(volume, geometry, node.spec, offset - kDots, limit - entries.size(), stop));
  const std::uint8_t type = views::holds_chunks(geometry, directory) ? DT_REG : DT_DIR;
  for (const std::uint64_t number : numbers) add(std::to_string(number), type, number + kDots);
  return entries;
}

}  // namespace mdfs::fuse
