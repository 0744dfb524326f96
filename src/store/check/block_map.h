// Which blocks of the volume are in use, as the tree says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "format/layout.h"
#include "format/pointer.h"

namespace mdfs::store {

// One bit a block, for the disks that are there. The map stands for a section of their bitmap pages, in order of disk
// and number, so that its memory has a limit: what lies outside is not marked, and a pass for each section sees all.
// A value; no thread contract.
class BlockMap {
 public:
  // `mapped`: the disks whose blocks are kept; blocks of others count as not marked. At most `most_pages` at a time.
  BlockMap(const std::vector<format::DiskLayout>& layouts, const std::vector<bool>& mapped,
           std::uint64_t most_pages = UINT64_MAX);

  // Bitmap pages of all mapped disks, and those of the section.
  std::uint64_t all_pages() const { return first_page_.back(); }
  std::uint64_t section_begin() const { return begin_; }
  std::uint64_t section_end() const { return end_; }
  bool whole() const { return begin_ == 0 && end_ == all_pages(); }
  // Forgets all marks. False: there is no further section.
  bool next_section();
  bool in_section(std::uint16_t disk, std::uint64_t page) const;
  // Does the run, which holds() accepts, begin in an earlier section?
  bool begins_before(const format::BlockRun& run) const;

  // Is the run on a disk of the volume, and all of it usable?
  bool holds(const format::BlockRun& run) const;
  // Marks what lies in the section of a run that holds() accepts; false if a block of it was marked already (the others
  // are marked all the same).
  bool mark(const format::BlockRun& run);
  // In the section.
  bool get(std::uint16_t disk, std::uint64_t block) const;
  // The MDFS_BITS_PER_PAGE / 64 words of a page in the section.
  const std::uint64_t* words(std::uint16_t disk, std::uint64_t page) const;
  // The first `count` blocks in a row in [first, end) that are not marked and cross no bitmap page; `end` if there are
  // none. The map is whole.
  std::uint64_t find_free(std::uint16_t disk, std::uint64_t first, std::uint64_t end, std::uint64_t count) const;
  std::uint64_t count() const;  // in the section

  const std::vector<format::DiskLayout>& layouts() const { return layouts_; }
  bool mapped(std::uint16_t disk) const { return first_page_[disk + 1] > first_page_[disk]; }
  // Marks also what a bitmap page in the section says, as it lies on the disk.
  void merge_page(std::uint16_t disk, std::uint64_t page, ConstBytes bytes);
  // The bitmap page as it must be on the disk: blocks in use for ever, and bits behind the disk, included.
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
