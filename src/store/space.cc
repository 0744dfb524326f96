// Space of the volume: allocation, promises and the pool of places for nodes.
// SPDX-License-Identifier: Apache-2.0
#include "store/space.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace mdfs::store {
namespace {

using Kind = alloc::Search::Kind;

constexpr std::uint64_t kDataReserveShare = 128;
constexpr std::uint64_t kDataReserveLimit = 4096;  // blocks
constexpr std::size_t kPoolSlack = 256;
constexpr std::uint64_t kPagesAhead = 15;  // 128 KiB with both places of each

}  // namespace

Space::Space(std::vector<MemberDisk>& members, const format::CommitSlot& slot, std::uint32_t block_size,
             std::uint64_t seed)
    : members_(members), block_size_(block_size), node_blocks_(format::node_blocks(block_size)), tops_(slot.space) {
  std::vector<std::unique_ptr<alloc::SpaceMap>> maps(members.size());
  index_.resize(members.size());
  unsigned healthy = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].healthy()) continue;
    ++healthy;
    const format::DiskLayout layout = layout_of(*members[i].label);
    index_[i] = std::make_unique<SpaceIndex>(layout, slot.space[i]);
    index_[i]->read(*members[i].disk);
    maps[i] = std::make_unique<alloc::SpaceMap>(layout, members[i].label->zone_blocks, index_[i]->free_blocks());
    for (std::uint64_t page = 0; page < layout.space_pages(0); ++page)
      if (!index_[i]->known(page)) maps[i]->set_broken(page);
    total_data_ += maps[i]->data_range().size();
    metadata_reserve_ += maps[i]->metadata_range().size() / 2;
  }
  data_reserve_ = std::min(total_data_ / kDataReserveShare, kDataReserveLimit);
  copies_ = std::max(2u, std::min(healthy, MDFS_MAX_COPIES));
  allocator_ = std::make_unique<alloc::Allocator>(std::move(maps), block_size, seed);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto disk = static_cast<std::uint16_t>(i);
    if (const alloc::SpaceMap* map = allocator_->map(i))
      if (const auto boundary = map->boundary_page()) load_page(disk, *boundary);
  }
}

void Space::load_page(std::uint16_t disk, std::uint64_t page, std::uint64_t ahead) {
  const format::DiskLayout layout = layout_of(*members_[disk].label);
  const std::uint64_t last = std::min(page + ahead, layout.space_pages(0) - 1);
  // Both places of all of them lie side by side.
  const std::uint64_t offset = layout.space_offset({0, page}, 0);
  AlignedBuffer buffer(layout.space_offset({0, last}, 1) + MDFS_SECTOR - offset);
  for (;;) {
    std::vector<format::SpaceEntry> entries;
    {
      const std::lock_guard lock(mutex_);
      const alloc::SpaceMap& map = *allocator_->map(disk);
      if (map.loaded(page) || map.broken(page)) return;
      for (std::uint64_t i = page; i <= last; ++i) entries.push_back(index_[disk]->entry(i));
    }
    const Status read = device::read(*members_[disk].disk, offset, buffer.bytes());
    for (std::uint64_t i = page; i <= last; ++i) {
      const format::SpaceEntry& entry = entries[i - page];
      const ConstBytes bytes = buffer.bytes().subspan(layout.space_offset({0, i}, entry.place) - offset, MDFS_SECTOR);
      const Status status = read.ok() ? format::check_bitmap(layout, i, entry, bytes) : read;
      const std::lock_guard lock(mutex_);
      // A page may have been loaded, changed, written elsewhere and forgotten meanwhile.
      if (index_[disk]->entry(i) == entry && (i == page || status.ok())) install(disk, i, status, bytes);
    }
  }
}

void Space::install(std::uint16_t disk, std::uint64_t page, const Status& status, ConstBytes bytes) {
  alloc::SpaceMap& map = *allocator_->map(disk);
  if (map.loaded(page) || map.broken(page)) return;
  if (status.ok()) return map.install(page, bytes);
  map.set_broken(page);
  spdlog::error("{}: bitmap page {}: {}; its free blocks count as in use", members_[disk].disk->name(), page,
                status.error().message());
}

std::uint64_t Space::spare_data(std::uint64_t reserve) const {
  const std::uint64_t free = allocator_->data_free();
  return free > promised_ + reserve ? free - promised_ - reserve : 0;
}

Status Space::promise(std::uint64_t blocks, Purpose purpose) {
  const std::lock_guard lock(mutex_);
  if (spare_data(purpose == Purpose::kFreeing ? 0 : data_reserve_) < blocks)
    return {Errc::kNoSpace, fmt::format("{} blocks", blocks)};
  promised_ += blocks;
  return {};
}

void Space::give_back(std::uint64_t blocks) {
  const std::lock_guard lock(mutex_);
  MDFS_CHECK(blocks <= promised_);
  promised_ -= blocks;
}

alloc::Answer Space::allocate_once(const AllocationRequest& request) {
  std::vector<std::uint16_t> disks{request.disk};
  if (request.may_spill) {
    for (std::size_t i = 0; i < allocator_->disk_count(); ++i)
      if (i != request.disk && allocator_->map(i)) disks.push_back(static_cast<std::uint16_t>(i));
    std::stable_sort(disks.begin() + 1, disks.end(), [&](std::uint16_t a, std::uint16_t b) {
      return allocator_->map(a)->data_free() > allocator_->map(b)->data_free();
    });
  }
  for (const std::uint16_t disk : disks) {
    const std::uint64_t near = disk == request.disk ? request.near_block : 0;
    const alloc::Answer answer = allocator_->allocate_data(disk, request.blocks, request.owner, near);
    if (answer.kind != Kind::kNone) return answer;
  }
  return {};
}

