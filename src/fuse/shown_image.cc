// Reading the range of display.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/shown_image.h"

namespace mdfs::fuse {

Result<views::ShownImage> shown_image(volume::Volume& volume, volume::Ino ino) {
  MDFS_TRY_ASSIGN(views::ShownImage image, volume.image_geometry(ino));
  MDFS_TRY_ASSIGN(const auto levels, volume.stored_levels(ino));
  image.stored_levels = levels.first;
  const auto text = volume.get_xattr(ino, geometry::kDisplayAttribute);
  if (!text.ok() && text.error().code != Errc::kNoData) return text.error();
  if (!text.ok()) return image;
  const auto range = geometry::parse_display(as_text(*text));
  if (range.ok()) image.display = *range;
  return image;
}

}  // namespace mdfs::fuse
