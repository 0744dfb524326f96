// Fuzz target: the values of all kinds of items. The first byte is the kind, two more what the decoder is told besides.
// SPDX-License-Identifier: Apache-2.0
#include "format/cell_copies.h"
#include "format/cell_parts.h"
#include "format/dirent.h"
#include "format/disk_errors.h"
#include "format/extent_copies.h"
#include "format/extents.h"
#include "format/file_cell.h"
#include "format/geometry_item.h"
#include "format/inode.h"
#include "format/operation.h"
#include "format/strip.h"
#include "fuzz.h"
#include "geometry/decompose.h"
#include "geometry/placement.h"

using namespace mdfs;

namespace {

// What was taken must come back from what it is written as.
template <typename T, typename Decode>
void check_round_trip(const T& value, const Decode& decode) {
  const ByteVector bytes = format::encode(value);
  MDFS_CHECK(bytes.size() <= MDFS_MAX_ITEM);
  const auto again = decode(bytes);
  MDFS_CHECK(again.ok() && *again == value);
}

void extents(ConstBytes value, unsigned detail) {
  format::ExtentTableShape shape;
  shape.codec = detail % 2 == 0 ? MDFS_CODEC_ZSTD : MDFS_CODEC_RAW;
  shape.extent_bytes = 1u << (detail / 2 % 25);
  auto page = format::ExtentPage::decode(value, shape);
  if (!page.ok()) return;
  const auto again = format::ExtentPage::decode(page->encode(), shape);
  MDFS_CHECK(again.ok() && *again == *page);
  unsigned found = 0;
  for (unsigned place = 0; place < format::kMaxPlaces; ++place) {
    const auto record = page->get(place);
    MDFS_CHECK(record.has_value() == page->has(place));
    if (!record) continue;
    ++found;
    MDFS_CHECK(record->crc32c.size() == shape.checksums() && record->stored_bytes <= format::kMaxStoredBytes);
    page->set(place, *record);
  }
  MDFS_CHECK(found == page->count() && *again == *page);
  for (unsigned place = 0; place < format::kMaxPlaces; ++place) page->erase(place);
  MDFS_CHECK(page->empty());
}

void file_cell(ConstBytes value, unsigned detail) {
  const std::uint32_t block_size = MDFS_MIN_BLOCK_SIZE << (detail % 5);
  auto cell = format::decode_file_cell(value, block_size);
  if (!cell.ok()) return;
  check_round_trip(*cell, [&](ConstBytes bytes) { return format::decode_file_cell(bytes, block_size); });
  const unsigned blocks = format::cell_blocks(block_size);
  unsigned covered = 0;
  for (unsigned block = 0; block < blocks; ++block) covered += cell->find(block) ? 1 : 0;
  MDFS_CHECK(covered == cell->blocks());
  const unsigned first = detail / 5 % blocks;
  std::uint64_t freed = 0;
  for (const format::Run& run : cell->punch(first, blocks - first)) freed += run.blocks;
  MDFS_CHECK(freed + cell->blocks() == covered);
}

void cell_copies(ConstBytes value, unsigned detail) {
  const std::uint32_t block_size = MDFS_MIN_BLOCK_SIZE << (detail % 5);
  format::CellPieces pieces;
  if (!format::decode_cell_copies(value, block_size, pieces).ok()) return;
  format::CellPieces again;
  MDFS_CHECK(format::decode_cell_copies(format::encode_cell_copies(pieces), block_size, again).ok() && again == pieces);
  pieces.first = pieces.copy;
  (void)pieces.first.punch(detail / 5 % format::cell_blocks(block_size), 1);
  pieces.drop_strays();
  MDFS_CHECK(pieces.first.block_mask() == pieces.copy.block_mask() && pieces.protected_blocks(0) == 0);
  unsigned covered = 0;
  for (const format::CellPart& part : format::cell_parts(pieces.first, pieces.copy, block_size)) {
    MDFS_CHECK(part.bytes.has_copy() && part.bytes.runs == part.bytes.copy);
    covered += static_cast<unsigned>(part.bytes.piece_blocks());
  }
  MDFS_CHECK(covered == pieces.first.blocks());
}

void geometry_item(ConstBytes value) {
  const auto decoded = format::decode_geometry(value);
  if (!decoded.ok()) return;
  MDFS_CHECK(decoded->size_bytes() <= geometry::kMaxImageBytes && decoded->extent_bytes() <= MDFS_MAX_EXTENT);
  if (!geometry::check(*decoded).ok()) return;
  check_round_trip(*decoded, format::decode_geometry);
  const auto bytes = geometry::byte_geometry(*decoded);
  const geometry::Window all = geometry::whole(*decoded);
  if (geometry::check(*decoded, all).ok()) (void)geometry::piece_count(bytes, geometry::byte_box(*decoded, all));
}

void placement(ConstBytes value, unsigned detail) {
  const auto decoded = format::decode_placement(value);
  if (!decoded.ok()) return;
  check_round_trip(*decoded, format::decode_placement);
  const geometry::Coord far = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 3};
  for (unsigned rank = 1; rank <= geometry::kMaxRank; ++rank)
    MDFS_CHECK(geometry::disk_of(*decoded, rank, detail * 0x9e3779b97f4a7c15u, far) < MDFS_MAX_DISKS);
  (void)geometry::check(*decoded, 1 + detail % MDFS_MAX_DISKS).ok();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Reader reader(fuzz::input(data, size));
  const unsigned kind = reader.take<std::uint8_t>() % 32u;
  const unsigned detail = reader.take<std::uint16_t>();
  const ConstBytes value = reader.take_bytes(MDFS_MAX_ITEM);
  switch (kind) {
    case MDFS_KIND_INODE:
      if (const auto inode = format::decode_inode(value); inode.ok()) check_round_trip(*inode, format::decode_inode);
      break;
    case MDFS_KIND_INLINE:
      (void)format::check_inline(value).ok();
      break;
    case MDFS_KIND_SYMLINK:
      if (const auto target = format::decode_symlink(value); target.ok())
        MDFS_CHECK(!target->empty() && target->size() <= MDFS_MAX_SYMLINK && target->find('\0') == std::string::npos);
      break;
    case MDFS_KIND_DIRENT:
      if (const auto entry = format::decode_dirent(value); entry.ok()) {
        MDFS_CHECK(format::valid_name(entry->name) && format::first_cookie({1, 2}, entry->name) >= format::kMinCookie);
        check_round_trip(*entry, format::decode_dirent);
      }
      break;
    case MDFS_KIND_XATTR:
      if (const auto xattr = format::decode_xattr(value); xattr.ok()) check_round_trip(*xattr, format::decode_xattr);
      break;
    case MDFS_KIND_GEOMETRY:
      geometry_item(value);
      break;
    case MDFS_KIND_EXTENTS:
      extents(value, detail);
      break;
    case MDFS_KIND_FILE_CELL:
      file_cell(value, detail);
      break;
    case MDFS_KIND_FILE_PARITY:
      cell_copies(value, detail);
      break;
    case MDFS_KIND_PLACEMENT:
      placement(value, detail);
      break;
    case MDFS_KIND_STRIP: {
      const format::ExtentTableShape shape{static_cast<std::uint8_t>(detail % 2), 4096u * (1 + detail / 2)};
      if (const auto strip = format::decode_strip(value, shape, 4096); strip.ok()) {
        const auto again = format::decode_strip(format::encode(*strip), shape, 4096);
        MDFS_CHECK(again.ok() && *again == *strip);
      }
      break;
    }
    case MDFS_KIND_PARITY: {
      const format::ExtentTableShape shape{static_cast<std::uint8_t>(detail % 2), 4096u * (1 + detail / 2)};
      if (const auto copies = format::CopyPage::decode(value, shape); copies.ok()) {
        MDFS_CHECK(copies->count() >= 1 && copies->count() <= shape.places());
        const auto again = format::CopyPage::decode(copies->encode(shape), shape);
        MDFS_CHECK(again.ok() && *again == *copies);
      }
      break;
    }
    case MDFS_KIND_PARITY_RUNS:
    case MDFS_KIND_EXTENT_RUNS:
      if (const auto runs = format::decode_extent_runs(value, detail); runs.ok()) {
        const auto again = format::decode_extent_runs(format::encode_extent_runs(*runs), detail);
        MDFS_CHECK(again.ok() && *again == *runs);
      }
      break;
    case MDFS_KIND_DISK_ERRORS:
      if (const auto errors = format::decode_disk_errors(value); errors.ok())
        check_round_trip(*errors, format::decode_disk_errors);
      break;
    case MDFS_KIND_OPERATION:
      if (const auto record = format::decode_operation(value); record.ok())
        check_round_trip(*record, format::decode_operation);
      break;
    default:
      break;
  }
  return 0;
}
