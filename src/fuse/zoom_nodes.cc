// Nodes of Deep Zoom.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/zoom_nodes.h"

#include <dirent.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "fuse/iiif_nodes.h"
#include "fuse/listing.h"
#include "fuse/shown_image.h"

namespace mdfs::fuse {
namespace {

using geometry::Geometry;
using views::ZoomKind;
using views::ZoomName;

NodeSpec zoom_spec(const Node& directory, const ZoomName& zoom) {
  const bool is_file = !views::is_directory(zoom.kind);
  return {.kind = is_file ? NodeKind::kZoomFile : NodeKind::kZoomDirectory,
          .ino = directory.spec.ino,
          .parent = is_file ? 0 : directory.id,
          .name = directory.spec.name,
          .window = {},
          .canonical = views::to_key(zoom),
          .zoom = zoom};
}

// What a picture has in its directory, an image or a plane.
using Name = std::pair<std::string_view, std::uint8_t>;
constexpr std::array kOfPicture = {Name{views::kZoomDescriptionName, DT_REG}, Name{views::kZoomTilesName, DT_DIR},
                                   Name{views::kIiifName, DT_DIR}};

// What a directory lists beside its dots: `count` entries, made one by one, because there may be many.
class Entries {
 public:
  static Result<Entries> of(const views::ShownImage& image, const ZoomName& directory) {
    Entries entries(image.geometry, directory);
    if (directory.kind == ZoomKind::kPlanes) entries.axes_ = views::plane_axes(image);
    if (directory.kind != ZoomKind::kLevel && directory.kind != ZoomKind::kTiles) return entries;
    MDFS_TRY_ASSIGN(entries.picture_, views::zoom_picture(image, directory.plane));
    if (directory.kind == ZoomKind::kLevel) entries.grid_ = views::zoom_grid(*entries.picture_, directory.level);
    return entries;
  }

  std::uint64_t count() const {
    switch (directory_.kind) {
      case ZoomKind::kPlanes:
        return axes_.size();
      case ZoomKind::kPlaneAxis:
        return image_.shape[directory_.plane->axis];
      case ZoomKind::kPlane:
        return kOfPicture.size() + 1;
      case ZoomKind::kTiles:
        return picture_->coarsest + 1;
      case ZoomKind::kLevel:
        return grid_.columns * grid_.rows;
      case ZoomKind::kDescription:
        break;
    }
    return 0;
  }

  ListedEntry at(std::uint64_t number) const {
    if (directory_.kind == ZoomKind::kPlanes) return {.name = image_.axes.substr(axes_[number], 1), .type = DT_DIR};
    if (directory_.kind == ZoomKind::kPlane && number == kOfPicture.size())
      return {.name = std::string(kWindowsName), .type = DT_DIR};
    if (directory_.kind == ZoomKind::kPlane)
      return {.name = std::string(kOfPicture[number].first), .type = kOfPicture[number].second};
    if (directory_.kind == ZoomKind::kTiles)
      return {.name = std::to_string(picture_->lowest() + number), .type = DT_DIR};
    if (directory_.kind != ZoomKind::kLevel) return {.name = std::to_string(number), .type = DT_DIR};
    return {.name = views::tile_name(*picture_, number % grid_.columns, number / grid_.columns), .type = DT_REG};
  }

 private:
  Entries(const Geometry& image, const ZoomName& directory) : image_(image), directory_(directory) {}

  Geometry image_;
  ZoomName directory_;
  std::vector<unsigned> axes_;                 // kPlanes
  std::optional<views::ZoomPicture> picture_;  // kTiles, kLevel
  views::ZoomGrid grid_;                       // kLevel
};

}  // namespace

Result<NodeSpec> zoom_in_view(volume::Volume& volume, const Node& view, std::string_view name) {
  ZoomName zoom;
  if (name == views::kIiifName) {
    MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(volume, view.spec.ino));
    MDFS_TRY(views::zoom_picture(image, {}));
    return iiif_root(view);
  }
  if (name == views::kZoomDescriptionName) {
    zoom.kind = ZoomKind::kDescription;
  } else if (name == views::kZoomTilesName) {
    zoom.kind = ZoomKind::kTiles;
  } else if (name != views::kPlanesName) {
    return Error{Errc::kNotFound, std::string(name)};
  }
  NodeSpec spec = zoom_spec(view, zoom);
  MDFS_TRY(check_zoom_node(volume, spec));
  return spec;
}

std::vector<std::pair<std::string_view, std::uint8_t>> zoom_names_in_view(const views::ShownImage& image) {
  if (!views::plane_axes(image).empty()) return {{views::kPlanesName, DT_DIR}};
  if (views::zoom_picture(image, {}).ok()) return {kOfPicture.begin(), kOfPicture.end()};
  return {};
}

Result<NodeSpec> zoom_child(volume::Volume& volume, const Node& directory, std::string_view name) {
  const ZoomName& zoom = directory.spec.zoom;
  MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(volume, directory.spec.ino));
  if (zoom.kind == ZoomKind::kPlane && name == views::kIiifName) return iiif_root(directory);
  if (zoom.kind == ZoomKind::kPlane && name == kWindowsName)
    return NodeSpec{.kind = NodeKind::kWindows,
                    .ino = directory.spec.ino,
                    .parent = directory.id,
                    .name = std::string(name),
                    .window = {},
                    .canonical = {},
                    .zoom = zoom};
  if (zoom.kind != ZoomKind::kLevel) {
    MDFS_TRY_ASSIGN(const ZoomName entry, views::zoom_entry(image, zoom, name));
    return zoom_spec(directory, entry);
  }
  MDFS_TRY_ASSIGN(const views::ZoomPicture picture, views::zoom_picture(image, zoom.plane));
  MDFS_TRY_ASSIGN(const views::WindowName tile, views::parse_tile_name(picture, zoom.level, name));
  return window_spec(directory.spec.ino, tile);
}

Status check_zoom_node(volume::Volume& volume, const NodeSpec& spec) {
  MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(volume, spec.ino));
  return views::check_zoom_name(image, spec.zoom);
}

Result<std::string> zoom_text(const views::ShownImage& image, const NodeSpec& spec) {
  MDFS_TRY_ASSIGN(const views::ZoomPicture picture, views::zoom_picture(image, spec.zoom.plane));
  return views::zoom_description(picture);
}

Result<std::vector<volume::DirectoryEntry>> read_zoom_directory(volume::Volume& volume, const Node& node,
                                                                std::uint64_t offset, std::size_t limit) {
  MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(volume, node.spec.ino));
  MDFS_TRY(views::check_zoom_name(image, node.spec.zoom));
  MDFS_TRY_ASSIGN(const Entries all, Entries::of(image, node.spec.zoom));
  return list_directory(node, all.count(), offset, limit, [&](std::uint64_t number) { return all.at(number); });
}

}  // namespace mdfs::fuse
