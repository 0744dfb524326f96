// The nodes of Deep Zoom: dz.dzi, dz_files/ and plane/, as far as they are no windows; and the way to iiif/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fuse/node_table.h"
#include "volume/volume.h"

namespace mdfs::fuse {

constexpr bool is_of_zoom(const NodeSpec& spec) {
  return spec.kind == NodeKind::kZoomDirectory || spec.kind == NodeKind::kZoomFile;
}

// dz.dzi, dz_files/, iiif/ or plane/ of a view. kNotFound: another name, or the image has no such picture.
Result<NodeSpec> zoom_in_view(volume::Volume& volume, const Node& view, std::string_view name);
// The names of those that the image has, with their types (DT_REG, DT_DIR).
std::vector<std::pair<std::string_view, std::uint8_t>> zoom_names_in_view(const views::ShownImage& image);
// The entry of a directory; a tile is the kWindow that it shows. kNotFound: malformed, or outside the picture.
Result<NodeSpec> zoom_child(volume::Volume& volume, const Node& directory, std::string_view name);
// kNotFound if the node does not exist any more: the shape of the image has changed.
Status check_zoom_node(volume::Volume& volume, const NodeSpec& spec);
// The text of a kZoomFile. kNotFound as check_zoom_node().
Result<std::string> zoom_text(const views::ShownImage& image, const NodeSpec& spec);
// As read_view_directory().
Result<std::vector<volume::DirectoryEntry>> read_zoom_directory(volume::Volume& volume, const Node& node,
                                                                std::uint64_t offset, std::size_t limit);

}  // namespace mdfs::fuse
