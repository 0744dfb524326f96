// Space of the volume: reservations, and what is kept free for whom.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "store/pairs.h"
#include "store/space.h"
#include "store/tree.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kWorkShare = 8;  // of what the metadata regions have room for
constexpr std::uint64_t kWorkLimit = 1024;

}  // namespace

// A change of a few items copies their leaves and the nodes above: four leaves are as many as freeing and publishing
// one piece of data needs, with a split or two. Larger volumes keep more, so that more is freed and published at a
// time.
std::uint64_t Space::kept_nodes(Purpose purpose, const SpaceAmount& own) const {
  const SpaceAmount others = reserved_.less(own);
  const std::uint64_t growth = worst_growth(tree_.nodes, others.items, others.bytes);
  const std::uint64_t levels = std::max<std::uint64_t>(tree_.level, 1) + 1;
  const std::uint64_t share = std::min(total_metadata_ / place_blocks() / kWorkShare, kWorkLimit);
  const std::uint64_t work = std::max(4 * levels + 2, share);
  if (is_ordinary(purpose)) return growth + 2 * work;
  return purpose == Purpose::kReserved ? growth + work : growth;
}

std::uint64_t Space::missing_nodes(std::uint64_t home) const {
  const std::uint64_t needed = tree_.changed + kept_nodes(Purpose::kNormal);
  const std::uint64_t there = pool_.size() + far_.size() + home;
  return needed > there ? needed - there : 0;
}

std::uint64_t Space::kept_data(Purpose purpose) const {
  if (is_ordinary(purpose)) return data_reserve_ + missing_nodes(home_nodes()) * place_blocks();
  return purpose == Purpose::kReserved ? data_reserve_ / 2 : 0;
}

void Space::set_spare_disks(unsigned disks) {
  const std::lock_guard lock(mutex_);
  spare_disks_ = disks;
  count_disks();
}

void Space::note_rebuilt(std::uint64_t disks) {
  const std::lock_guard lock(mutex_);
  rebuilt_ |= disks;
  count_disks();
}

void Space::count_again() {
  const std::lock_guard lock(mutex_);
  count_disks();
}

std::uint64_t Space::data_for(Purpose purpose) const {
  const std::uint64_t spare = purpose == Purpose::kNormal ? spare_ : 0;
  const std::uint64_t kept = reserved_.blocks + kept_data(purpose) + spare;
  const std::uint64_t free = allocator_->data_free() + discarding_data();
  return free > kept ? free - kept : 0;
}

std::string Space::beside_spare(Purpose purpose) const {
  if (purpose != Purpose::kNormal || spare_ == 0) return "";
  return fmt::format(" beside the {} that are kept for the rebuild of a lost disk", spare_);
}

std::optional<std::uint64_t> Space::pairs(bool with_pending) const {
  std::vector<std::uint64_t> free;
  unsigned disks = 0;
  for (std::size_t disk = 0; disk < allocator_->disk_count(); ++disk) {
    free.push_back(free_data(disk) +
                   (with_pending && allocator_->usable(disk) && takes_data(disk) ? pending_free_data_[disk] : 0));
    disks += allocator_->usable(disk) && takes_data(disk) ? 1 : 0;
  }
  if (disks < 2) return std::nullopt;
  return pairs_in(free);
}

std::uint64_t Space::free_data(std::size_t disk) const {
  return allocator_->usable(disk) && takes_data(disk) ? allocator_->map(disk)->data_free() : 0;
}

std::vector<std::uint64_t> Space::free_of_disks() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> free;
  for (std::size_t disk = 0; disk < allocator_->disk_count(); ++disk) free.push_back(free_data(disk));
  return free;
}

Status Space::reserve(const SpaceAmount& amount, Purpose purpose) {
  std::unique_lock lock(mutex_);
  if (!knows_freed_) return {Errc::kNoSpace, "free blocks are unknown before the first commit of this mount"};
  reserved_ += {0, amount.items, amount.bytes};  // first, so that what is taken meanwhile leaves room for them
  // Only a transaction that frees may use what is kept for working.
  const Purpose leaves = purpose == Purpose::kFreeing ? Purpose::kReserved : purpose;
  const auto find_room = [&]() -> Status {
    if (amount.items > 0) MDFS_TRY(keep_room(lock, tree_.changed, kept_nodes(leaves), purpose));
    if (data_for(purpose) < amount.blocks)
      return {Errc::kNoSpace, fmt::format("{} blocks are needed, {} are free{}", amount.blocks, data_for(purpose),
                                          beside_spare(purpose))};
    if (amount.pairs == 0 || purpose == Purpose::kFreeing) return {};
    // What is kept may be taken where the pairs need it.
    const auto found = pairs(false);
    if (!found || *found >= reserved_.pairs + amount.pairs + kept_data(purpose)) return {};
    return {Errc::kNoSpace, fmt::format("{} blocks and as many on other disks are needed: one disk alone has most of "
                                        "the free blocks",
                                        amount.pairs)};
  };
  Status status = find_room();
  while (!status.ok() && wait_for_discards(lock)) status = find_room();
  if (status.ok()) {
    reserved_.blocks += amount.blocks;
    reserved_.pairs += amount.pairs;
  } else {
    reserved_ = reserved_.less({0, amount.items, amount.bytes});
    trim();
  }
  return status;
}

void Space::give_back(const SpaceAmount& amount) {
  const std::lock_guard lock(mutex_);
  MDFS_CHECK(amount.less(reserved_).empty());
  reserved_ = reserved_.less(amount);
  if (amount.items > 0) trim();
}

// Nodes lie where there was room for them, in or beyond the metadata regions; what is free for data does not depend on
// that. So the same contents leave the same number of blocks free.
SpaceInfo Space::info() const {
  const std::lock_guard lock(mutex_);
  SpaceInfo info;
  info.total_blocks = total_data_;
  std::uint64_t far_blocks = 0;
  for (const NodePlace& place : far_) far_blocks += place.copies * node_blocks_;
  const std::uint64_t free_now = allocator_->data_free() + discarding_data();
  std::uint64_t used = total_data_ - std::min(total_data_, free_now + pending_free_data() + far_blocks);
  if (all_healthy_) {
    std::uint64_t published = 0;
    for (std::size_t i = 0; i < allocator_->disk_count(); ++i)
      if (const alloc::SpaceMap* map = allocator_->map(i))
        published += map->layout().usable_blocks() - map->disk_free();
    const std::uint64_t data = published - std::min(published, published_node_blocks_);
    const std::uint64_t nodes = tree_.nodes * place_blocks();
    used = std::min(total_data_, data + nodes - std::min(nodes, total_metadata_));
  }
  info.free_blocks = total_data_ - used;
  const std::uint64_t missing = missing_nodes(home_nodes(pending_free_ - pending_free_data())) * place_blocks();
  info.spare_blocks = spare_;
  info.spare_disks = spare_disks_;
  info.is_rebuilt = is_rebuilt_;
  const std::uint64_t kept = reserved_.blocks + data_reserve_ + missing + spare_;
  const std::uint64_t free = std::min(free_now + pending_free_data(), info.free_blocks);
  info.available_blocks = free > kept ? free - kept : 0;
  info.available_pairs = info.available_blocks;
  if (const auto found = pairs(true))
    info.available_pairs = std::min(
        info.available_blocks / 2, *found - std::min<std::uint64_t>(*found, reserved_.pairs + data_reserve_ + missing));
  return info;
}

}  // namespace mdfs::store
