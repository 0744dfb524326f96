// Copies of cells and their cells.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/cell_copies.h"

#include <fmt/format.h>

#include <bit>

#include "format/cell_copies.h"
#include "format/cell_parts.h"
#include "format/limits.h"

namespace mdfs::store {
namespace {

using format::Key;

// Of one cell.
class CellCheck {
 public:
  CellCheck(const Key& key, const CopyChecks& checks) : key_(key), checks_(checks) {}

  void check(const format::CellPieces& stored) {
    format::CellPieces pieces = stored;
    pieces.drop_strays();
    drop(FindingId::kCopyStray, stored.copy.block_mask() & ~pieces.copy.block_mask());
    const std::uint32_t together = pieces.copy.block_mask() & ~pieces.protected_blocks(0);
    drop(FindingId::kPiecesTogether, together);
    if (!checks_.on_data) return;
    for (unsigned block = 0; block < format::cell_blocks(checks_.block_size); ++block)
      if ((together >> block & 1) != 0) (void)pieces.copy.punch(block, 1);
    for (format::CellPart& part : format::cell_parts(pieces.copy, pieces.first, checks_.block_size)) {
      if (!checks_.blocks.hold(part.bytes.runs) || !checks_.blocks.hold(part.bytes.copy)) continue;
      const std::uint64_t where = key_.offset * MDFS_FILE_CELL + std::uint64_t{part.first} * checks_.block_size;
      checks_.on_data({std::move(part.bytes), key_.object, where, false, true});
    }
  }

 private:
  // One finding for blocks that follow one another.
  void drop(FindingId id, std::uint32_t blocks) {
    if (blocks == 0) return;
    for (std::uint32_t left = blocks; left != 0;) {
      const auto first = static_cast<unsigned>(std::countr_zero(left));
      const auto count = static_cast<unsigned>(std::countr_one(left >> first));
      checks_.findings.add(
          id, fmt::format("object {}, item {}, {} blocks from {}", key_.object, to_string(key_), count, first),
          {key_.object});
      left = first + count == 32 ? 0 : left >> (first + count) << (first + count);
    }
    const auto [edit, is_new] = checks_.edits.items.try_emplace(key_, FixRecords());
    if (auto* const fix = std::get_if<FixRecords>(&edit->second)) fix->erase_copies |= blocks;
  }

  const Key key_;
  const CopyChecks& checks_;
};

}  // namespace

void check_cell_copies(const std::vector<std::uint64_t>& files, const CopyChecks& checks) {
  for (const std::uint64_t object : files) {
    // An item behind the last cell that a file can have is damaged.
    const Key last{object, MDFS_KIND_FILE_PARITY, format::kMaxFileBytes / MDFS_FILE_CELL};
    Key key{object, MDFS_KIND_FILE_PARITY, 0};
    while (const auto item = checks.items.next(key, last)) {
      key.offset = item->key.offset + 1;
      format::CellPieces pieces;
      if (!format::decode_cell_copies(item->value, checks.block_size, pieces).ok()) continue;
      const auto cell = checks.items.get({object, MDFS_KIND_FILE_CELL, item->key.offset});
      if (cell.ok() && *cell)
        if (auto first = format::decode_file_cell(**cell, checks.block_size); first.ok())
          pieces.first = std::move(*first);
      CellCheck(item->key, checks).check(pieces);
    }
  }
}

std::vector<format::StoredExtent> blocks_with_pieces(ItemLookup& items, std::uint32_t block_size,
                                                     const StoredData& data) {
  std::vector<format::StoredExtent> blocks;
  const Key key{data.object, MDFS_KIND_FILE_CELL, data.where / MDFS_FILE_CELL};
  const auto pieces = format::read_cell(items, key, block_size, true);
  if (!pieces.ok()) return blocks;
  const std::uint32_t apart = pieces->protected_blocks(0);
  const auto first = static_cast<unsigned>(data.where % MDFS_FILE_CELL / block_size);
  for (unsigned i = 0; i < data.piece_blocks(); ++i) {
    const auto piece = (data.is_copy ? pieces->copy : pieces->first).find(first + i);
    const auto other = (data.is_copy ? pieces->first : pieces->copy).find(first + i);
    if (!piece) return {};
    format::StoredExtent block;
    block.runs = {{piece->address.disk, piece->address.block, 1}};
    block.stored_bytes = block.part_bytes = block_size;
    block.crc32c = {piece->crc32c};
    if (other && (apart >> (first + i) & 1) != 0) block.copy = {{other->address.disk, other->address.block, 1}};
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace mdfs::store