Result<Run> Space::allocate(const AllocationRequest& request, std::uint64_t promised) {
  if (request.blocks == 0 || request.disk >= members_.size())
    return Error{Errc::kInvalidArgument, fmt::format("{} blocks on disk {}", request.blocks, request.disk)};
  const std::uint64_t covered = std::min<std::uint64_t>(promised, request.blocks);
  for (std::uint64_t ahead = 0;; ahead = kPagesAhead) {  // a search that goes on reads more at once
    std::unique_lock lock(mutex_);
    const std::uint64_t uncovered = request.blocks - covered;
    const bool enough = uncovered == 0 || spare_data(data_reserve_) >= uncovered;
    const alloc::Answer answer = enough ? allocate_once(request) : alloc::Answer{};
    if (answer.kind == Kind::kNone)
      return Error{Errc::kNoSpace, fmt::format("no run of {} blocks for disk {}", request.blocks, request.disk)};
    if (answer.kind == Kind::kFound) {
      promised_ -= covered;
      shrink();
      return answer.run;
    }
    lock.unlock();
    load_page(answer.run.disk, answer.page, ahead);
  }
}

void Space::abandon(const Run& run) {
  const std::lock_guard lock(mutex_);
  if (alloc::SpaceMap* map = allocator_->map(run.disk)) map->release(run.block, run.blocks);
}

std::uint64_t Space::gated() const {
  const std::lock_guard lock(mutex_);
  return gated_;
}

SpaceInfo Space::info() const {
  const std::lock_guard lock(mutex_);
  SpaceInfo info;
  info.total_blocks = total_data_ - data_reserve_;
  info.free_blocks = allocator_->data_free() + gated_data_;
  const std::uint64_t kept = promised_ + data_reserve_;
  info.available_blocks = info.free_blocks > kept ? info.free_blocks - kept : 0;
  return info;
}

std::uint64_t Space::disk_free(std::size_t disk) const {
  const std::lock_guard lock(mutex_);
  const alloc::SpaceMap* map = allocator_->map(disk);
  return map ? map->disk_free() : 0;
}

alloc::Answer Space::extend_place(NodePlace& place, Purpose purpose) {
  const std::uint64_t kept = purpose == Purpose::kNormal     ? metadata_reserve_
                             : purpose == Purpose::kPromised ? metadata_reserve_ / 2
                                                             : 0;
  const bool inside = allocator_->metadata_free() >= kept + node_blocks_;
  const bool outside = spare_data(purpose == Purpose::kNormal ? data_reserve_ : 0) >= node_blocks_;
  for (const bool distinct : {true, false})
    for (const bool beyond : {false, true}) {
      if (beyond ? !outside : !inside) continue;
      for (std::size_t i = 0; i < allocator_->disk_count(); ++i) {
        const auto disk = static_cast<std::uint16_t>((rotation_ + place.copies + i) % allocator_->disk_count());
        const auto& places = place.places();
        const auto here = std::count_if(places.begin(), places.end(),
                                        [&](const format::Address& address) { return address.disk == disk; });
        if (distinct ? here > 0 : here == 0) continue;
        const alloc::Answer answer =
            allocator_->allocate_node(disk, static_cast<std::uint32_t>(node_blocks_), here > 0 ? 1 : 0, beyond);
        if (answer.kind == Kind::kNone) continue;
        if (answer.kind == Kind::kFound) place.address[place.copies++] = {disk, answer.run.block};
        return answer;
      }
    }
  return {};
}

void Space::release_place(const NodePlace& place) {
  for (const format::Address& address : place.places())
    allocator_->map(address.disk)->release(address.block, node_blocks_);
}

Status Space::fill_pool(std::size_t nodes, Purpose purpose) {
  std::unique_lock lock(mutex_);
  NodePlace place;
  while (pool_.size() < nodes) {
    const alloc::Answer answer = extend_place(place, purpose);
    if (answer.kind == Kind::kNone) {
      release_place(place);
      return {Errc::kNoSpace, "no room for the nodes of the tree"};
    }
    if (answer.kind == Kind::kNeedPage) {
      lock.unlock();
      load_page(answer.run.disk, answer.page);
      lock.lock();
    } else if (place.copies == copies_) {
      pool_.push_back(place);
      place = {};
      ++rotation_;
    }
  }
  release_place(place);
  return {};
}

void Space::trim_pool(std::size_t nodes) {
  const std::lock_guard lock(mutex_);
  if (pool_.size() <= nodes + kPoolSlack) return;
  while (pool_.size() > nodes + kPoolSlack / 2) {
    release_place(pool_.back());
    pool_.pop_back();
  }
}

NodePlace Space::take_place() {
  const std::lock_guard lock(mutex_);
  MDFS_CHECK(!pool_.empty());
  const NodePlace place = pool_.front();
  pool_.pop_front();
  for (const format::Address& address : place.places())
    allocator_->map(address.disk)->link(address.block, node_blocks_);
  return place;
}

}  // namespace mdfs::store
