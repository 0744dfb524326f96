// The nodes of ome.zarr/: their specifications, whether they exist, their files and lists.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse/node_table.h"
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

// Exact. The node exists.
Result<std::uint64_t> zarr_file_size(volume::Volume& volume, const NodeSpec& spec);
// The node exists, or did a moment ago: kNotFound if the image has become smaller.
// Computed chunks of levels count against `owner` in the pool.
Result<std::shared_ptr<views::View>> open_zarr_file(volume::Volume& volume, const NodeSpec& spec,
                                                    views::StagingPool& pool, std::uint32_t owner);
// The samples of the image that a chunk shows; nothing for other nodes, and for chunks of
// levels, which the kernel does not cache. The node is inside the image.
std::optional<geometry::Window> chunk_window(const geometry::Geometry& geometry, const views::ZarrName& name);
// As read_view_directory(). Chunks that are holes are left out.
Result<std::vector<volume::DirectoryEntry>> read_zarr_directory(volume::Volume& volume, const Node& node,
                                                                std::uint64_t offset, std::size_t limit,
                                                                const engine::Stop& stop);

}  // namespace mdfs::fuse
