// Cells of ordinary files: runs of blocks with a checksum each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/kept.h"
#include "format/pointer.h"
#include "format/stored_extent.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// Blocks of a cell.
constexpr unsigned cell_blocks(std::uint32_t block_size) { return MDFS_FILE_CELL / block_size; }

// mdfs_file_run: crc32c.size() blocks from `first` of the cell lie contiguously at `address`.
struct FileRun {
  Address address;
  std::uint64_t birth = 0;    // of the blocks
  std::uint64_t written = 0;  // of the contents: a move keeps it; at most `birth`
  std::uint16_t first = 0;
  std::vector<std::uint32_t> crc32c;  // of each whole block

  bool operator==(const FileRun&) const = default;
  unsigned blocks() const { return static_cast<unsigned>(crc32c.size()); }
  unsigned end() const { return first + blocks(); }
  Run place() const { return {address.disk, address.block, blocks()}; }
  StoredExtent stored(std::uint32_t block_size) const;
};

// Place of one block of a cell.
struct BlockPlace {
  Address address;
  std::uint32_t crc32c = 0;
  std::uint64_t written = 0;  // generation
  bool operator==(const BlockPlace&) const = default;
};

// Ascending, disjoint runs; blocks without a run are a hole. A value; no thread contract.
struct FileCell {
  std::vector<FileRun> runs;
  Kept<sizeof(mdfs_file_cell::reserved)> reserved{};

  bool operator==(const FileCell&) const = default;
  bool empty() const { return runs.empty(); }
  unsigned blocks() const;           // covered
  std::uint32_t block_mask() const;  // bit i: block i is covered
  // Absent: a hole.
  std::optional<BlockPlace> find(unsigned block) const;
  // Makes [first, first + count) a hole and returns the blocks that are no longer part of the cell.
  std::vector<Run> punch(unsigned first, unsigned count);
  // Inserts a run, and returns the blocks under it as punch does. Consecutive runs on the disk with the same
  // generations become one.
  std::vector<Run> replace(const FileRun& run);
};

// The value of a cell's item; an empty cell is stored by erasing the item.
ByteVector encode(const FileCell& cell);
// Checks: file-cell.length, file-cell.run-count, file-cell.checksum-type (kNewerFormat), file-cell.run (generations, at
// least one block, within the cell, ascending and disjoint, a disk below 64, padding zero).
Result<FileCell> decode_file_cell(ConstBytes value, std::uint32_t block_size);

}  // namespace mdfs::format
