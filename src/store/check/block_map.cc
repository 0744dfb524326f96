// Blocks in use.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/block_map.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "format/space.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kBits = 64;
constexpr std::uint64_t kWordsPerPage = MDFS_BITS_PER_PAGE / kBits;

}  // namespace

BlockMap::BlockMap(const std::vector<format::DiskLayout>& layouts) : layouts_(layouts) {
  for (const format::DiskLayout& layout : layouts)
    words_.emplace_back(align_up(layout.blocks(), MDFS_BITS_PER_PAGE) / kBits);
}

bool BlockMap::holds(const format::BlockRun& run) const {
  return run.address.disk < layouts_.size() && run.blocks > 0 &&
         layouts_[run.address.disk].is_usable(run.address.block, run.blocks);
}

bool BlockMap::mark(const format::BlockRun& run) {
  bool fresh = true;
  std::vector<std::uint64_t>& words = words_[run.address.disk];
  for (std::uint64_t block = run.address.block; block < run.address.block + run.blocks; ++block) {
    const std::uint64_t bit = std::uint64_t{1} << (block % kBits);
    fresh = fresh && (words[block / kBits] & bit) == 0;
    words[block / kBits] |= bit;
  }
  return fresh;
}

std::uint64_t BlockMap::find_free(std::uint16_t disk, std::uint64_t first, std::uint64_t end,
                                  std::uint64_t count) const {
  if (count > MDFS_BITS_PER_PAGE) return end;
  std::uint64_t start = first;
  for (std::uint64_t block = first; block < end; ++block) {
    if (block % kBits == 0 && words_[disk][block / kBits] == UINT64_MAX) {
      block += kBits - 1;
      start = block + 1;
      continue;
    }
    if (get(disk, block))
      start = block + 1;
    else if (start / MDFS_BITS_PER_PAGE != block / MDFS_BITS_PER_PAGE)
      start = block;
    if (block + 1 - start == count) return start;
  }
  return end;
}

std::uint64_t BlockMap::count() const {
  std::uint64_t sum = 0;
  for (const std::vector<std::uint64_t>& words : words_)
    for (const std::uint64_t word : words) sum += static_cast<std::uint64_t>(std::popcount(word));
  return sum;
}

void BlockMap::merge(const BlockMap& other) {
  for (std::size_t disk = 0; disk < words_.size(); ++disk)
    for (std::size_t i = 0; i < words_[disk].size(); ++i) words_[disk][i] |= other.words_[disk][i];
}

void BlockMap::load_page(std::uint16_t disk, std::uint64_t page, ConstBytes bytes) {
  for (std::uint64_t i = 0; i < kWordsPerPage; ++i)
    words_[disk][page * kWordsPerPage + i] = load_le<std::uint64_t>(bytes, 8 * i);
}

void BlockMap::make_page(std::uint16_t disk, std::uint64_t page, MutableBytes out) const {
  format::make_empty_bitmap(layouts_[disk], page, out);
  for (std::uint64_t i = 0; i < kWordsPerPage; ++i) {
    const std::uint64_t word = load_le<std::uint64_t>(out, 8 * i) | words_[disk][page * kWordsPerPage + i];
    store_le<std::uint64_t>(out, 8 * i, word);
  }
}

}  // namespace mdfs::store
