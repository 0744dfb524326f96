// Space of the volume: publishing and freeing by transactions, and space pages written by commits.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/space.h"

namespace mdfs::store {
namespace {

std::string name_of(const Run& run) {
  return fmt::format("{} blocks at {} of disk {}", run.blocks, run.block, run.disk);
}

// The runs in order, if none overlaps another.
Status check_disjoint(std::span<const Run> runs) {
  std::vector<Run> sorted(runs.begin(), runs.end());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1].disk == sorted[i].disk && sorted[i].block < sorted[i - 1].block + sorted[i - 1].blocks)
      return {Errc::kCorrupt, name_of(sorted[i]) + ": named twice"};
  return {};
}

}  // namespace

bool Space::valid(const Run& run) const {
  if (run.disk >= allocator_->disk_count() || run.blocks == 0) return false;
  const alloc::SpaceMap* map = allocator_->map(run.disk);
  if (map == nullptr) return true;
  return map->layout().is_usable(run.block, run.blocks) &&
         format::DiskLayout::bitmap_bit(run.block) + run.blocks <= MDFS_BITS_PER_PAGE;
}

alloc::SpaceMap* Space::map_of(const Run& run) const {
  alloc::SpaceMap* map = is_out(run.disk) ? nullptr : allocator_->map(run.disk);
  return map && !map->broken(format::DiskLayout::bitmap_page(run.block)) ? map : nullptr;
}

void Space::pin(std::span<const Run> runs) {
  for (const Run& run : runs) {
    const std::uint64_t page = format::DiskLayout::bitmap_page(run.block);
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        alloc::SpaceMap* map = valid(run) ? map_of(run) : nullptr;
        if (map == nullptr) break;
        if (map->loaded(page)) {
          map->pin(page);
          break;
        }
      }
      load_page(run.disk, page);
    }
  }
}

void Space::unpin(std::span<const Run> runs) {
  const std::lock_guard lock(mutex_);
  for (const Run& run : runs) {
    alloc::SpaceMap* map = valid(run) ? map_of(run) : nullptr;
    if (map != nullptr) map->unpin(format::DiskLayout::bitmap_page(run.block));
  }
}

Status Space::check(std::span<const Run> published, std::span<const Run> freed) const {
  MDFS_TRY(check_disjoint(published));
  MDFS_TRY(check_disjoint(freed));
  const std::lock_guard lock(mutex_);
  for (const Run& run : published) {
    if (is_out(run.disk)) return {Errc::kDiskOut, fmt::format("disk {}", run.disk)};
    const alloc::SpaceMap* map = valid(run) ? map_of(run) : nullptr;
    if (map == nullptr || !map->is_taken(run.block, run.blocks))
      return {Errc::kCorrupt, name_of(run) + ": published, but not allocated"};
  }
  for (const Run& run : freed) {
    if (!valid(run)) return {Errc::kCorrupt, name_of(run) + ": not on the disk"};
    const alloc::SpaceMap* map = map_of(run);
    if (map != nullptr && !map->is_published(run.block, run.blocks))
      return {Errc::kCorrupt, name_of(run) + ": freed, but not all in use"};
  }
  return {};
}

void Space::publish(std::span<const Run> runs, const PublishedData& data) {
  const std::lock_guard lock(mutex_);
  published_data_.add(data);
  for (const Run& run : runs) {
    allocator_->map(run.disk)->publish(run.block, run.blocks);
    if (published_.size() <= kPublishedRunsLimit) published_.push_back(run);
  }
}

PublishedData Space::take_published_data() {
  const std::lock_guard lock(mutex_);
  return std::exchange(published_data_, {});
}

bool Space::loses(const PublishedData& data) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t out = 0, others = 0;
  for (std::uint16_t disk = 0; disk < out_.size(); ++disk) (out_[disk] ? out : others) |= std::uint64_t{1} << disk;
  return data.needed_of(out, others) != 0;
}

std::optional<std::vector<Run>> Space::take_published() {
  const std::lock_guard lock(mutex_);
  std::vector<Run> published = std::exchange(published_, {});
  if (published.size() > kPublishedRunsLimit) return std::nullopt;
  return published;
}

void Space::keep_fallback(std::uint64_t generation, const std::optional<std::vector<Run>>& freed) {
  knows_freed_ = freed.has_value();
  if (!freed || freed->empty()) return;
  pin(*freed);
  const std::lock_guard lock(mutex_);
  std::vector<Run> waiting;
  for (const Run& run : *freed) {
    alloc::SpaceMap* map = valid(run) ? map_of(run) : nullptr;
    if (map == nullptr) continue;
    map->unpin(format::DiskLayout::bitmap_page(run.block));
    if (!map->is_free(run.block, run.blocks)) continue;
    map->take(run.block, run.blocks);
    add_pending_free(run);
    waiting.push_back(run);
  }
  pending_.push_back({generation, std::move(waiting)});
}

bool Space::gives_out() const {
  const std::lock_guard lock(mutex_);
  return knows_freed_;
}

void Space::add_pending_free(const Run& run) {
  pending_free_ += run.blocks;
  if (run.block >= allocator_->map(run.disk)->layout().metadata_end()) pending_free_data_[run.disk] += run.blocks;
}

