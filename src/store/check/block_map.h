// Which blocks of the volume are in use, as the tree says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "format/layout.h"
#include "format/pointer.h"

namespace mdfs::store {

// One bit a block. A value; no thread contract.
class BlockMap {
 public:
  explicit BlockMap(const std::vector<format::DiskLayout>& layouts);

  // Is the run on a disk of the volume, and all of it usable?
  bool holds(const format::BlockRun& run) const;
  // Marks a run that holds() accepts; false if a block of it was marked already (the others are marked all the same).
  bool mark(const format::BlockRun& run);
  bool get(std::uint16_t disk, std::uint64_t block) const {
    return ((words_[disk][block / 64] >> (block % 64)) & 1) != 0;
  }
  // Are the 64 blocks from `block`, a multiple of 64, marked in the same way in both?
  bool same_word(const BlockMap& other, std::uint16_t disk, std::uint64_t block) const {
    return words_[disk][block / 64] == other.words_[disk][block / 64];
  }
  // The first `count` blocks in a row in [first, end) that are not marked and cross no bitmap page; `end` if there are
  // none.
  std::uint64_t find_free(std::uint16_t disk, std::uint64_t first, std::uint64_t end, std::uint64_t count) const;
  void merge(const BlockMap& other);
  std::uint64_t count() const;

  const std::vector<format::DiskLayout>& layouts() const { return layouts_; }
  // Takes over the bits of a bitmap page as it lies on the disk.
  void load_page(std::uint16_t disk, std::uint64_t page, ConstBytes bytes);
  // The bitmap page as it must be on the disk: blocks in use for ever, and bits behind the disk, included.
  void make_page(std::uint16_t disk, std::uint64_t page, MutableBytes out) const;

 private:
  std::vector<format::DiskLayout> layouts_;
  std::vector<std::vector<std::uint64_t>> words_;  // a disk
};

}  // namespace mdfs::store
