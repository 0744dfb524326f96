// Nodes of IIIF.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/iiif_nodes.h"

#include <dirent.h>
#include <fmt/format.h>

#include <utility>

#include "fuse/listing.h"
#include "fuse/shown_image.h"

namespace mdfs::fuse {
namespace {

using views::IiifKind;
using views::IiifName;

// A server whose root is that of the volume finds the images of the root by it. mdfs serve writes its own address.
std::string id_of(const std::string& image, const geometry::Geometry& geometry,
                  const std::optional<geometry::PlaneIndex>& plane) {
  const std::string folder =
      plane ? fmt::format("{}/{}/{}/", views::kPlanesName, geometry.axes.substr(plane->axis, 1), plane->index)
            : std::string();
  return fmt::format("/{}@/{}{}", image, folder, views::kIiifName);
}

NodeSpec iiif_spec(const Node& directory, const IiifName& iiif) {
  const bool is_file = !views::is_directory(iiif.kind);
  std::string canonical = views::to_key(iiif);
  // A file is one node for all directories that lead to it, but its text has the name of the image and the plane.
  if (is_file) canonical += fmt::format(":{}:{}", views::to_key(directory.spec.zoom), directory.spec.name);
  return {.kind = is_file ? NodeKind::kIiifFile : NodeKind::kIiifDirectory,
          .ino = directory.spec.ino,
          .parent = is_file ? 0 : directory.id,
          .name = directory.spec.name,
          .window = {},
          .canonical = std::move(canonical),
          .zoom = directory.spec.zoom,
          .iiif = iiif};
}

Result<views::ZoomPicture> picture_of(volume::Volume& volume, const NodeSpec& spec) {
  MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(volume, spec.ino));
  return views::zoom_picture(image, spec.zoom.plane);
}

}  // namespace

NodeSpec iiif_root(const Node& directory) { return iiif_spec(directory, {}); }

Result<NodeSpec> iiif_child(volume::Volume& volume, const Node& directory, std::string_view name) {
  MDFS_TRY_ASSIGN(const views::ZoomPicture picture, picture_of(volume, directory.spec));
  if (directory.spec.iiif.kind == IiifKind::kRotation) {
    MDFS_TRY_ASSIGN(const views::WindowName window, views::iiif_picture(picture, directory.spec.iiif, name));
    return window_spec(directory.spec.ino, window);
  }
  MDFS_TRY_ASSIGN(const IiifName entry, views::iiif_entry(picture, directory.spec.iiif, name));
  return iiif_spec(directory, entry);
}

Status check_iiif_node(volume::Volume& volume, const NodeSpec& spec) {
  MDFS_TRY(picture_of(volume, spec));
  return {};
}

Result<std::string> iiif_text(volume::Volume& volume, const NodeSpec& spec) {
  MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(volume, spec.ino));
  MDFS_TRY_ASSIGN(const views::ZoomPicture picture, views::zoom_picture(image, spec.zoom.plane));
  return views::iiif_info(picture, id_of(spec.name, image.geometry, spec.zoom.plane));
}

std::vector<volume::DirectoryEntry> read_iiif_directory(const Node& node, std::uint64_t offset, std::size_t limit) {
  const bool is_service = node.spec.iiif.kind == IiifKind::kService;
  return list_directory(node, is_service ? 1 : 0, offset, limit, [](std::uint64_t) {
    return ListedEntry{std::string(views::kIiifInfoName), DT_REG};
  });
}

}  // namespace mdfs::fuse
