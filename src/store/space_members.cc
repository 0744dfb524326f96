// Space of the volume: disks that come and go.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "store/space.h"

namespace mdfs::store {

Status Space::add_disk(std::uint16_t disk, const format::SpaceEntry& top) {
  const MemberDisk& member = members_[disk];
  const format::DiskLayout layout = layout_of(*member.label);
  auto index = std::make_unique<SpaceIndex>(layout, top);
  index->read(*member.disk);
  auto map = std::make_unique<alloc::SpaceMap>(layout, member.label->zone_blocks, index->free_blocks());
  if (const auto boundary = map->boundary_page()) {
    AlignedBuffer buffer(MDFS_SECTOR);
    const format::SpaceEntry& entry = index->entry(*boundary);
    MDFS_TRY(device::read(*member.disk, layout.space_offset({0, *boundary}, entry.place), buffer.bytes()));
    MDFS_TRY(format::check_bitmap(layout, *boundary, entry, buffer.bytes()));
    map->install(*boundary, buffer.bytes());
  }
  std::unique_lock lock(mutex_);
  if (disk >= index_.size()) {
    index_.resize(disk + std::size_t{1});
    tops_.resize(disk + std::size_t{1});
  }
  index_[disk] = std::move(index);
  tops_[disk] = top;
  allocator_->set_map(disk, std::move(map));
  count_disks();
  return refill_pool(lock);  // places that were chosen among fewer disks
}

std::uint64_t Space::used_blocks(std::uint16_t disk) const {
  const std::lock_guard lock(mutex_);
  const alloc::SpaceMap* map = disk < allocator_->disk_count() ? allocator_->map(disk) : nullptr;
  if (map == nullptr) return 0;
  return map->busy_blocks() - discarding_blocks(disk, {0, map->layout().blocks()});
}

Status Space::remove_disk(std::uint16_t disk) {
  const std::uint64_t used = used_blocks(disk);
  const std::lock_guard lock(mutex_);
  if (used > 0) return {Errc::kNotEmpty, fmt::format("disk {}: {} blocks are in use", disk, used)};
  allocator_->set_map(disk, nullptr);
  recent_.forget_disk(disk);
  index_[disk].reset();
  tops_[disk] = {};
  count_disks();
  return {};
}

Status Space::refill_pool(std::unique_lock<std::mutex>& lock) {
  for (std::deque<NodePlace>* places : {&pool_, &far_}) {
    for (const NodePlace& place : *places) release_place(place);
    places->clear();
  }
  while (pool_.size() + far_.size() < tree_.changed) MDFS_TRY(take_into_pool(lock, Purpose::kNormal, Where::kAnywhere));
  return {};
}

Status Space::set_avoided(std::uint16_t disk, bool avoided, std::uint64_t* missing_blocks) {
  const std::uint64_t used = used_blocks(disk);
  std::unique_lock lock(mutex_);
  if (allocator_->map(disk) == nullptr) return {};
  allocator_->set_avoided(disk, avoided);
  count_disks();
  if (!avoided) return {};
  while (held_.waiting_blocks() > 0) release_locked(held_.break_oldest());
  Status status;
  const std::uint64_t room = node_disks_.empty() ? 0 : spare_data(Purpose::kNormal);
  if (node_disks_.empty()) {
    status = {Errc::kNoSpace, "there is no other disk"};
  } else if (room < used) {
    status = {Errc::kNoSpace,
              fmt::format("disk {1} holds {0} blocks, and the other disks have space for {2}", used, disk, room)};
  } else {
    status = refill_pool(lock);
  }
  if (status.ok()) return {};
  if (missing_blocks != nullptr) *missing_blocks = used > room ? used - room : 0;
  allocator_->set_avoided(disk, false);
  count_disks();
  if (pool_.size() + far_.size() < tree_.changed) MDFS_TRY(refill_pool(lock));
  return status;
}

}  // namespace mdfs::store
