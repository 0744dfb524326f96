// Space pages.
// SPDX-License-Identifier: Apache-2.0
#include "store/space_pages.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/log.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kPagesReadAtOnce = 256;
constexpr unsigned kReadAttempts = 3;

}  // namespace

Status read_space_pages(device::Disk& disk, std::uint64_t offset, MutableBytes into) {
  Status status = device::read(disk, offset, into);
  for (unsigned attempt = 1; attempt < kReadAttempts && !status.ok(); ++attempt)
    status = device::read(disk, offset, into);
  return status;
}

SpaceIndex::SpaceIndex(const format::DiskLayout& layout, const format::SpaceEntry& top)
    : layout_(layout), known_(layout.space_pages(0), layout.space_levels() == 1) {
  for (unsigned level = 0; level < layout.space_levels(); ++level) entries_.emplace_back(layout.space_pages(level));
  entries_.back()[0] = top;
}

SpaceIndex SpaceIndex::blank(const format::DiskLayout& layout) {
  SpaceIndex index(layout, {});
  index.known_.assign(index.known_.size(), true);
  return index;
}

void SpaceIndex::read(device::Disk& disk) {
  for (unsigned level = layout_.space_levels() - 1; level > 0; --level) read_level(disk, level);
}

void SpaceIndex::read_level(device::Disk& disk, unsigned level) {
  const std::uint64_t count = layout_.space_pages(level);
  AlignedBuffer buffer(std::min(count, kPagesReadAtOnce) * MDFS_SECTOR);
  for (std::uint64_t first = 0; first < count; first += kPagesReadAtOnce) {
    const std::uint64_t batch = std::min(kPagesReadAtOnce, count - first);
    std::vector<device::Io> ios(batch);
    std::vector<device::Addressed> requests;
    for (std::uint64_t i = 0; i < batch; ++i) {
      ios[i].offset = layout_.space_offset({level, first + i}, entries_[level][first + i].place);
      ios[i].buffers = {buffer.bytes().subspan(i * MDFS_SECTOR, MDFS_SECTOR)};
      requests.push_back({&disk, &ios[i]});
    }
    (void)device::run(requests);  // each request's own status counts
    for (std::uint64_t i = 0; i < batch; ++i) {
      const format::SpacePage page{level, first + i};
      Status status = ios[i].status;
      if (!status.ok()) status = read_space_pages(disk, ios[i].offset, ios[i].buffers[0]);
      if (status.ok()) {
        auto below = format::decode_space_page(layout_, page, entries_[level][page.page], ios[i].buffers[0]);
        if (below.ok()) {
          const auto start = static_cast<std::ptrdiff_t>(page.page * MDFS_ENTRIES_PER_PAGE);
          std::copy(below->begin(), below->end(), entries_[level - 1].begin() + start);
          if (level == 1) std::fill_n(known_.begin() + start, below->size(), true);
          continue;
        }
        status = below.error();
      }
      spdlog::error("{}: space page {} of level {}: {}; its blocks count as in use", disk.name(), page.page, level,
                    status.error().message());
    }
  }
}

std::vector<std::uint64_t> SpaceIndex::free_blocks() const {
  std::vector<std::uint64_t> free;
  for (std::uint64_t page = 0; page < entries_[0].size(); ++page)
    free.push_back(known_[page] ? std::min<std::uint64_t>(entries_[0][page].free_blocks, MDFS_BITS_PER_PAGE) : 0);
  return free;
}

bool SpaceIndex::known(format::SpacePage page) const {
  std::uint64_t each = 1;  // bitmaps under a page
  for (unsigned level = 0; level < page.level; ++level) each *= MDFS_ENTRIES_PER_PAGE;
  const std::uint64_t end = std::min<std::uint64_t>((page.page + 1) * each, known_.size());
  for (std::uint64_t i = page.page * each; i < end; ++i)
    if (!known_[i]) return false;
  return true;
}

void SpaceIndex::resize(const format::DiskLayout& layout, const std::vector<format::SpaceEntry>& new_bitmaps) {
  const std::uint64_t before = entries_[0].size();
  const std::uint64_t bitmaps = layout.space_pages(0);
  MDFS_CHECK(layout.space_levels() == layout_.space_levels());
  MDFS_CHECK(new_bitmaps.size() == bitmaps - std::min(before, bitmaps));
  layout_ = layout;
  for (unsigned level = 0; level < layout.space_levels(); ++level) entries_[level].resize(layout.space_pages(level));
  known_.resize(bitmaps, true);
  std::copy(new_bitmaps.begin(), new_bitmaps.end(),
            entries_[0].end() - static_cast<std::ptrdiff_t>(new_bitmaps.size()));
  std::erase_if(rewrite_, [&](const format::SpacePage& page) { return page.page >= layout.space_pages(page.level); });
  if (layout.space_levels() == 1) return;
  for (std::uint64_t page = std::min(before, bitmaps) - 1; page < bitmaps; ++page)
    rewrite_.insert({1, page / MDFS_ENTRIES_PER_PAGE});
}

std::vector<format::SpaceEntry> SpaceIndex::children(format::SpacePage page) const {
  const auto& below = entries_[page.level - 1];
  const std::uint64_t first = page.page * MDFS_ENTRIES_PER_PAGE;
  const std::uint64_t end = std::min<std::uint64_t>(first + MDFS_ENTRIES_PER_PAGE, below.size());
  return {below.begin() + static_cast<std::ptrdiff_t>(first), below.begin() + static_cast<std::ptrdiff_t>(end)};
}

void SpaceIndex::seal(const alloc::SpaceMap& map, std::uint16_t disk, std::vector<SectorWrite>& writes) {
  std::set<std::uint64_t> changed;
  for (const std::uint64_t page : map.dirty_pages()) changed.insert(page);
  for (unsigned level = 0; level < layout_.space_levels(); ++level) {
    for (const format::SpacePage& page : rewrite_)
      if (page.level == level) changed.insert(page.page);
    std::set<std::uint64_t> above;
    for (const std::uint64_t number : changed) {
      const format::SpacePage page{level, number};
      format::SpaceEntry& entry = entries_[level][number];
      SectorWrite write{disk, 0, AlignedBuffer(MDFS_SECTOR)};
      std::uint64_t free = 0;
      if (level == 0) {
        map.copy_disk_bitmap(number, write.bytes.bytes());
        free = map.page_disk_free(number);
      } else {
        const auto below = children(page);
        for (const format::SpaceEntry& child : below) free += child.free_blocks;
        format::encode_space_page(below, write.bytes.bytes());
      }
      entry = format::make_space_entry(write.bytes.bytes(), 1 - entry.place, free);
      write.offset = layout_.space_offset(page, entry.place);
      writes.push_back(std::move(write));
      above.insert(number / MDFS_ENTRIES_PER_PAGE);
    }
    changed = std::move(above);
  }
  rewrite_.clear();
}

}  // namespace mdfs::store
