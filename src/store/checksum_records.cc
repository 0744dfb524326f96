// Collecting checksum records, and hearing them.
// SPDX-License-Identifier: Apache-2.0
#include "store/checksum_records.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"

namespace mdfs::store {

bool add_checksum_records(std::uint16_t disk, const std::vector<Unflushed::Write>& writes,
                          const std::vector<alloc::Run>& published, std::uint32_t block_size,
                          std::vector<format::ChecksumRecord>& checksum_records) {
  std::vector<alloc::Run> here;
  std::copy_if(published.begin(), published.end(), std::back_inserter(here),
               [&](const auto& run) { return run.disk == disk; });
  here = alloc::merged(std::move(here));
  for (const Unflushed::Write& write : writes) {
    // The first run that ends behind the beginning of the write.
    const auto run = std::upper_bound(
        here.begin(), here.end(), write.offset,
        [&](std::uint64_t offset, const alloc::Run& candidate) { return offset < candidate.end() * block_size; });
    if (run == here.end() || write.end() <= run->block * block_size) continue;
    if (write.offset < run->block * block_size || write.end() > run->end() * block_size) return false;
    if (write.bytes > std::uint64_t{MDFS_MAX_RECORDED_SECTORS} * MDFS_SECTOR) return false;
    checksum_records.push_back(
        {disk, static_cast<std::uint16_t>(write.bytes / MDFS_SECTOR), write.crc32c, write.offset / MDFS_SECTOR});
  }
  return true;
}

std::vector<format::ChecksumRecord> mismatching_records(device::Disk& disk, std::uint16_t index,
                                                        const format::CommitSlot& slot) {
  std::vector<format::ChecksumRecord> bad;
  std::copy_if(
      slot.checksum_records.begin(), slot.checksum_records.end(), std::back_inserter(bad), [&](const auto& record) {
        if (record.disk != index) return false;
        AlignedBuffer buffer(record.bytes());
        return !device::read(disk, record.offset(), buffer.bytes()).ok() || crc32c(buffer.bytes()) != record.crc32c;
      });
  return bad;
}

}  // namespace mdfs::store
