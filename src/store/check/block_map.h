// The blocks of the volume that the tree uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "format/layout.h"
#include "format/stored_extent.h"

namespace mdfs::store {

// One bit for each block of the present disks. To bound its memory, the map holds one section of the bitmap pages, in
// order of disk and number. Blocks outside of the section are not marked; one pass over the tree for each section sees
// all. A value; no thread contract.
class BlockMap {
 public:
  // `mapped`: the disks in the map; blocks of other disks are never marked. A section has at most `most_pages` pages.
  BlockMap(const std::vector<format::DiskLayout>& layouts, const std::vector<bool>& mapped,
           std::uint64_t most_pages = UINT64_MAX);

  // Bitmap pages of all mapped disks, and the range of the section.
  std::uint64_t all_pages() const { return first_page_.back(); }
  std::uint64_t section_begin() const { return begin_; }
  std::uint64_t section_end() const { return end_; }
  bool whole() const { return begin_ == 0 && end_ == all_pages(); }
  // Moves to the next section and forgets all marks. False: there is no further section.
  bool next_section();
  bool in_section(std::uint16_t disk, std::uint64_t page) const;
  // True if the run begins in an earlier section. holds() must accept the run.
  bool begins_before(const format::Run& run) const;

  // True if all of the run is usable, on a disk of the volume.
  bool holds(const format::Run& run) const;
  // The same of all runs of a list.
  bool hold(const format::Runs& runs) const;
  // Marks the part of a run in the section; holds() must accept the run. False if a block of it was marked already (the
  // others are marked all the same).
  bool mark(const format::Run& run);
  // Is a block in the section marked?
  bool get(std::uint16_t disk, std::uint64_t block) const;
  // The MDFS_BITS_PER_PAGE / 64 words of a page in the section.
  const std::uint64_t* words(std::uint16_t disk, std::uint64_t page) const;
  // The first `count` contiguous unmarked blocks in [first, end) that cross no bitmap page; `end` if there are none.
  // The map must be whole.
  std::uint64_t find_free(std::uint16_t disk, std::uint64_t first, std::uint64_t end, std::uint64_t count) const;
  std::uint64_t count() const;  // in the section

  const std::vector<format::DiskLayout>& layouts() const { return layouts_; }
  bool mapped(std::uint16_t disk) const { return first_page_[disk + 1] > first_page_[disk]; }
  // Also marks the blocks that a bitmap page in the section has in use, as it lies on the disk.
  void merge_page(std::uint16_t disk, std::uint64_t page, ConstBytes bytes);
  // The bitmap page for the disk, with permanently used blocks and the bits behind the disk.
  void make_page(std::uint16_t disk, std::uint64_t page, MutableBytes out) const;

 private:
  std::uint64_t* page_of(std::uint16_t disk, std::uint64_t page);

  std::vector<format::DiskLayout> layouts_;
  std::vector<std::uint64_t> first_page_;  // of each disk among all; one more at the end
  std::uint64_t most_pages_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::vector<std::uint64_t> words_;  // of the section
};

}  // namespace mdfs::store
