// Cells of ordinary files: MDFS_FILE_CELL bytes in runs of blocks, with a checksum for each block.
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

// Blocks of a cell, at most 32. block_size in bytes.
constexpr unsigned cell_blocks(std::uint32_t block_size) { return MDFS_FILE_CELL / block_size; }

// mdfs_file_run: crc32c.size() blocks from `first` of the cell lie contiguously at `address`.
struct FileRun {
  Address address;
  std::uint64_t birth = 0;            // generation of the blocks
  std::uint64_t written = 0;          // generation of the contents: a move keeps it; at most `birth`
  std::uint16_t first = 0;            // block of the cell
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
  // The runs with these blocks, whole; none unless all of them are covered.
  Runs runs_of(std::uint32_t mask) const;
  // The place of a block of the cell; absent: a hole.
  std::optional<BlockPlace> find(unsigned block) const;
  // Makes the blocks [first, first + count) of the cell a hole, and returns the blocks of disks that they had.
  std::vector<Run> punch(unsigned first, unsigned count);
  // Inserts a run, and returns the replaced blocks as punch does. Consecutive runs on the disk with the same
  // generations become one. The run lies in the cell; it has blocks and valid generations (else abort).
  std::vector<Run> replace(const FileRun& run);
};

// The value of a cell's item. An empty cell has none (abort): erase the item.
ByteVector encode(const FileCell& cell);
// Checks: file-cell.length, file-cell.run-count, file-cell.checksum-type (kNewerFormat), file-cell.run (generations, at
// least one block, within the cell, ascending and disjoint, a disk below 64, padding zero).
Result<FileCell> decode_file_cell(ConstBytes value, std::uint32_t block_size);

}  // namespace mdfs::format
