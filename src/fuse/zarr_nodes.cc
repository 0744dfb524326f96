// Nodes of ome.zarr/.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/zarr_nodes.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/stop.h"
#include "codec/plain_frame.h"
#include "fuse/listing.h"
#include "geometry/level.h"
#include "views/frame_chunk.h"
#include "views/zarr_chunk.h"
#include "views/zarr_json.h"

namespace mdfs::fuse {
namespace {

using geometry::Geometry;
using views::ZarrKind;
using views::ZarrName;

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

// What the nodes of one level are about. kNotFound: the image does not store the level any more.
struct LevelOfImage {
  Geometry image;
  Geometry geometry;  // of the level
  views::ZarrLevels stored;
};
Result<LevelOfImage> level_of(volume::Volume& volume, const NodeSpec& spec) {
  LevelOfImage level;
  MDFS_TRY_ASSIGN(const auto stored, volume.stored_levels(spec.ino));
  level.stored = {stored.first, stored.second};
  if (spec.zarr.level > stored.first) return Error{Errc::kNotFound, spec.canonical + ": the level is not stored"};
  MDFS_TRY_ASSIGN(level.image, volume.image_geometry(spec.ino));
  level.geometry = level.image;
  for (unsigned n = 0; n < spec.zarr.level; ++n) level.geometry = geometry::geometry_above(std::move(level.geometry));
  return level;
}

// Chunks are frames of a codec, or else the samples.
bool has_frames(const Geometry& geometry) { return geometry.codec != geometry::Codec::kRaw; }

std::unique_ptr<views::View> decoded_chunk(volume::Volume& volume, const NodeSpec& spec, const LevelOfImage& level,
                                           views::StagingPool& pool, std::uint32_t owner) {
  const geometry::Coord extent = views::extent_of(level.geometry, spec.zarr);
  if (spec.zarr.level == 0) return std::make_unique<views::ZarrChunk>(volume, spec.ino, level.geometry, extent);
  const views::ZarrChunk::LevelExtent of{spec.zarr.level, level.geometry, extent};
  return std::make_unique<views::ZarrChunk>(volume, spec.ino, level.image, of, pool, owner);
}

// The numbers of entries of a directory of chunks, from `next` on, at most `limit`.
Result<std::vector<std::uint64_t>> numbers_from(volume::Volume& volume, const Geometry& geometry, const NodeSpec& spec,
                                                std::uint64_t next, std::size_t limit, const engine::Stop& stop) {
  const views::ZarrAxis axis = views::zarr_axes(geometry)[spec.zarr.depth];
  std::vector<std::uint64_t> numbers;
  if (!views::holds_chunks(geometry, spec.zarr) || spec.zarr.level > 0) {  // what is not built is built when it is read
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

// The chunk that `find` gives for a name in a directory.
template <typename Find>
Result<NodeSpec> written_chunk(volume::Volume& volume, const Node& directory, std::string_view name, const Find& find) {
  const Error no_chunk{
      Errc::kNotPermitted,
      std::string(name) + ": only chunks can be written, as KEY, KEY.__lock, or " + "KEY.<anything>.partial"};
  if (!is_chunk_directory(directory.spec)) return no_chunk;
  MDFS_TRY_ASSIGN(const LevelOfImage level, level_of(volume, directory.spec));
  const Result<ZarrName> chunk = find(level, directory.spec.zarr, name);
  if (!chunk.ok() || chunk->kind != ZarrKind::kChunk || !views::is_inside(level.geometry, *chunk)) return no_chunk;
  if (chunk->level > 0) return Error{Errc::kReadOnly, "levels follow from the image"};
  return spec_of(directory.spec.ino, directory.id, *chunk);
}

}  // namespace

NodeSpec zarr_root(const Node& view) { return spec_of(view.spec.ino, view.id, {}); }

Result<NodeSpec> zarr_child(volume::Volume& volume, const Node& directory, std::string_view name) {
  MDFS_TRY_ASSIGN(const LevelOfImage level, level_of(volume, directory.spec));
  MDFS_TRY_ASSIGN(const ZarrName entry,
                  views::zarr_entry(level.geometry, level.stored.count, directory.spec.zarr, name));
  NodeSpec spec = spec_of(directory.spec.ino, directory.id, entry);
  MDFS_TRY(check_zarr_node(volume, spec));
  return spec;
}

Status check_zarr_node(volume::Volume& volume, const NodeSpec& spec) {
  MDFS_TRY_ASSIGN(const LevelOfImage level, level_of(volume, spec));
  const Geometry& geometry = level.geometry;
  if (!views::is_inside(geometry, spec.zarr)) return {Errc::kNotFound, spec.canonical + ": outside the image"};
  if (spec.zarr.kind != ZarrKind::kChunk || spec.zarr.level > 0) return {};
  MDFS_TRY_ASSIGN(const bool written, volume.is_written(spec.ino, views::extent_of(geometry, spec.zarr)));
  return written ? Status() : Status(Errc::kNotFound, spec.canonical + ": a hole");
}

bool is_chunk_directory(const NodeSpec& spec) {
  return spec.kind == NodeKind::kZarrDirectory && spec.zarr.kind == ZarrKind::kChunks;
}

bool is_written_chunk(const NodeSpec& spec) {
  return spec.kind == NodeKind::kZarrFile && spec.zarr.kind == ZarrKind::kChunk && spec.zarr.level == 0;
}

Result<NodeSpec> chunk_to_write(volume::Volume& volume, const Node& directory, std::string_view name) {
  return written_chunk(volume, directory, name, [](const LevelOfImage& level, const ZarrName& in, std::string_view of) {
    return views::zarr_entry(level.geometry, level.stored.count, in, of);
  });
}

Result<NodeSpec> chunk_to_stage(volume::Volume& volume, const Node& directory, std::string_view name) {
  return written_chunk(volume, directory, name, [](const LevelOfImage& level, const ZarrName& in, std::string_view of) {
    return views::chunk_of_temporary(level.geometry, in, of);
  });
}

Result<std::unique_ptr<views::ChunkWriter>> chunk_writer(volume::Volume& volume, volume::Ino image,
                                                         const ZarrName& chunk, views::StagingPool& pool,
                                                         std::uint32_t owner, bool truncated) {
  MDFS_TRY_ASSIGN(const Geometry geometry, volume.image_geometry(image));
  if (!views::is_inside(geometry, chunk)) return Error{Errc::kNotFound, views::to_key(chunk) + ": outside the image"};
  return views::ChunkWriter::create(volume, image, geometry, views::extent_of(geometry, chunk), pool, owner, truncated);
}

std::string staged_key(const NodeSpec& directory, std::string_view name) {
  return fmt::format("{}/{}/{}", directory.ino, views::to_key(directory.zarr), name);
}

NodeSpec staged_spec(std::shared_ptr<StagedFile> file) {
  return {.kind = NodeKind::kStagedFile,
          .ino = file->image,
          .parent = 0,
          .name = {},
          .window = {},
          .canonical = std::to_string(file->number),
          .staged = file};
}

Result<std::uint64_t> zarr_file_size(volume::Volume& volume, const NodeSpec& spec, const ShowsPlain& plain) {
  MDFS_TRY_ASSIGN(const LevelOfImage level, level_of(volume, spec));
  if (spec.zarr.kind == ZarrKind::kGroupMetadata) return views::zarr_group_json(level.image, level.stored).size();
  if (spec.zarr.kind == ZarrKind::kArrayMetadata) return views::zarr_array_json(level.geometry).size();
  if (!has_frames(level.geometry)) return level.geometry.extent_bytes();
  if (!views::is_inside(level.geometry, spec.zarr)) return std::uint64_t{0};
  const std::uint64_t plain_bytes = codec::plain_frame_bytes(level.geometry.extent_bytes());
  MDFS_TRY_ASSIGN(const auto frame,
                  volume.pin_frame(spec.ino, spec.zarr.level, views::extent_of(level.geometry, spec.zarr), is_stopped));
  return plain(frame != nullptr, plain_bytes) ? plain_bytes : frame->size_bytes();
}

Result<std::shared_ptr<views::View>> open_zarr_file(volume::Volume& volume, const NodeSpec& spec,
                                                    views::StagingPool& pool, std::uint32_t owner,
                                                    const ShowsPlain& plain, const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const LevelOfImage level, level_of(volume, spec));
  const Geometry& geometry = level.geometry;
  if (!views::is_inside(geometry, spec.zarr)) return Error{Errc::kNotFound, spec.canonical + ": outside the image"};
  std::shared_ptr<views::View> view;
  if (spec.zarr.kind == ZarrKind::kGroupMetadata) {
    view = std::make_shared<views::TextView>(views::zarr_group_json(level.image, level.stored));
  } else if (spec.zarr.kind == ZarrKind::kArrayMetadata) {
    view = std::make_shared<views::TextView>(views::zarr_array_json(geometry));
  } else if (!has_frames(geometry)) {
    view = decoded_chunk(volume, spec, level, pool, owner);
  } else {
    MDFS_TRY_ASSIGN(
        view, views::open_stored_chunk(volume, spec.ino, spec.zarr.level, views::extent_of(geometry, spec.zarr), stop));
    if (plain(view != nullptr, codec::plain_frame_bytes(geometry.extent_bytes())))
      view = std::make_shared<views::PlainChunk>(decoded_chunk(volume, spec, level, pool, owner));
  }
  return view;
}

std::optional<geometry::Window> chunk_window(const Geometry& geometry, const ZarrName& name) {
  if (name.kind != ZarrKind::kChunk || name.level > 0) return {};
  return geometry::window_of_extent(geometry, views::extent_of(geometry, name));
}

Result<std::vector<volume::DirectoryEntry>> read_zarr_directory(volume::Volume& volume, const Node& node,
                                                                std::uint64_t offset, std::size_t limit,
                                                                const engine::Stop& stop) {
  const ZarrName& directory = node.spec.zarr;
  MDFS_TRY_ASSIGN(const LevelOfImage level, level_of(volume, node.spec));
  const Geometry& geometry = level.geometry;
  if (!views::is_inside(geometry, directory)) return Error{Errc::kNotFound, node.spec.canonical};
  if (directory.kind != ZarrKind::kChunks) {
    std::vector<ListedEntry> all = {{std::string(views::kZarrMetadataName), DT_REG}};
    if (directory.kind == ZarrKind::kArray) {
      all.push_back({std::string(views::kZarrChunksName), DT_DIR});
    } else {
      for (unsigned n = 0; n <= level.stored.count; ++n) all.push_back({std::to_string(n), DT_DIR});
    }
    return list_directory(node, all.size(), offset, limit, [&](std::uint64_t number) { return all[number]; });
  }
  // Which chunks exist is in the tree: their numbers have gaps.
  std::vector<volume::DirectoryEntry> entries =
      list_directory(node, 0, offset, limit, [](std::uint64_t) { return ListedEntry(); });
  if (entries.size() == limit) return entries;
  const std::uint64_t first = std::max(offset, kDots) - kDots;
  MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> numbers,
                  numbers_from(volume, geometry, node.spec, first, limit - entries.size(), stop));
  const std::uint8_t type = views::holds_chunks(geometry, directory) ? DT_REG : DT_DIR;
  for (const std::uint64_t number : numbers)
    entries.push_back({.name = std::to_string(number), .ino = node.id, .type = type, .cookie = number + kDots + 1});
  return entries;
}

}  // namespace mdfs::fuse
