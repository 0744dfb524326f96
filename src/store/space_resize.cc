// Space of the volume: a disk that is given another size.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/space.h"

namespace mdfs::store {

using alloc::SpaceMap;
using format::DiskLayout;

Status Space::pin_edge(std::uint16_t disk, const DiskLayout& layout) {
  std::unique_lock lock(mutex_);
  const SpaceIndex& index = *index_[disk];
  for (std::uint64_t page = 0; page < allocator_->map(disk)->page_count(); ++page)
    if (!index.known(page))
      return {Errc::kCorrupt, fmt::format("{}: a space page is damaged: the size stays as it is until mdfsck has "
                                          "repaired it",
                                          members_[disk].disk->name())};
  const SpaceMap::Pages edge = SpaceMap::edge_pages(allocator_->map(disk)->layout(), layout);
  for (std::uint64_t page = edge.first; page <= edge.last; ++page) {
    SpaceMap& map = *allocator_->map(disk);
    if (!map.loaded(page) && !map.broken(page)) {
      lock.unlock();
      load_page(disk, page);
      lock.lock();
    }
    if (map.loaded(page)) {
      map.pin(page);
      continue;
    }
    for (std::uint64_t pinned = edge.first; pinned < page; ++pinned) map.unpin(pinned);
    return {Errc::kCorrupt, fmt::format("{}: bitmap page {} is damaged: the size stays as it is until mdfsck has "
                                        "repaired it",
                                        members_[disk].disk->name(), page)};
  }
  return {};
}

void Space::unpin_edge(std::uint16_t disk, const DiskLayout& layout) {
  const std::lock_guard lock(mutex_);
  SpaceMap& map = *allocator_->map(disk);
  const SpaceMap::Pages edge = SpaceMap::edge_pages(map.layout(), layout);
  for (std::uint64_t page = edge.first; page <= edge.last; ++page) map.unpin(page);
}

bool Space::is_behind_end(const Run& run) const { return run.end() > allocator_->map(run.disk)->end(); }

Status Space::set_end(std::uint16_t disk, const DiskLayout& layout, std::uint64_t* missing_blocks) {
  MDFS_TRY(pin_edge(disk, layout));
  Status status;
  {
    std::unique_lock lock(mutex_);
    SpaceMap& map = *allocator_->map(disk);
    const auto set = [&](std::uint64_t end) {
      map.set_end(end);
      allocator_->end_changed(disk);
      count_disks();
    };
    // Discards in progress first give their blocks back.
    while (wait_for_discards(lock)) {
    }
    set(std::min(map.layout().end_usable(), layout.end_usable()));
    const std::uint64_t used = map.busy_behind();
    if (used > 0) {
      while (held_.waiting_blocks() > 0) release_locked(held_.break_oldest());
      const std::uint64_t room = data_for(Purpose::kNormal);
      if (room < used) {
        status = {
            Errc::kNoSpace,
            fmt::format("disk {1} holds {0} blocks behind its new end, and the rest of the volume has space for {2}{3}",
                        used, disk, room, beside_spare(Purpose::kNormal))};
        if (missing_blocks != nullptr) *missing_blocks = used - room;
      } else {
        status = refill_pool(lock);
      }
      if (!status.ok()) {
        set(map.layout().end_usable());
        if (pool_.size() + far_.size() < tree_.changed)
          if (const Status refilled = refill_pool(lock); !refilled.ok()) status = refilled;
      }
    }
  }
  unpin_edge(disk, layout);
  return status;
}

std::uint64_t Space::used_behind(std::uint16_t disk) const {
  const std::lock_guard lock(mutex_);
  return allocator_->map(disk)->busy_behind();
}

bool Space::must_move(std::uint16_t disk, const format::Pointer& node) const {
  const std::lock_guard lock(mutex_);
  const std::vector<Run> runs = runs_of(node.places());
  return std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
    return run.disk == disk && (!allocator_->usable(disk) || is_behind_end(run));
  });
}

Status Space::check_empty_behind(std::uint16_t disk, const DiskLayout& smaller) const {
  const std::lock_guard lock(mutex_);
  return empty_behind(disk, smaller);
}

Status Space::empty_behind(std::uint16_t disk, const DiskLayout& smaller) const {
  const SpaceMap& map = *allocator_->map(disk);
  if (map.end() == smaller.end_usable() && map.busy_behind() == 0) return {};
  return {Errc::kNotEmpty, fmt::format("disk {}: blocks behind the new end are in use", disk)};
}

Status Space::resize(std::uint16_t disk, const DiskLayout& layout, const std::vector<format::SpaceEntry>& new_bitmaps) {
  DiskLayout old = layout;
  {
    const std::lock_guard lock(mutex_);
    old = allocator_->map(disk)->layout();
  }
  MDFS_TRY(pin_edge(disk, layout));
  {
    std::unique_lock lock(mutex_);
    SpaceMap& map = *allocator_->map(disk);
    while (wait_for_discards(lock)) {
    }
    if (layout.blocks() < old.blocks()) {
      if (const Status empty = empty_behind(disk, layout); !empty.ok()) {
        lock.unlock();
        unpin_edge(disk, layout);
        return empty;
      }
      recent_.forget_behind(disk, layout.end_usable());
      std::erase_if(discardable_, [&](const Run& run) { return run.disk == disk && is_behind_end(run); });
    }
    map.resize(layout);
    index_[disk]->resize(layout, new_bitmaps);
    allocator_->end_changed(disk);
    count_disks();
  }
  unpin_edge(disk, old);
  return {};
}

void Space::free_labels(std::uint16_t disk, const DiskLayout& old) {
  const std::lock_guard lock(mutex_);
  SpaceMap& map = *allocator_->map(disk);
  for (std::uint64_t block = old.end_usable(); block < old.blocks();) {
    const std::uint64_t end = std::min(old.blocks(), (DiskLayout::bitmap_page(block) + 1) * MDFS_BITS_PER_PAGE);
    map.release(block, end - block);
    block = end;
  }
}

}  // namespace mdfs::store