// Blocks on a missing disk, or of a damaged bitmap, stay in use until the disk is rebuilt or repaired.
void Space::free(std::span<const Run> runs, Holds holds) {
  const std::lock_guard lock(mutex_);
  for (const Run& run : runs) {
    alloc::SpaceMap* map = map_of(run);
    if (map == nullptr) continue;
    map->free(run.block, run.blocks);
    freeing_.push_back(run);
    add_pending_free(run);
    if (holds == Holds::kNodes) published_node_blocks_ -= std::min<std::uint64_t>(published_node_blocks_, run.blocks);
  }
}

void Space::seal(std::uint64_t generation, std::vector<SectorWrite>& writes, std::vector<format::SpaceEntry>& tops) {
  const std::lock_guard lock(mutex_);
  MDFS_CHECK(sealed_pages_.empty());
  for (std::size_t i = 0; i < index_.size(); ++i) {
    alloc::SpaceMap* map = allocator_->map(i);
    if (map == nullptr || is_out(static_cast<std::uint16_t>(i)) || (!map->dirty() && !index_[i]->has_rewrites()))
      continue;
    const auto disk = static_cast<std::uint16_t>(i);
    index_[i]->seal(*map, disk, writes);
    tops_[i] = index_[i]->top();
    for (const std::uint64_t page : map->dirty_pages()) {
      map->pin(page);
      sealed_pages_.push_back({disk, page});
    }
    map->clear_dirty();
  }
  if (!freeing_.empty()) pending_.push_back({generation, std::exchange(freeing_, {})});
  tops = tops_;
}

std::optional<format::SpaceEntry> Space::page_entry(unsigned disk, format::SpacePage page) const {
  const std::lock_guard lock(mutex_);
  if (!index_[disk]) return std::nullopt;
  // The top page is known from the commit, others from the page above.
  const bool top = page.level + 1 == allocator_->map(disk)->layout().space_levels();
  if (!top && !index_[disk]->known(page)) return std::nullopt;
  return index_[disk]->entry(page);
}

bool Space::rewrite_page(unsigned disk, format::SpacePage page) {
  const std::lock_guard lock(mutex_);
  if (!index_[disk]) return false;
  if (page.level == 0) {
    alloc::SpaceMap& map = *allocator_->map(disk);
    if (!map.loaded(page.page) || map.broken(page.page)) return false;
    map.touch(page.page);
    return true;
  }
  if (!index_[disk]->known(page)) return false;
  index_[disk]->rewrite(page);
  return true;
}

void Space::renumber(std::uint64_t from, std::uint64_t to) {
  const std::lock_guard lock(mutex_);
  for (PendingFree& freed : pending_)
    if (freed.generation == from) freed.generation = to;
}

std::vector<Run> Space::note_committed(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  for (const PageOf& page : sealed_pages_) allocator_->map(page.disk)->unpin(page.page);
  sealed_pages_.clear();
  knows_freed_ = true;
  ++commits_;
  generation_ = generation;
  if (generation >= kKeptCommits)
    recent_.forget(generation - kKeptCommits + 1, [&](const Run& run) {
      if (collects_discardable_ && discardable_.size() < kDiscardableLimit) discardable_.push_back(run);
    });
  std::vector<Run> expired;
  while (!pending_.empty() && pending_.front().generation + kFallbackRoots <= generation) {
    expired.insert(expired.end(), pending_.front().runs.begin(), pending_.front().runs.end());
    pending_.pop_front();
  }
  std::vector<Run> leaving;
  std::erase_if(expired, [&](const Run& run) {
    const bool leaves = !allocator_->usable(run.disk) || is_behind_end(run);
    if (leaves) leaving.push_back(run);
    return leaves;
  });
  held_.keep_back(expired);
  while (held_.waiting_blocks() > total_data_ / kHeldShare) {
    const std::vector<Run> broken = held_.break_oldest();
    expired.insert(expired.end(), broken.begin(), broken.end());
  }
  held_.break_those_of(leaving);
  expired.insert(expired.end(), leaving.begin(), leaving.end());
  return expired;
}

void Space::release(std::span<const Run> runs) {
  const std::lock_guard lock(mutex_);
  release_locked(runs);
}

void Space::release_locked(std::span<const Run> runs) {
  for (const Run& run : runs) {
    alloc::SpaceMap* map = allocator_->map(run.disk);
    map->release(run.block, run.blocks);
    pending_free_ -= run.blocks;
    if (run.block >= map->layout().metadata_end()) pending_free_data_[run.disk] -= run.blocks;
  }
  // The commit before the last freed them, or one before that.
  const std::uint64_t freed_in = generation_ - std::min<std::uint64_t>(generation_, kFallbackRoots);
  if (!recent_.add(freed_in, runs)) no_discard_before_ = freed_in + kKeptCommits - 1;
  trim();
  shrink();
}

void Space::shrink() {
  std::uint64_t disks = 0;
  for (std::size_t i = 0; i < allocator_->disk_count(); ++i) disks += allocator_->map(i) ? 1 : 0;
  for (std::size_t i = 0; i < allocator_->disk_count(); ++i)
    if (alloc::SpaceMap* map = allocator_->map(i)) map->shrink(kLoadedPagesLimit / disks);
}

std::vector<Run> Space::runs_of(std::span<const format::Address> places) const {
  std::vector<Run> runs;
  for (const format::Address& address : places)
    runs.push_back({address.disk, address.block, static_cast<std::uint32_t>(node_blocks_)});
  return runs;
}

}  // namespace mdfs::store
