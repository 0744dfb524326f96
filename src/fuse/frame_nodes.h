// The nodes of frames/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse/node_table.h"
#include "views/frames.h"
#include "volume/volume.h"

namespace mdfs::fuse {

// True if a name of the sequence fits a directory; the image is shown as this.
bool has_frames(const views::ShownImage& image, std::string_view image_name);
// frames/ of a view. kNotFound: the image has none.
Result<NodeSpec> frames_in_view(volume::Volume& volume, const Node& view);
// A frame is the kWindow that it shows. kNotFound: no such frame.
Result<NodeSpec> frame_child(volume::Volume& volume, const Node& directory, std::string_view name);
// kNotFound if the image has no frames any more.
Status check_frames_node(volume::Volume& volume, const NodeSpec& spec);
// As read_view_directory().
Result<std::vector<volume::DirectoryEntry>> read_frames_directory(volume::Volume& volume, const Node& node,
                                                                  std::uint64_t offset, std::size_t limit);

}  // namespace mdfs::fuse
