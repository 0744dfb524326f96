// Freeing the data of deleted objects.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/free_data.h"

#include "format/cell_copies.h"
#include "format/extent_copies.h"
#include "format/file_cell.h"
#include "format/geometry_item.h"
#include "format/strip.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

Status free_page(store::Transaction& transaction, const store::Item& item, const format::ExtentTableShape& shape,
                 std::uint32_t block_size) {
  MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(item.value, shape));
  const format::Key of_copies = format::copies_key(item.key);
  MDFS_TRY_ASSIGN(const auto value, transaction.get(of_copies));
  format::CopyPage copies;
  if (value) {
    MDFS_TRY_ASSIGN(copies, format::CopyPage::decode(*value, shape));
    transaction.erase(of_copies);
  }
  for (const format::ParityGroup& group : copies.groups())
    for (const store::Run& run : group.own_runs(block_size)) transaction.free(run);
  for (unsigned place = 0; place < shape.places(); ++place) {
    MDFS_TRY_ASSIGN(const auto extent, format::read_pieces(transaction, item.key, page, &copies, place, block_size));
    if (!extent) return {Errc::kCorrupt, "extent-runs.missing"};
    for (const store::Run& run : extent->all_runs()) transaction.free(run);
    if (extent->has_runs_item) transaction.erase(format::extent_runs_key(item.key, place));
    if (extent->copy_has_runs_item) transaction.erase(format::copy_runs_key(item.key, place));
  }
  return {};
}

Status free_cell(store::Transaction& transaction, const store::Item& item, std::uint32_t block_size) {
  format::CellPieces pieces;
  MDFS_TRY_ASSIGN(pieces.first, format::decode_file_cell(item.value, block_size));
  MDFS_TRY_ASSIGN(const auto copies, transaction.get(format::cell_copies_key(item.key)));
  if (copies) MDFS_TRY(format::decode_cell_copies(*copies, block_size, pieces));
  for (const store::Run& run : pieces.all_runs()) transaction.free(run);
  if (pieces.has_copies()) transaction.erase(format::cell_copies_key(item.key));
  return {};
}

void free_strip(store::Transaction& transaction, const format::Strip& strip, std::uint32_t block_size) {
  for (unsigned place = 0; place < format::kMaxPlaces; ++place) {
    if (!strip.has(place)) continue;
    for (const store::Run& run : strip.stored_part(place, block_size).all_runs()) transaction.free(run);
  }
}

Result<bool> free_some_strips(store::Transaction& transaction, std::uint64_t object,
                              const format::ExtentTableShape& shape, std::uint32_t block_size, std::size_t at_once) {
  MDFS_TRY_ASSIGN(const auto items,
                  transaction.scan({object, MDFS_KIND_STRIP, 0}, {object, MDFS_KIND_STRIP, UINT64_MAX}, at_once));
  for (const store::Item& item : items) {
    MDFS_TRY_ASSIGN(const format::Strip strip, format::decode_strip(item.value, shape, block_size));
    free_strip(transaction, strip, block_size);
    transaction.erase(item.key);
  }
  return items.size() < at_once;
}

}  // namespace

Result<bool> free_some_data(store::Transaction& transaction, std::uint64_t object,
                            const std::optional<geometry::Geometry>& geometry, std::uint32_t block_size,
                            std::size_t items_at_once) {
  const std::uint64_t kind = geometry ? MDFS_KIND_EXTENTS : MDFS_KIND_FILE_CELL;
  if (!geometry) transaction.erase({object, MDFS_KIND_INLINE, 0});
  MDFS_TRY_ASSIGN(const auto items, transaction.scan({object, kind, 0}, {object, kind, UINT64_MAX}, items_at_once));
  format::ExtentTableShape shape;
  if (geometry) shape = format::table_shape(*geometry);
  for (const store::Item& item : items) {
    if (geometry) {
      MDFS_TRY(free_page(transaction, item, shape, block_size));
    } else {
      MDFS_TRY(free_cell(transaction, item, block_size));
    }
    transaction.erase(item.key);
  }
  if (items.size() == items_at_once || !geometry) return items.size() < items_at_once;
  return free_some_strips(transaction, object, shape, block_size, items_at_once - items.size());
}

}  // namespace mdfs::engine
