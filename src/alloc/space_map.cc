// Free space of one disk.
// SPDX-License-Identifier: Apache-2.0
#include "alloc/space_map.h"

#include <algorithm>
#include <cstring>

#include "alloc/bits.h"
#include "base/check.h"

namespace mdfs::alloc {
namespace {

std::uint64_t first_bit(std::uint64_t block) { return block % kPageBlocks; }

}  // namespace

SpaceMap::SpaceMap(const format::DiskLayout& layout, std::uint64_t zone_blocks,
                   const std::vector<std::uint64_t>& free_blocks)
    : layout_(layout),
      zone_blocks_(std::max<std::uint64_t>(zone_blocks, 1)),
      end_(layout.end_usable()),
      pages_(layout.space_pages(0)) {
  MDFS_CHECK(free_blocks.size() == pages_.size());
  const std::uint64_t boundary = layout_.metadata_end();
  for (std::uint64_t i = 0; i < pages_.size(); ++i) {
    MDFS_CHECK(free_blocks[i] <= kPageBlocks);
    pages_[i].disk_free = pages_[i].busy_free = static_cast<std::uint32_t>(free_blocks[i]);
    disk_free_ += free_blocks[i];
    // The boundary page counts as data until it is installed and can be told apart.
    if ((i + 1) * kPageBlocks <= boundary)
      metadata_free_ += free_blocks[i];
    else
      data_free_ += free_blocks[i];
  }
}

std::optional<std::uint64_t> SpaceMap::boundary_page() const {
  const std::uint64_t boundary = layout_.metadata_end();
  if (boundary % kPageBlocks == 0) return std::nullopt;
  return boundary / kPageBlocks;
}

void SpaceMap::install(std::uint64_t number, ConstBytes bitmap) {
  MDFS_CHECK(bitmap.size() == MDFS_SECTOR);
  Page& page = pages_[number];
  if (page.bits) return;
  page.bits = std::make_unique<Bits>();
  std::memcpy(page.bits->disk.data(), bitmap.data(), MDFS_SECTOR);
  page.bits->busy = page.bits->disk;
  ++loaded_pages_;
  if (boundary_page() != number || boundary_metadata_free_ != 0) return;
  const std::uint64_t end = first_bit(layout_.metadata_end());
  boundary_metadata_free_ = end - count_set(page.bits->busy, 0, end);
  metadata_free_ += boundary_metadata_free_;
  data_free_ -= boundary_metadata_free_;
  ++page.pins;  // for ever, so that this is done once
}

void SpaceMap::set_broken(std::uint64_t number) {
  Page& page = pages_[number];
  if (page.broken || page.bits) return;
  page.broken = true;
  if ((number + 1) * kPageBlocks <= layout_.metadata_end())
    metadata_free_ -= page.busy_free;
  else
    data_free_ -= page.busy_free;
  page.busy_free = 0;
  disk_free_ -= page.disk_free;
  page.disk_free = 0;
}

void SpaceMap::unpin(std::uint64_t page) {
  MDFS_CHECK(pages_[page].pins > 0);
  --pages_[page].pins;
}

void SpaceMap::shrink(std::uint64_t keep) {
  for (std::uint64_t looked = 0; looked < pages_.size() && loaded_pages_ > keep; ++looked) {
    const bool whole = (shrink_cursor_ + 1) * kPageBlocks <= end_;
    Page& page = pages_[shrink_cursor_];
    shrink_cursor_ = (shrink_cursor_ + 1) % pages_.size();
    if (!page.bits || page.pins > 0 || page.dirty) continue;
    if (whole ? page.disk_free != page.busy_free : page.bits->disk != page.bits->busy) continue;
    page.bits.reset();
    --loaded_pages_;
  }
}

const SpaceMap::Page& SpaceMap::page_of(std::uint64_t block, std::uint64_t blocks) const {
  MDFS_CHECK(blocks > 0 && layout_.is_usable(block, blocks));
  MDFS_CHECK(first_bit(block) + blocks <= kPageBlocks);
  const Page& page = pages_[block / kPageBlocks];
  MDFS_CHECK(page.bits != nullptr);
  return page;
}

SpaceMap::Page& SpaceMap::page_of(std::uint64_t block, std::uint64_t blocks) {
  return const_cast<Page&>(static_cast<const SpaceMap*>(this)->page_of(block, blocks));
}

bool SpaceMap::is_free(std::uint64_t block, std::uint64_t blocks) const {
  const std::uint64_t bit = first_bit(block);
  return count_set(page_of(block, blocks).bits->busy, bit, bit + blocks) == 0;
}

bool SpaceMap::is_published(std::uint64_t block, std::uint64_t blocks) const {
  const std::uint64_t bit = first_bit(block);
  return count_set(page_of(block, blocks).bits->disk, bit, bit + blocks) == blocks;
}

bool SpaceMap::is_taken(std::uint64_t block, std::uint64_t blocks) const {
  const std::uint64_t bit = first_bit(block);
  const Bits& bits = *page_of(block, blocks).bits;
  return count_set(bits.busy, bit, bit + blocks) == blocks && count_set(bits.disk, bit, bit + blocks) == 0;
}

void SpaceMap::count_free(std::uint64_t block, std::uint64_t blocks, bool now_free) {
  Page& page = page_of(block, blocks);
  const std::uint64_t boundary = layout_.metadata_end();
  const std::uint64_t low = block >= boundary ? 0 : std::min(blocks, boundary - block);
  const std::uint64_t high = block >= end_ ? 0 : std::min(blocks, end_ - block) - low;
  if (now_free) {
    page.busy_free += static_cast<std::uint32_t>(low + high);
    page.longest = MDFS_BITS_PER_PAGE;
    metadata_free_ += low;
    data_free_ += high;
  } else {
    page.busy_free -= static_cast<std::uint32_t>(low + high);
    metadata_free_ -= low;
    data_free_ -= high;
  }
  if (boundary_page() == block / kPageBlocks) {
    if (now_free)
      boundary_metadata_free_ += low;
    else
      boundary_metadata_free_ -= low;
  }
}

void SpaceMap::set_dirty(std::uint64_t page) {
  if (pages_[page].dirty) return;
  pages_[page].dirty = true;
  dirty_.push_back(page);
}

void SpaceMap::take(std::uint64_t block, std::uint64_t blocks) {
  MDFS_CHECK(is_free(block, blocks));
  const std::uint64_t bit = first_bit(block);
  set_bits(page_of(block, blocks).bits->busy, bit, bit + blocks);
  count_free(block, blocks, false);
}

void SpaceMap::release(std::uint64_t block, std::uint64_t blocks) {
  MDFS_CHECK(is_taken(block, blocks));
  const std::uint64_t bit = first_bit(block);
  clear_bits(page_of(block, blocks).bits->busy, bit, bit + blocks);
  count_free(block, blocks, true);
}

void SpaceMap::publish(std::uint64_t block, std::uint64_t blocks) {
  MDFS_CHECK(is_taken(block, blocks));
  const std::uint64_t bit = first_bit(block);
  Page& page = page_of(block, blocks);
  set_bits(page.bits->disk, bit, bit + blocks);
  page.disk_free -= static_cast<std::uint32_t>(blocks);
  disk_free_ -= blocks;
  set_dirty(block / kPageBlocks);
}

void SpaceMap::free(std::uint64_t block, std::uint64_t blocks) {
  MDFS_CHECK(is_published(block, blocks));
  const std::uint64_t bit = first_bit(block);
  Page& page = page_of(block, blocks);
  clear_bits(page.bits->disk, bit, bit + blocks);
  page.disk_free += static_cast<std::uint32_t>(blocks);
  disk_free_ += blocks;
  set_dirty(block / kPageBlocks);
}

Search SpaceMap::find(BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid) const {
  MDFS_CHECK(blocks > 0);
  range.begin = std::max(range.begin, layout_.first_usable());
  range.end = std::min(range.end, end_);
  if (range.empty() || blocks > kPageBlocks || blocks > range.size()) return {};
  for (std::uint64_t number = range.begin / kPageBlocks; number * kPageBlocks < range.end; ++number) {
    const Page& page = pages_[number];
    if (page.busy_free < blocks || page.longest < blocks) continue;
    if (!page.bits) return {Search::Kind::kNeedPage, number};
    const Search found = find_in_page(number, range, blocks, avoid);
    if (found.kind == Search::Kind::kFound) return found;
  }
  return {};
}

Search SpaceMap::find_in_page(std::uint64_t number, BlockRange range, std::uint64_t blocks,
                              const AvoidedRanges* avoid) const {
  const Page& page = pages_[number];
  const Words& busy = page.bits->busy;
  const std::uint64_t base = number * kPageBlocks;
  bool whole = range.begin <= base && range.end >= base + kPageBlocks;
  const std::uint64_t end = std::min(range.end - base, kPageBlocks);
  std::uint64_t longest = 0;
  std::uint64_t bit = range.begin > base ? range.begin - base : 0;
  while ((bit = next_bit(busy, bit, end, false)) < end) {
    const std::uint64_t stop = next_bit(busy, bit, std::min(end, bit + blocks), true);
    if (stop - bit < blocks) {
      longest = std::max(longest, stop - bit);
      bit = stop;
      continue;
    }
    if (avoid == nullptr) return {Search::Kind::kFound, base + bit};
    // The last avoided range that begins before the end of this run.
    auto after = avoid->lower_bound(base + bit + blocks);
    if (after == avoid->begin() || std::prev(after)->second <= base + bit) return {Search::Kind::kFound, base + bit};
    bit = std::min(std::prev(after)->second - base, kPageBlocks);
    whole = false;
  }
  if (whole) page.longest = static_cast<std::uint32_t>(std::min(longest, blocks - 1));
  return {};
}

Search SpaceMap::find_hole(BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid, Fit fit) const {
  MDFS_CHECK(blocks > 0);
  range.begin = std::max(range.begin, layout_.first_usable());
  range.end = std::min(range.end, end_);
  Search best;
  const auto consider = [&](std::uint64_t begin, std::uint64_t end) {
    if (end < begin + blocks) return;
    const bool better = fit == Fit::kSmallest ? end - begin < best.blocks : end - begin > best.blocks;
    if (best.kind == Search::Kind::kNone || better) best = {Search::Kind::kFound, begin, end - begin};
  };
  for (std::uint64_t number = range.begin / kPageBlocks; number * kPageBlocks < range.end; ++number) {
    const Page& page = pages_[number];
    if (page.broken || page.busy_free < blocks || page.longest < blocks) continue;
    if (!page.bits) return {Search::Kind::kNeedPage, number, 0};
    const std::uint64_t base = number * kPageBlocks;
    const std::uint64_t end = std::min(range.end - base, kPageBlocks);
    std::uint64_t bit = range.begin > base ? range.begin - base : 0;
    while ((bit = next_bit(page.bits->busy, bit, end, false)) < end) {
      const std::uint64_t stop = next_bit(page.bits->busy, bit, end, true);
      std::uint64_t from = base + bit;
      if (avoid != nullptr) {
        auto other = avoid->upper_bound(from);
        if (other != avoid->begin() && std::prev(other)->second > from) --other;
        for (; other != avoid->end() && other->first < base + stop; ++other) {
          consider(from, std::max(from, other->first));
          from = other->second;
        }
      }
      consider(from, std::max(from, base + stop));
      if (fit == Fit::kSmallest && best.blocks == blocks) return best;
      bit = stop;
    }
  }
  return best;
}

BlockRange SpaceMap::usable_in_page(std::uint64_t page) const {
  return {std::max(layout_.first_usable(), page * kPageBlocks), std::min(end_, (page + 1) * kPageBlocks)};
}

namespace {

// Joins free ranges that come in order.
class HoleJoiner {
 public:
  HoleJoiner(std::uint64_t blocks, const AvoidedRanges* avoid) : blocks_(blocks), avoid_(avoid) {}

