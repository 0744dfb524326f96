// SPDX-License-Identifier: Apache-2.0
#include "views/tiff.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "geometry/padded_box.h"
#include "views/level_view.h"
#include "views/tiff_metadata.h"

namespace mdfs::views {

Result<TiffLayout> tiff_layout(volume::Volume& volume, volume::Ino image) {
  MDFS_TRY_ASSIGN(geometry::Geometry geometry, volume.image_geometry(image));
  MDFS_TRY_ASSIGN(const auto levels, volume.stored_levels(image));
  MDFS_TRY_ASSIGN(TiffMetadata metadata, read_tiff_metadata(volume, image));
  const unsigned shown = levels_in_tiff(geometry, levels.first);
  auto fields = tiff_fields(geometry, shown, metadata);
  return TiffLayout::of({.image = std::move(geometry),
                         .levels = shown,
                         .fields = std::move(fields),
                         .directories = std::move(metadata.exif.directories)});
}

Result<std::size_t> TiffView::read_newest(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(TiffLayout layout, tiff_layout(volume_, image_));
  return TiffView(volume_, image_, std::move(layout), pool_, owner_).read(offset, into, stop);
}

// From byte `offset` of the part's samples on, without padding.
Status TiffView::read_samples(const TiffLayout::Part& part, std::uint64_t offset, MutableBytes into,
                              const engine::Stop& stop) {
  if (part.level == 0) return volume_.read_window(image_, part.window, offset, into, stop);
  const Status stored =
      read_stored_level(volume_, image_, part.level, part.window, offset, into, kStoredAttempts, stop);
  if (stored.ok() || stored.error().code != Errc::kReadOnly) return stored;
  const WindowName tile{.window = part.window, .format = Format::kRaw, .level = part.level};
  MDFS_TRY_ASSIGN(const auto view, open_level(volume_, image_, layout_.geometry(), tile, pool_, owner_, stop));
  MDFS_TRY_ASSIGN(const std::size_t count, view->read(offset, into, stop));
  MDFS_CHECK(count == into.size());
  return {};
}

Status TiffView::read_part(const TiffLayout::Part& part, MutableBytes into, const engine::Stop& stop) {
  if (!layout_.is_tiled()) return read_samples(part, part.offset, into, stop);
  const unsigned x = layout_.geometry().rank - 1;
  const geometry::PaddedBox tile{
      .rank = 2,
      .length = {layout_.tile_rows(part), layout_.tile_row_bytes(part)},
      .inside = {part.window.length[x - 1], part.window.length[x] * layout_.geometry().sample_bytes()}};
  return geometry::read_padded(tile, part.offset, into, [&](std::uint64_t first, MutableBytes inside) {
    return read_samples(part, first, inside, stop);
  });
}

Result<std::size_t> TiffView::read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  into = cut_to_size(into, offset, size_bytes());
  const std::size_t total = into.size();
  if (const MutableBytes head = cut_to_size(into, offset, layout_.data_offset()); !head.empty()) {
    layout_.fill_head(offset, head);
    into = into.subspan(head.size());
    offset += head.size();
  }
  while (!into.empty()) {
    const TiffLayout::Part part = layout_.part_at(offset - layout_.data_offset());
    const std::size_t piece = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), part.bytes));
    MDFS_TRY(read_part(part, into.first(piece), stop));
    into = into.subspan(piece);
    offset += piece;
  }
  return total;
}

}  // namespace mdfs::views
