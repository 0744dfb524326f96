// The nodes of ome.zarr/: their specifications, whether they exist, their files and lists.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse/node_table.h"
#include "fuse/staged_files.h"
#include "views/chunk_writer.h"
#include "views/staging.h"
#include "volume/volume.h"

namespace mdfs::fuse {

constexpr bool is_of_zarr(const NodeSpec& spec) {
  return spec.kind == NodeKind::kZarrDirectory || spec.kind == NodeKind::kZarrFile;
}

// ome.zarr/ of a view.
NodeSpec zarr_root(const Node& view);
// The entry of a directory. kNotFound: malformed, outside the grid, or the chunk of a hole.
Result<NodeSpec> zarr_child(volume::Volume& volume, const Node& directory, std::string_view name);
// kNotFound if the node does not exist any more: the image has become smaller, or the chunk a hole.
Status check_zarr_node(volume::Volume& volume, const NodeSpec& spec);

// Clients may write chunks, and files beside them, in the directory: one under c/, of whichever level.
bool is_chunk_directory(const NodeSpec& spec);
// A chunk of the image itself, which a client may write.
bool is_written_chunk(const NodeSpec& spec);
// The chunk that the entry `name` of a directory is, whether a hole or not. kNotPermitted: no chunk; kReadOnly: of a
// level.
Result<NodeSpec> chunk_to_write(volume::Volume& volume, const Node& directory, std::string_view name);
// The same of a temporary name (views::chunk_of_temporary).
Result<NodeSpec> chunk_to_stage(volume::Volume& volume, const Node& directory, std::string_view name);
// kNotFound: the image has become smaller.
Result<std::unique_ptr<views::ChunkWriter>> chunk_writer(volume::Volume& volume, volume::Ino image,
                                                         const views::ZarrName& chunk, views::StagingPool& pool,
                                                         std::uint32_t owner, bool truncated);
// Of staged files.
std::string staged_key(const NodeSpec& directory, std::string_view name);
NodeSpec staged_spec(std::shared_ptr<StagedFile> file);

// True if the chunk of an image with a codec is shown as a plain frame of this size, even though it may be stored as a
// frame (NodeTable::shows_plain).
using ShowsPlain = std::function<bool(bool is_stored, std::uint64_t plain_bytes)>;
// Exact, but for a damaged frame of a level: only open_zarr_file() reads it, and shows a plain frame. The node exists.
Result<std::uint64_t> zarr_file_size(volume::Volume& volume, const NodeSpec& spec, const ShowsPlain& plain);
// The node exists, or did a moment ago: kNotFound if the image has become smaller.
// Computed chunks of levels count against `owner` in the pool.
Result<std::shared_ptr<views::View>> open_zarr_file(volume::Volume& volume, const NodeSpec& spec,
                                                    views::StagingPool& pool, std::uint32_t owner,
                                                    const ShowsPlain& plain, const engine::Stop& stop);
// The samples of the image that a chunk shows; nothing for other nodes, and for chunks of
// levels, which the kernel does not cache. The node is inside the image.
std::optional<geometry::Window> chunk_window(const geometry::Geometry& geometry, const views::ZarrName& name);
// As read_view_directory(). Chunks that are holes are left out.
Result<std::vector<volume::DirectoryEntry>> read_zarr_directory(volume::Volume& volume, const Node& node,
                                                                std::uint64_t offset, std::size_t limit,
                                                                const engine::Stop& stop);

}  // namespace mdfs::fuse
