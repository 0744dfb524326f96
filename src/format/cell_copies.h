// Second copies of the blocks of a file's cell: the parity of a group of one cell.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/file_cell.h"
#include "format/kept.h"
#include "format/key.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// A cell with the second copies of its blocks. A block may have one or none; its copy has the checksum and `written` of
// the block. A value; no thread contract.
struct CellPieces {
  FileCell first;
  FileCell copy;
  Kept<sizeof(mdfs_group::reserved)> group_reserved{};

  bool operator==(const CellPieces&) const = default;
  bool has_copies() const { return !copy.empty(); }
  // The disks of these blocks (bit i: block i of the cell), a bit each. Disks from MDFS_MAX_DISKS on are left out.
  static std::uint64_t disks_of(const FileCell& cell, std::uint32_t blocks);
  // The blocks that have two pieces on two disks of which none is `gone` (a bit each), as a mask.
  std::uint32_t protected_blocks(std::uint64_t gone) const;
  // Of all blocks and copies.
  std::vector<Run> all_runs() const;
  // Takes away copies of blocks that are not there, or hold other bytes.
  void drop_strays();
};

// The key of the copies of a cell.
Key cell_copies_key(const Key& cell);
// The value of the item of the copies. Without copies there is none (abort): erase the item.
ByteVector encode_cell_copies(const CellPieces& pieces);
// Sets the copies. Checks: cell-copies.length, cell-copies.group-of-many (several members or parities: kNewerFormat),
// cell-copies.group (one group), and those of decode_file_cell().
Status decode_cell_copies(ConstBytes value, std::uint32_t block_size, CellPieces& pieces);

// A cell with its copies, by the value of its item. Items has get(key), as store::Store and store::Transaction.
// `may_have_copies`: the volume has the feature. What another thread changes between the two look-ups has no copies.
template <typename Items>
Result<CellPieces> cell_with_copies(Items& items, const Key& key, ConstBytes value, std::uint32_t block_size,
                                    bool may_have_copies) {
  CellPieces pieces;
  MDFS_TRY_ASSIGN(pieces.first, decode_file_cell(value, block_size));
  if (!may_have_copies) return pieces;
  MDFS_TRY_ASSIGN(const std::optional<ByteVector> copies, items.get(cell_copies_key(key)));
  if (!copies) return pieces;
  MDFS_TRY(decode_cell_copies(*copies, block_size, pieces));
  pieces.drop_strays();
  return pieces;
}

// The same by its key; an absent cell is empty.
template <typename Items>
Result<CellPieces> read_cell(Items& items, const Key& key, std::uint32_t block_size, bool may_have_copies) {
  MDFS_TRY_ASSIGN(const std::optional<ByteVector> value, items.get(key));
  if (!value) return CellPieces();
  return cell_with_copies(items, key, *value, block_size, may_have_copies);
}

}  // namespace mdfs::format
