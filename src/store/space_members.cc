// Space of the volume: disks that come and go.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
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
  if (!member.member.takes_data()) without_data_ |= std::uint64_t{1} << disk;
  allocator_->set_map(disk, std::move(map));
  for (std::size_t i = 0; i < allocator_->disk_count(); ++i)  // see use_drained_if_alone()
    if (allocator_->map(i) != nullptr && members_[i].member.is_draining()) allocator_->set_avoided(i, true);
  count_disks();
  return refill_pool(lock);  // places that were chosen among fewer disks
}

std::uint64_t Space::used_blocks(std::uint16_t disk) const {
  const std::lock_guard lock(mutex_);
  const alloc::SpaceMap* map = disk < allocator_->disk_count() ? allocator_->map(disk) : nullptr;
  if (map == nullptr || is_out(disk)) return 0;
  return map->busy_blocks() - discarding_blocks(disk, {0, map->layout().blocks()});
}

Status Space::remove_disk(std::uint16_t disk) {
  const std::uint64_t used = used_blocks(disk);
  renew_places();
  const std::lock_guard lock(mutex_);
  if (places_on_out_) return {Errc::kNoSpace, "no room for tree nodes beside those on disks that are out"};
  if (used > 0) return {Errc::kNotEmpty, fmt::format("disk {}: {} blocks are in use", disk, used)};
  allocator_->set_map(disk, nullptr);
  out_[disk] = false;
  recent_.forget_disk(disk);
  index_[disk].reset();
  tops_[disk] = {};
  without_data_ &= ~(std::uint64_t{1} << disk);
  count_disks();
  return {};
}

void Space::leave_out(std::uint16_t disk, const format::SpaceEntry& top) {
  const std::lock_guard lock(mutex_);
  out_[disk] = true;
  tops_[disk] = top;
  places_on_out_ = true;
  allocator_->set_avoided(disk, true);
  while (held_.waiting_blocks() > 0) release_locked(held_.break_oldest());
  const auto forget = [&](std::vector<Run>& runs) {
    std::erase_if(runs, [&](const Run& run) {
      if (run.disk != disk) return false;
      pending_free_ -= run.blocks;
      return true;
    });
  };
  forget(freeing_);
  for (PendingFree& freed : pending_) forget(freed.runs);
  pending_free_data_[disk] = 0;
  std::erase_if(discardable_, [&](const Run& run) { return run.disk == disk; });
  use_drained_if_alone();
  count_disks();
}

void Space::use_drained_if_alone() {
  for (std::size_t i = 0; i < allocator_->disk_count(); ++i)
    if (allocator_->usable(i)) return;
  for (std::size_t i = 0; i < allocator_->disk_count(); ++i)
    if (allocator_->map(i) != nullptr && !is_out(static_cast<std::uint16_t>(i))) allocator_->set_avoided(i, false);
}

void Space::renew_places() {
  std::unique_lock lock(mutex_);
  if (!std::exchange(places_on_out_, false)) return;
  std::vector<NodePlace> old;
  for (std::deque<NodePlace>* places : {&pool_, &far_})
    std::erase_if(*places, [&](const NodePlace& place) {
      const auto at = place.places();
      if (std::none_of(at.begin(), at.end(), [&](const auto& address) { return is_out(address.disk); })) return false;
      old.push_back(place);
      return true;
    });
  for (const NodePlace& place : old) {
    if (take_into_pool(lock, Purpose::kFreeing, Where::kAnywhere).ok()) {
      release_place(place);
    } else {
      (is_far(place) ? far_ : pool_).push_back(place);
      places_on_out_ = true;
    }
  }
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
  if (allocator_->map(disk) == nullptr || is_out(disk)) return {};
  allocator_->set_avoided(disk, avoided);
  count_disks();
  if (!avoided) return {};
  while (held_.waiting_blocks() > 0) release_locked(held_.break_oldest());
  Status status;
  const std::uint64_t room = node_disks_.empty() ? 0 : data_for(Purpose::kNormal);
  if (std::none_of(node_disks_.begin(), node_disks_.end(), [&](std::uint16_t other) { return takes_data(other); })) {
    status = {Errc::kNoSpace, node_disks_.empty() ? "there is no other disk" : "no other disk takes data"};
  } else if (room < used) {
    status = {Errc::kNoSpace, fmt::format("disk {1} holds {0} blocks, and the other disks have space for {2}{3}", used,
                                          disk, room, beside_spare(Purpose::kNormal))};
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
