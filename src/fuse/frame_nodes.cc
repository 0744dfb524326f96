// Nodes of sequences.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/frame_nodes.h"

#include <climits>
#include <string>

#include "fuse/listing.h"
#include "fuse/shown_image.h"

namespace mdfs::fuse {

bool has_frames(const views::ShownImage& image, std::string_view image_name) {
  const views::Frames frames = views::frames_of(image);
  return !frames.formats.empty() && views::frame_name(frames, image_name, frames.count - 1).size() <= NAME_MAX;
}

Result<NodeSpec> frames_in_view(volume::Volume& volume, const Node& view) {
  NodeSpec spec{.kind = NodeKind::kFrames,
                .ino = view.spec.ino,
                .parent = view.id,
                .name = view.spec.name,
                .window = {},
                .canonical = std::string(views::kFramesName)};
  MDFS_TRY(check_frames_node(volume, spec));
  return spec;
}

Result<NodeSpec> frame_child(volume::Volume& volume, const Node& directory, std::string_view name) {
  MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(volume, directory.spec.ino));
  MDFS_TRY_ASSIGN(const views::WindowName window, views::parse_frame_name(image, directory.spec.name, name));
  return window_spec(directory.spec.ino, window);
}

Status check_frames_node(volume::Volume& volume, const NodeSpec& spec) {
  MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(volume, spec.ino));
  if (has_frames(image, spec.name)) return {};
  return {Errc::kNotFound, "the image has no frames that are pictures"};
}

Result<std::vector<volume::DirectoryEntry>> read_frames_directory(volume::Volume& volume, const Node& node,
                                                                  std::uint64_t offset, std::size_t limit) {
  MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(volume, node.spec.ino));
  const views::Frames frames = views::frames_of(image);
  return list_directory(node, frames.names(), offset, limit, [&](std::uint64_t number) {
    return ListedEntry{views::frame_name(frames, node.spec.name, number), DT_REG};
  });
}

}  // namespace mdfs::fuse
