// Free space of a disk that is given another size.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "alloc/bits.h"
#include "alloc/space_map.h"
#include "base/check.h"

namespace mdfs::alloc {
namespace {

BlockRange part_in(BlockRange range, std::uint64_t page) {
  return {std::max(range.begin, page * kPageBlocks), std::min(range.end, (page + 1) * kPageBlocks)};
}

}  // namespace

SpaceMap::Pages SpaceMap::edge_pages(const format::DiskLayout& from, const format::DiskLayout& to) {
  const format::DiskLayout& smaller = from.blocks() < to.blocks() ? from : to;
  return {smaller.end_usable() / kPageBlocks, smaller.space_pages(0) - 1};
}

std::uint64_t SpaceMap::free_before_end(std::uint64_t number) const {
  const BlockRange usable = usable_in_page(number);
  const Page& page = pages_[number];
  if (page.broken || usable.empty()) return 0;
  const std::uint64_t base = number * kPageBlocks;
  if (page.bits) return usable.size() - count_set(page.bits->busy, usable.begin - base, usable.end - base);
  MDFS_CHECK(usable.end == std::min(layout_.end_usable(), base + kPageBlocks));
  return page.disk_free;
}

void SpaceMap::set_end(std::uint64_t end) {
  MDFS_CHECK(end > layout_.metadata_end() && end <= layout_.end_usable());
  const std::uint64_t lowest = std::min(end, end_);
  end_ = end;
  for (std::uint64_t number = lowest / kPageBlocks; number < pages_.size(); ++number) {
    Page& page = pages_[number];
    const std::uint64_t free = free_before_end(number);
    data_free_ = data_free_ + free - page.busy_free;
    page.busy_free = static_cast<std::uint32_t>(free);
    page.longest = MDFS_BITS_PER_PAGE;
  }
}

std::uint64_t SpaceMap::busy_behind() const {
  std::uint64_t busy = 0;
  for (std::uint64_t number = end_ / kPageBlocks; number < pages_.size(); ++number) {
    const BlockRange part = part_in({end_, layout_.end_usable()}, number);
    if (part.empty()) continue;
    const Page& page = pages_[number];
    const std::uint64_t base = number * kPageBlocks;
    if (page.bits) {
      busy += count_set(page.bits->busy, part.begin - base, part.end - base);
    } else {
      MDFS_CHECK(page.broken || part.begin == base);
      busy += part.size() - std::min<std::uint64_t>(part.size(), page.disk_free);
    }
  }
  return busy;
}

std::uint64_t SpaceMap::busy_blocks() const {
  return end_ - layout_.first_usable() - data_free_ - metadata_free_ + busy_behind();
}

void SpaceMap::resize(const format::DiskLayout& layout) {
  if (layout.blocks() > layout_.blocks())
    grow(layout);
  else
    cut(layout);
}

void SpaceMap::grow(const format::DiskLayout& layout) {
  const BlockRange labels{layout_.end_usable(), layout_.blocks()};
  const std::uint64_t known = pages_.size();
  MDFS_CHECK(end_ == labels.begin && layout.end_usable() >= labels.end);
  layout_ = layout;
  end_ = layout.end_usable();
  pages_.resize(layout.space_pages(0));
  for (std::uint64_t number = labels.begin / kPageBlocks; number < pages_.size(); ++number) {
    Page& page = pages_[number];
    const BlockRange fresh = part_in({labels.begin, end_}, number);
    if (fresh.empty()) continue;
    std::uint64_t taken = 0;
    if (number < known) {
      MDFS_CHECK(page.bits != nullptr);
      const std::uint64_t base = number * kPageBlocks;
      clear_bits(page.bits->disk, fresh.begin - base, fresh.end - base);
      clear_bits(page.bits->busy, fresh.begin - base, fresh.end - base);
      if (const BlockRange old = part_in(labels, number); !old.empty()) {
        set_bits(page.bits->busy, old.begin - base, old.end - base);
        taken = old.size();
      }
      page.longest = MDFS_BITS_PER_PAGE;
      set_dirty(number);
    }
    page.disk_free += static_cast<std::uint32_t>(fresh.size());
    page.busy_free += static_cast<std::uint32_t>(fresh.size() - taken);
    disk_free_ += fresh.size();
    data_free_ += fresh.size() - taken;
  }
}

void SpaceMap::cut(const format::DiskLayout& layout) {
  const BlockRange gone{layout.end_usable(), layout_.end_usable()};
  MDFS_CHECK(end_ == gone.begin && busy_behind() == 0);
  for (std::uint64_t number = gone.begin / kPageBlocks; number < pages_.size(); ++number) {
    Page& page = pages_[number];
    const BlockRange part = part_in(gone, number);
    if (number < layout.space_pages(0)) {
      MDFS_CHECK(page.bits != nullptr);
      const std::uint64_t base = number * kPageBlocks;
      if (part.empty()) continue;
      set_bits(page.bits->disk, part.begin - base, part.end - base);
      set_bits(page.bits->busy, part.begin - base, part.end - base);
      page.disk_free -= static_cast<std::uint32_t>(part.size());
      disk_free_ -= part.size();
      set_dirty(number);
    } else {
      disk_free_ -= page.disk_free;
      if (page.bits) --loaded_pages_;
    }
  }
  layout_ = layout;
  pages_.resize(layout.space_pages(0));
  std::erase_if(dirty_, [&](std::uint64_t page) { return page >= pages_.size(); });
  shrink_cursor_ = 0;
}

}  // namespace mdfs::alloc
