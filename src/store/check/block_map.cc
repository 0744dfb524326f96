// Blocks in use.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/block_map.h"

#include <bit>

#include "base/checked.h"
#include "format/space.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kBits = 64;
constexpr std::uint64_t kWordsPerPage = MDFS_BITS_PER_PAGE / kBits;

}  // namespace

BlockMap::BlockMap(const std::vector<format::DiskLayout>& layouts, const std::vector<bool>& mapped,
                   std::uint64_t most_pages)
    : layouts_(layouts), most_pages_(std::max<std::uint64_t>(most_pages, 1)) {
  first_page_.push_back(0);
  for (std::size_t i = 0; i < layouts.size(); ++i)
    first_page_.push_back(first_page_.back() + (mapped[i] ? layouts[i].space_pages(0) : 0));
  end_ = std::min(all_pages(), most_pages_);
  words_.assign(end_ * kWordsPerPage, 0);
}

bool BlockMap::next_section() {
  if (end_ == all_pages()) return false;
  begin_ = end_;
  end_ = std::min(all_pages(), begin_ + most_pages_);
  words_.assign((end_ - begin_) * kWordsPerPage, 0);
  return true;
}

bool BlockMap::in_section(std::uint16_t disk, std::uint64_t page) const {
  const std::uint64_t number = first_page_[disk] + page;
  return number < first_page_[disk + 1] && number >= begin_ && number < end_;
}

bool BlockMap::begins_before(const format::Run& run) const {
  return first_page_[run.disk] + run.block / MDFS_BITS_PER_PAGE < begin_;
}

const std::uint64_t* BlockMap::words(std::uint16_t disk, std::uint64_t page) const {
  if (!in_section(disk, page)) return nullptr;
  return words_.data() + (first_page_[disk] + page - begin_) * kWordsPerPage;
}

std::uint64_t* BlockMap::page_of(std::uint16_t disk, std::uint64_t page) {
  if (!in_section(disk, page)) return nullptr;
  return words_.data() + (first_page_[disk] + page - begin_) * kWordsPerPage;
}

bool BlockMap::holds(const format::Run& run) const {
  return run.disk < layouts_.size() && run.blocks > 0 && layouts_[run.disk].is_usable(run.block, run.blocks);
}

bool BlockMap::hold(const format::Runs& runs) const {
  return std::all_of(runs.begin(), runs.end(), [&](const format::Run& run) { return holds(run); });
}

bool BlockMap::mark(const format::Run& run) {
  bool fresh = true;
  const std::uint64_t end = run.end();
  for (std::uint64_t block = run.block; block < end;) {
    const std::uint64_t number = block / MDFS_BITS_PER_PAGE;
    const std::uint64_t stop = std::min(end, (number + 1) * MDFS_BITS_PER_PAGE);
    std::uint64_t* page = page_of(run.disk, number);
    if (page == nullptr) {
      block = stop;
      continue;
    }
    for (; block < stop; ++block) {
      std::uint64_t& word = page[block % MDFS_BITS_PER_PAGE / kBits];
      const std::uint64_t bit = std::uint64_t{1} << (block % kBits);
      fresh = fresh && (word & bit) == 0;
      word |= bit;
    }
  }
  return fresh;
}

bool BlockMap::get(std::uint16_t disk, std::uint64_t block) const {
  const std::uint64_t* page = words(disk, block / MDFS_BITS_PER_PAGE);
  return page != nullptr && ((page[block % MDFS_BITS_PER_PAGE / kBits] >> (block % kBits)) & 1) != 0;
}

std::uint64_t BlockMap::find_free(std::uint16_t disk, std::uint64_t first, std::uint64_t end,
                                  std::uint64_t count) const {
  if (count > MDFS_BITS_PER_PAGE) return end;
  for (std::uint64_t block = first; block < end;) {
    const std::uint64_t number = block / MDFS_BITS_PER_PAGE;
    const std::uint64_t stop = std::min(end, (number + 1) * MDFS_BITS_PER_PAGE);
    const std::uint64_t* page = words(disk, number);
    if (page == nullptr) return end;
    for (std::uint64_t start = block; block < stop; ++block) {
      const std::uint64_t word = page[block % MDFS_BITS_PER_PAGE / kBits];
      if (word == UINT64_MAX && block % kBits == 0) {
        block += kBits - 1;
        start = block + 1;
      } else if (((word >> (block % kBits)) & 1) != 0) {
        start = block + 1;
      } else if (block + 1 - start == count) {
        return start;
      }
    }
  }
  return end;
}

std::uint64_t BlockMap::count() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t word : words_) sum += static_cast<std::uint64_t>(std::popcount(word));
  return sum;
}

void BlockMap::merge_page(std::uint16_t disk, std::uint64_t number, ConstBytes bytes) {
  std::uint64_t* page = page_of(disk, number);
  for (std::uint64_t i = 0; page != nullptr && i < kWordsPerPage; ++i) page[i] |= load_le<std::uint64_t>(bytes, 8 * i);
}

void BlockMap::make_page(std::uint16_t disk, std::uint64_t number, MutableBytes out) const {
  format::make_empty_bitmap(layouts_[disk], number, out);
  const std::uint64_t* page = words(disk, number);
  for (std::uint64_t i = 0; page != nullptr && i < kWordsPerPage; ++i)
    store_le<std::uint64_t>(out, 8 * i, load_le<std::uint64_t>(out, 8 * i) | page[i]);
}

}  // namespace mdfs::store
