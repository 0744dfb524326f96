// Second copies of the blocks of a file's cell.
// SPDX-License-Identifier: Apache-2.0
#include "format/cell_copies.h"

#include "base/check.h"
#include "format/fields.h"

namespace mdfs::format {

std::uint64_t CellPieces::disks_of(const FileCell& cell, std::uint32_t blocks) {
  std::uint64_t disks = 0;
  for (const FileRun& run : cell.runs)
    for (unsigned block = run.first; block < run.end(); ++block)
      if ((blocks >> block & 1) != 0 && run.address.disk < MDFS_MAX_DISKS)
        disks |= std::uint64_t{1} << run.address.disk;
  return disks;
}

std::uint32_t CellPieces::protected_blocks(std::uint64_t gone) const {
  const auto is_there = [gone](const BlockPlace& place) {
    return place.address.disk < MDFS_MAX_DISKS && (gone >> place.address.disk & 1) == 0;
  };
  std::uint32_t blocks = 0;
  for (const FileRun& run : copy.runs) {
    for (unsigned block = run.first; block < run.end(); ++block) {
      const auto one = first.find(block), other = copy.find(block);
      if (one && other && one->address.disk != other->address.disk && is_there(*one) && is_there(*other))
        blocks |= 1u << block;
    }
  }
  return blocks;
}

std::vector<Run> CellPieces::all_runs() const {
  std::vector<Run> runs;
  for (const FileCell* const cell : {&first, &copy})
    for (const FileRun& run : cell->runs) runs.push_back(run.place());
  return runs;
}

void CellPieces::drop_strays() {
  std::uint32_t strays = 0;
  for (const FileRun& run : copy.runs) {
    for (unsigned block = run.first; block < run.end(); ++block) {
      const auto one = first.find(block), other = copy.find(block);
      if (!one || one->crc32c != other->crc32c || one->written != other->written) strays |= 1u << block;
    }
  }
  for (unsigned block = 0; strays != 0; ++block, strays >>= 1)
    if ((strays & 1) != 0) (void)copy.punch(block, 1);
}

Key cell_copies_key(const Key& cell) { return {cell.object, MDFS_KIND_FILE_PARITY, cell.offset}; }

ByteVector encode_cell_copies(const CellPieces& pieces) {
  ByteVector out(sizeof(mdfs_group));
  MDFS_PUT(out, 0, mdfs_group, members, std::uint64_t{1});
  MDFS_PUT(out, 0, mdfs_group, parity_count, std::uint8_t{1});
  put_bytes(out, offsetof(mdfs_group, reserved), pieces.group_reserved);
  const ByteVector cell = encode(pieces.copy);
  out.insert(out.end(), cell.begin(), cell.end());
  MDFS_CHECK(out.size() <= MDFS_MAX_ITEM);
  return out;
}

Status decode_cell_copies(ConstBytes value, std::uint32_t block_size, CellPieces& pieces) {
  MDFS_FORMAT_REQUIRE(value.size() >= sizeof(mdfs_group), "cell-copies.length");
  const std::uint64_t members = MDFS_GET(value, 0, mdfs_group, members);
  const std::uint8_t parities = MDFS_GET(value, 0, mdfs_group, parity_count);
  MDFS_FORMAT_REQUIRE((members & 1) != 0 && parities >= 1, "cell-copies.group");
  const std::uint8_t leavers = MDFS_GET(value, 0, mdfs_group, leaver_count);
  if (members != 1 || parities != 1 || leavers != 0) return {Errc::kNewerFormat, "cell-copies.group-of-many"};
  get_bytes(value, offsetof(mdfs_group, reserved), pieces.group_reserved);
  MDFS_TRY_ASSIGN(pieces.copy, decode_file_cell(value.subspan(sizeof(mdfs_group)), block_size));
  return {};
}

}  // namespace mdfs::format
