// The space pages of one disk: reads them, and makes those that a commit writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "alloc/space_map.h"
#include "base/aligned_buffer.h"
#include "base/result.h"
#include "device/disk.h"
#include "format/commit.h"
#include "format/layout.h"
#include "format/space.h"

namespace mdfs::store {

// A sector to be written to a disk.
struct SectorWrite {
  std::uint16_t disk = 0;
  std::uint64_t offset = 0;  // bytes
  AlignedBuffer bytes;       // MDFS_SECTOR
};

// Reads space pages. Tries again after an error: blocks that are freed on a page that memory lacks stay in use until
// mdfsck runs.
Status read_space_pages(device::Disk& disk, std::uint64_t offset, MutableBytes into);

// Knows which of the two places of each space page is valid. All levels are in memory (16 bytes for each 128 MiB of
// disk); bitmaps are read on demand. The owner's mutex guards it.
class SpaceIndex {
 public:
  SpaceIndex(const format::DiskLayout& layout, const format::SpaceEntry& top);
  // A disk with nothing in use but its permanent areas.
  static SpaceIndex blank(const format::DiskLayout& layout);

  // Reads the pages above the bitmaps. Damaged pages count as full, and are logged.
  void read(device::Disk& disk);
  // Free blocks of each bitmap page; 0 where the entry is unknown.
  std::vector<std::uint64_t> free_blocks() const;
  bool known(std::uint64_t page) const { return known_[page]; }

  const format::SpaceEntry& entry(std::uint64_t page) const { return entries_[0][page]; }
  const format::SpaceEntry& entry(format::SpacePage page) const { return entries_[page.level][page.page]; }
  // True if the place and checksum of the page are known. For a page above the bitmaps: those of all bitmaps below it.
  bool known(format::SpacePage page) const;
  // Sets the size of the disk. New bitmaps are on the disk, at these places. The next seal rewrites the pages above
  // them and above the last bitmap. All pages of the old layout must be known.
  void resize(const format::DiskLayout& layout, const std::vector<format::SpaceEntry>& new_bitmaps);
  // Makes the next seal rewrite this page above the bitmaps, which must be known.
  void rewrite(format::SpacePage page) { rewrite_.insert(page); }
  bool has_rewrites() const { return !rewrite_.empty(); }
  const format::SpaceEntry& top() const { return entries_.back()[0]; }

  // Writes the changed bitmaps of `map`, and the pages above them, to the other place of each, and records that.
  void seal(const alloc::SpaceMap& map, std::uint16_t disk, std::vector<SectorWrite>& writes);

 private:
  void read_level(device::Disk& disk, unsigned level);
  std::vector<format::SpaceEntry> children(format::SpacePage page) const;

  format::DiskLayout layout_;
  std::vector<std::vector<format::SpaceEntry>> entries_;  // [level][page]
  std::set<format::SpacePage> rewrite_;
  std::vector<bool> known_;  // of each bitmap page: its entry was read
};

}  // namespace mdfs::store
