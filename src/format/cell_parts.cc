// The blocks of a file's cell as stored bytes.
// SPDX-License-Identifier: Apache-2.0
#include "format/cell_parts.h"

#include <algorithm>

namespace mdfs::format {
namespace {

// The first run that ends behind a block; null: there is none.
const FileRun* run_behind(const FileCell& cell, unsigned block) {
  const auto run =
      std::find_if(cell.runs.begin(), cell.runs.end(), [&](const FileRun& one) { return block < one.end(); });
  return run == cell.runs.end() ? nullptr : &*run;
}

StoredExtent part_of(const FileRun& run, unsigned first, unsigned end, std::uint32_t block_size) {
  StoredExtent bytes = run.stored(block_size);
  const unsigned skipped = first - run.first;
  bytes.runs = {{run.address.disk, run.address.block + skipped, end - first}};
  bytes.stored_bytes = (end - first) * block_size;
  bytes.crc32c = Checksums(run.crc32c.begin() + skipped, run.crc32c.begin() + (end - run.first));
  return bytes;
}

}  // namespace

std::vector<CellPart> cell_parts(const FileCell& cell, const FileCell& other, std::uint32_t block_size) {
  std::vector<CellPart> parts;
  for (const FileRun& run : cell.runs) {
    for (unsigned first = run.first; first < run.end();) {
      const FileRun* const piece = run_behind(other, first);
      const bool has_other = piece != nullptr && piece->first <= first;
      const unsigned end = piece == nullptr ? run.end() : std::min(run.end(), has_other ? piece->end() : piece->first);
      CellPart part{first, part_of(run, first, end, block_size)};
      if (has_other) {
        part.bytes.copy = {{piece->address.disk, piece->address.block + (first - piece->first), end - first}};
        part.bytes.copy_birth = piece->birth;
      }
      parts.push_back(std::move(part));
      first = end;
    }
  }
  return parts;
}

}  // namespace mdfs::format
