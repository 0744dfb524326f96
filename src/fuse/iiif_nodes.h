// The nodes of the IIIF Image API: iiif/ and what is in it, as far as they are no windows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse/node_table.h"
#include "volume/volume.h"

namespace mdfs::fuse {

constexpr bool is_of_iiif(const NodeSpec& spec) {
  return spec.kind == NodeKind::kIiifDirectory || spec.kind == NodeKind::kIiifFile;
}

// iiif/ of a view or of a plane.
NodeSpec iiif_root(const Node& directory);
// The entry of a directory; a picture is the kWindow that it shows. kNotFound: no level has the samples.
Result<NodeSpec> iiif_child(volume::Volume& volume, const Node& directory, std::string_view name);
// kNotFound if the image has no such picture any more.
Status check_iiif_node(volume::Volume& volume, const NodeSpec& spec);
// The text of a kIiifFile. kNotFound as check_iiif_node().
Result<std::string> iiif_text(volume::Volume& volume, const NodeSpec& spec);
// As read_view_directory(). Regions and sizes are not listed: there are too many.
std::vector<volume::DirectoryEntry> read_iiif_directory(const Node& node, std::uint64_t offset, std::size_t limit);

}  // namespace mdfs::fuse