  // True: what was joined before [begin, end) is long enough.
  bool add(std::uint64_t begin, std::uint64_t end) {
    if (avoid_ == nullptr) return add_piece(begin, end);
    auto other = avoid_->upper_bound(begin);
    if (other != avoid_->begin() && std::prev(other)->second > begin) --other;
    for (; other != avoid_->end() && other->first < end; ++other) {
      if (add_piece(begin, std::max(begin, other->first))) return true;
      begin = std::max(begin, other->second);
    }
    return add_piece(begin, std::max(begin, end));
  }
  bool long_enough() const { return hole_.end - hole_.begin >= blocks_; }
  bool reaches(std::uint64_t block) const { return !hole_.empty() && hole_.end == block; }
  Search found() const { return {Search::Kind::kFound, hole_.begin, hole_.size()}; }

 private:
  bool add_piece(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return false;
    if (reaches(begin)) {
      hole_.end = end;
      return false;
    }
    if (long_enough()) return true;
    hole_ = {begin, end};
    return false;
  }

  const std::uint64_t blocks_;
  const AvoidedRanges* const avoid_;
  BlockRange hole_;
};

}  // namespace

Search SpaceMap::next_hole(BlockRange range, std::uint64_t blocks, const AvoidedRanges* avoid) const {
  MDFS_CHECK(blocks > 0);
  range.begin = std::max(range.begin, layout_.first_usable());
  range.end = std::min(range.end, end_);
  if (range.empty()) return {};
  HoleJoiner joiner(blocks, avoid);
  for (std::uint64_t number = range.begin / kPageBlocks; number * kPageBlocks < range.end; ++number) {
    const Page& page = pages_[number];
    const std::uint64_t base = number * kPageBlocks;
    if (joiner.long_enough() && !joiner.reaches(base)) return joiner.found();
    if (page.busy_free == 0) continue;
    const BlockRange usable = usable_in_page(number);
    const std::uint64_t begin = std::max(range.begin, usable.begin);
    const std::uint64_t end = std::min(range.end, usable.end);
    if (page.busy_free == usable.size()) {
      if (joiner.add(begin, end)) return joiner.found();
      continue;
    }
    if (!page.bits) return {Search::Kind::kNeedPage, number, 0};
    for (std::uint64_t bit = begin - base; (bit = next_bit(page.bits->busy, bit, end - base, false)) < end - base;) {
      const std::uint64_t stop = next_bit(page.bits->busy, bit, end - base, true);
      if (joiner.add(base + bit, base + stop)) return joiner.found();
      bit = stop;
    }
  }
  return joiner.long_enough() ? joiner.found() : Search{};
}

Search SpaceMap::emptiest_range(std::uint64_t number, std::uint64_t blocks, const AvoidedRanges& avoid) const {
  const Page& page = pages_[number];
  MDFS_CHECK(page.bits != nullptr && blocks > 0);
  const BlockRange data = data_range();
  const std::uint64_t begin = std::max(data.begin, number * kPageBlocks);
  const std::uint64_t end = std::min(data.end, (number + 1) * kPageBlocks);
  const auto used = [&](std::uint64_t block) {
    return page.bits->busy[first_bit(block) / 64] >> (first_bit(block) % 64) & 1;
  };
  Search best;
  std::uint64_t first = begin, in_use = 0;
  for (std::uint64_t block = begin; block < end; ++block) {
    auto other = avoid.upper_bound(block);
    if (other != avoid.begin() && std::prev(other)->second > block) {
      block = std::prev(other)->second - 1;
      first = block + 1;
      in_use = 0;
      continue;
    }
    in_use += used(block);
    if (block + 1 - first > blocks) in_use -= used(first++);
    if (block + 1 - first == blocks && (best.kind == Search::Kind::kNone || in_use < best.blocks))
      best = {Search::Kind::kFound, first, in_use};
  }
  return best;
}

std::vector<std::uint64_t> SpaceMap::emptiest_pages(std::size_t most) const {
  std::vector<std::uint64_t> pages;
  for (std::uint64_t page = 0; page < pages_.size(); ++page)
    if (page_data_free(page) > 0 && !pages_[page].broken) pages.push_back(page);
  const auto middle = pages.begin() + static_cast<std::ptrdiff_t>(std::min(most, pages.size()));
  std::partial_sort(pages.begin(), middle, pages.end(), [this](std::uint64_t a, std::uint64_t b) {
    return std::pair(page_data_free(b), a) < std::pair(page_data_free(a), b);
  });
  pages.resize(std::min(most, pages.size()));
  return pages;
}

std::uint64_t SpaceMap::page_data_free(std::uint64_t page) const {
  if ((page + 1) * kPageBlocks <= layout_.metadata_end()) return 0;
  const std::uint64_t low = boundary_page() == page ? boundary_metadata_free_ : 0;
  return pages_[page].busy_free - std::min<std::uint64_t>(low, pages_[page].busy_free);
}

std::uint64_t SpaceMap::draw_zone(std::uint64_t random) const {
  const BlockRange data = data_range();
  if (data_free_ == 0) return data.begin;
  std::uint64_t left = random % data_free_;
  std::uint64_t page = data.begin / kPageBlocks;
  while (page + 1 < pages_.size() && left >= page_data_free(page)) left -= page_data_free(page++);
  std::uint64_t block = page * kPageBlocks + left % kPageBlocks;
  if (pages_[page].bits && zone_blocks_ < kPageBlocks) {
    // Inside a page that is in memory the draw continues by its free bits, so that small zones have their weight too.
    const Words& busy = pages_[page].bits->busy;
    std::uint64_t bit = data.begin > page * kPageBlocks ? first_bit(data.begin) : 0;
    for (std::uint64_t word = bit / 64; word < kWords; ++word) {
      const std::uint64_t mask = word_mask(word, bit, kPageBlocks);
      const auto free = static_cast<std::uint64_t>(std::popcount(~busy[word] & mask));
      block = page * kPageBlocks + word * 64;
      if (left < free) break;
      left -= free;
    }
  }
  block = std::clamp(block, data.begin, data.end - 1);
  return std::max(data.begin, block / zone_blocks_ * zone_blocks_);
}

std::uint64_t SpaceMap::first_zone(std::uint64_t blocks) const {
  const BlockRange data = data_range();
  for (std::uint64_t page = data.begin / kPageBlocks; page < pages_.size(); ++page)
    if (page_data_free(page) >= blocks) return std::max(data.begin, page * kPageBlocks);
  return data.begin;
}

Search SpaceMap::used_in(BlockRange range) const {
  std::uint64_t used = 0;
  for (std::uint64_t number = range.begin / kPageBlocks; number * kPageBlocks < range.end; ++number) {
    const Page& page = pages_[number];
    const std::uint64_t base = number * kPageBlocks;
    const std::uint64_t begin = std::max(range.begin, base);
    const std::uint64_t end = std::min(range.end, base + kPageBlocks);
    if (page.bits)
      used += count_set(page.bits->disk, begin - base, end - base);
    else if (page.broken || end - begin == kPageBlocks)
      used += end - begin - std::min<std::uint64_t>(end - begin, page.disk_free);
    else
      return {Search::Kind::kNeedPage, number};
  }
  return {Search::Kind::kFound, used};
}

std::vector<std::uint64_t> SpaceMap::dirty_pages() const {
  std::vector<std::uint64_t> numbers = dirty_;
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void SpaceMap::copy_disk_bitmap(std::uint64_t page, MutableBytes out) const {
  MDFS_CHECK(out.size() == MDFS_SECTOR && pages_[page].bits != nullptr);
  std::memcpy(out.data(), pages_[page].bits->disk.data(), MDFS_SECTOR);
}

void SpaceMap::clear_dirty() {
  for (const std::uint64_t page : dirty_) pages_[page].dirty = false;
  dirty_.clear();
}

}  // namespace mdfs::alloc
