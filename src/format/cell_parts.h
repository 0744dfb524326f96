// The blocks of a file's cell as stored bytes, each part with its other piece.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "format/file_cell.h"
#include "format/stored_extent.h"

namespace mdfs::format {

// Blocks of a cell that lie contiguously, as their other pieces do if they have any. A value.
struct CellPart {
  unsigned first = 0;  // block of the cell
  StoredExtent bytes;
};

// The blocks of `cell`, in their order. `other` has their other pieces: the copies of a cell, or the cell of copies.
// All blocks of a part have another piece in one run, or none has. Strays must have been dropped.
std::vector<CellPart> cell_parts(const FileCell& cell, const FileCell& other, std::uint32_t block_size);

}  // namespace mdfs::format
