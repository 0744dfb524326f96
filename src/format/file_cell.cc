// Cells of ordinary files.
// SPDX-License-Identifier: Apache-2.0
#include "format/file_cell.h"

#include <algorithm>

#include "base/checked.h"
#include "format/fields.h"
#include "format/layout.h"

namespace mdfs::format {
namespace {

std::size_t run_bytes(std::size_t blocks) { return sizeof(mdfs_file_run) + align_up(4 * blocks, 8); }

// The part [first, end) of a run, in blocks of the cell.
FileRun slice(const FileRun& run, unsigned first, unsigned end) {
  FileRun part;
  part.address = {run.address.disk, run.address.block + (first - run.first)};
  part.birth = run.birth;
  part.written = run.written;
  part.first = static_cast<std::uint16_t>(first);
  part.crc32c.assign(run.crc32c.begin() + (first - run.first), run.crc32c.begin() + (end - run.first));
  return part;
}

bool adjoins(const FileRun& a, const FileRun& b) {
  return a.end() == b.first && a.birth == b.birth && a.written == b.written && continues(a.place(), b.place());
}

Result<FileRun> decode_run(ConstBytes value, std::size_t base, unsigned cell, unsigned previous_end) {
  MDFS_FORMAT_REQUIRE(inside(base, sizeof(mdfs_file_run), value.size()), "file-cell.length");
  const std::size_t blocks = MDFS_GET(value, base, mdfs_file_run, blocks);
  if (MDFS_GET(value, base, mdfs_file_run, checksum_type) != MDFS_CHECKSUM_CRC32C)
    return {Errc::kNewerFormat, "file-cell.checksum-type"};
  FileRun run;
  run.address = Address::unpack(MDFS_GET(value, base, mdfs_file_run, address));
  run.birth = MDFS_GET(value, base, mdfs_file_run, birth);
  run.written = MDFS_GET(value, base, mdfs_file_run, written);
  run.first = MDFS_GET(value, base, mdfs_file_run, first);
  MDFS_FORMAT_REQUIRE(run.written != 0 && run.written <= run.birth, "file-cell.run");
  MDFS_FORMAT_REQUIRE(run.address.disk < MDFS_MAX_DISKS, "file-cell.run");
  MDFS_FORMAT_REQUIRE(blocks >= 1 && inside(run.first, blocks, cell) && run.first >= previous_end, "file-cell.run");
  MDFS_FORMAT_REQUIRE(inside(base, run_bytes(blocks), value.size()), "file-cell.length");
  const std::size_t checksums = base + sizeof(mdfs_file_run);
  for (std::size_t i = 0; i < blocks; ++i) run.crc32c.push_back(load_le<std::uint32_t>(value, checksums + 4 * i));
  MDFS_FORMAT_REQUIRE(
      all_zero(value.subspan(checksums + 4 * blocks, run_bytes(blocks) - sizeof(mdfs_file_run) - 4 * blocks)),
      "file-cell.run");
  return run;
}

}  // namespace

StoredExtent FileRun::stored(std::uint32_t block_size) const {
  return {{place()}, birth, written, blocks() * block_size, block_size, {crc32c.begin(), crc32c.end()}};
}

unsigned FileCell::blocks() const {
  unsigned sum = 0;
  for (const FileRun& run : runs) sum += run.blocks();
  return sum;
}

std::uint32_t FileCell::block_mask() const {
  std::uint32_t mask = 0;
  for (const FileRun& run : runs)
    for (unsigned block = run.first; block < run.end(); ++block) mask |= 1u << block;
  return mask;
}

Runs FileCell::runs_of(std::uint32_t mask) const {
  Runs found;
  if ((mask & ~block_mask()) != 0) return found;
  for (const FileRun& run : runs) {
    bool has_some = false;
    for (unsigned block = run.first; block < run.end(); ++block) has_some = has_some || (mask >> block & 1) != 0;
    if (has_some) found.push_back(run.place());
  }
  return found;
}

std::optional<BlockPlace> FileCell::find(unsigned block) const {
  for (const FileRun& run : runs)
    if (block >= run.first && block < run.end())
      return BlockPlace{
          {run.address.disk, run.address.block + (block - run.first)}, run.crc32c[block - run.first], run.written};
  return std::nullopt;
}

std::vector<Run> FileCell::punch(unsigned first, unsigned count) {
  const unsigned end = first + count;
  std::vector<FileRun> kept;
  std::vector<Run> freed;
  for (const FileRun& run : runs) {
    const unsigned from = std::max<unsigned>(run.first, first);
    const unsigned to = std::min(run.end(), end);
    if (from >= to) {
      kept.push_back(run);
      continue;
    }
    if (run.first < from) kept.push_back(slice(run, run.first, from));
    freed.push_back({run.address.disk, run.address.block + (from - run.first), to - from});
    if (to < run.end()) kept.push_back(slice(run, to, run.end()));
  }
  runs = std::move(kept);
  return freed;
}

std::vector<Run> FileCell::replace(const FileRun& run) {
  MDFS_CHECK(run.blocks() >= 1 && run.written != 0 && run.written <= run.birth);
  std::vector<Run> freed = punch(run.first, run.blocks());
  auto next = std::find_if(runs.begin(), runs.end(), [&](const FileRun& r) { return r.first >= run.end(); });
  auto at = runs.insert(next, run);
  if (at + 1 != runs.end() && adjoins(*at, *(at + 1))) {
    at->crc32c.insert(at->crc32c.end(), (at + 1)->crc32c.begin(), (at + 1)->crc32c.end());
    runs.erase(at + 1);
  }
  if (at != runs.begin() && adjoins(*(at - 1), *at)) {
    (at - 1)->crc32c.insert((at - 1)->crc32c.end(), at->crc32c.begin(), at->crc32c.end());
    runs.erase(at);
  }
  return freed;
}

ByteVector encode(const FileCell& cell) {
  MDFS_CHECK(!cell.empty());
  ByteVector out(sizeof(mdfs_file_cell));
  MDFS_PUT(out, 0, mdfs_file_cell, run_count, static_cast<std::uint16_t>(cell.runs.size()));
  put_bytes(out, offsetof(mdfs_file_cell, reserved), cell.reserved);
  for (const FileRun& run : cell.runs) {
    const std::size_t base = out.size();
    out.resize(base + run_bytes(run.blocks()));
    MDFS_PUT(out, base, mdfs_file_run, address, run.address.packed());
    MDFS_PUT(out, base, mdfs_file_run, birth, run.birth);
    MDFS_PUT(out, base, mdfs_file_run, written, run.written);
    MDFS_PUT(out, base, mdfs_file_run, checksum_type, std::uint8_t{MDFS_CHECKSUM_CRC32C});
    MDFS_PUT(out, base, mdfs_file_run, first, run.first);
    MDFS_PUT(out, base, mdfs_file_run, blocks, static_cast<std::uint16_t>(run.blocks()));
    for (std::size_t i = 0; i < run.blocks(); ++i)
      store_le<std::uint32_t>(out, base + sizeof(mdfs_file_run) + 4 * i, run.crc32c[i]);
  }
  MDFS_CHECK(out.size() <= MDFS_MAX_ITEM);
  return out;
}

Result<FileCell> decode_file_cell(ConstBytes value, std::uint32_t block_size) {
  MDFS_FORMAT_REQUIRE(value.size() >= sizeof(mdfs_file_cell), "file-cell.length");
  const unsigned cell_size = cell_blocks(block_size);
  const std::size_t count = MDFS_GET(value, 0, mdfs_file_cell, run_count);
  MDFS_FORMAT_REQUIRE(count >= 1 && count <= cell_size, "file-cell.run-count");
  FileCell cell;
  get_bytes(value, offsetof(mdfs_file_cell, reserved), cell.reserved);
  std::size_t base = sizeof(mdfs_file_cell);
  unsigned previous_end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    MDFS_TRY_ASSIGN(FileRun run, decode_run(value, base, cell_size, previous_end));
    base += run_bytes(run.blocks());
    previous_end = run.end();
    cell.runs.push_back(std::move(run));
  }
  MDFS_FORMAT_REQUIRE(base == value.size(), "file-cell.length");
  return cell;
}

}  // namespace mdfs::format
