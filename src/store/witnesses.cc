// Collecting witnesses, and hearing them.
// SPDX-License-Identifier: Apache-2.0
#include "store/witnesses.h"

#include <algorithm>

#include "base/aligned_buffer.h"
#include "base/crc32c.h"

namespace mdfs::store {
namespace {

// Bytes of a disk.
struct Stretch {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
};

// The runs of the disk in order, adjacent ones merged.
std::vector<Stretch> stretches_of(std::uint16_t disk, const std::vector<alloc::Run>& runs, std::uint32_t block_size) {
  std::vector<Stretch> stretches;
  for (const alloc::Run& run : runs)
    if (run.disk == disk) stretches.push_back({run.block * block_size, (run.block + run.blocks) * block_size});
  std::sort(stretches.begin(), stretches.end(), [](const Stretch& a, const Stretch& b) { return a.offset < b.offset; });
  std::vector<Stretch> merged;
  for (const Stretch& stretch : stretches)
    if (!merged.empty() && merged.back().end == stretch.offset)
      merged.back().end = stretch.end;
    else
      merged.push_back(stretch);
  return merged;
}

}  // namespace

bool add_witnesses(std::uint16_t disk, const std::vector<Unflushed::Write>& writes,
                   const std::vector<alloc::Run>& linked, std::uint32_t block_size,
                   std::vector<format::Witness>& witnesses) {
  const std::vector<Stretch> stretches = stretches_of(disk, linked, block_size);
  for (const Unflushed::Write& write : writes) {
    // The first stretch that ends behind the beginning of the write.
    const auto there =
        std::upper_bound(stretches.begin(), stretches.end(), write.offset,
                         [](std::uint64_t offset, const Stretch& stretch) { return offset < stretch.end; });
    if (there == stretches.end() || write.end() <= there->offset) continue;
    if (write.offset < there->offset || write.end() > there->end) return false;
    if (write.bytes > std::uint64_t{MDFS_MAX_WITNESS_SECTORS} * MDFS_SECTOR) return false;
    witnesses.push_back(
        {disk, static_cast<std::uint16_t>(write.bytes / MDFS_SECTOR), write.crc32c, write.offset / MDFS_SECTOR});
  }
  return true;
}

bool witnesses_hold(device::Disk& disk, std::uint16_t index, const format::CommitSlot& slot) {
  return std::all_of(slot.witnesses.begin(), slot.witnesses.end(), [&](const format::Witness& witness) {
    if (witness.disk != index) return true;
    AlignedBuffer buffer(witness.bytes());
    return device::read(disk, witness.offset(), buffer.bytes()).ok() && crc32c(buffer.bytes()) == witness.crc32c;
  });
}

}  // namespace mdfs::store
