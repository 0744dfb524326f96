// Orphans: inodes without a name. Their items and blocks are freed in bounded transactions after their last hold. A
// named inode is among them while it has data of the other kind (becoming.cc), which are freed.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "engine/write/free_data.h"
#include "format/limits.h"
#include "volume/level_items.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

constexpr std::size_t kOrphansAtOnce = 256;

// Erases items of every kind but the inode, also of kinds that only a newer version knows. True when none is left.
Result<bool> erase_some_items(store::Transaction& transaction, Ino ino, std::size_t at_once) {
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  transaction.scan({ino, MDFS_KIND_INODE + 1, 0}, {ino, UINT64_MAX, UINT64_MAX}, at_once));
  for (const store::Item& item : items) transaction.erase(item.key);
  return items.size() < at_once;
}

// Of an image, or of a file that was to become one.
Result<bool> free_some_extents(store::Transaction& transaction, Ino ino, bool is_image, std::uint32_t block_size,
                               std::size_t at_once) {
  if (!is_image) {
    MDFS_TRY_ASSIGN(const auto item, transaction.get(geometry_key(ino)));
    if (!item) return true;
  }
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, read_geometry(transaction, ino));
  return engine::free_some_data(transaction, ino, geometry, block_size, at_once);
}

// Takes away a part of what a file with a name has of the other kind; true when nothing of it is left.
Result<bool> free_some_leftovers(store::Transaction& transaction, Ino ino, std::uint32_t block_size,
                                 std::size_t at_once) {
  MDFS_TRY_ASSIGN(const std::optional<format::Inode> inode, find_inode(transaction, ino));
  if (inode && inode->links == 0) return true;  // goes as a whole
  if (inode && inode->is_image()) {
    MDFS_TRY_ASSIGN(const bool no_cells, engine::free_some_data(transaction, ino, {}, block_size, at_once));
    if (!no_cells) return false;
  } else if (inode && inode->is_regular()) {
    MDFS_TRY_ASSIGN(const bool no_extents, free_some_extents(transaction, ino, false, block_size, at_once));
    if (!no_extents) return false;
    transaction.erase(geometry_key(ino));
  }
  transaction.erase(orphan_key(ino));
  return true;
}

// Takes away a part of an orphan, `at_once` items; true when nothing is left.
Result<bool> free_some(store::Transaction& transaction, Ino ino, std::uint32_t block_size, std::size_t at_once,
                       std::vector<Ino>& levels) {
  MDFS_TRY_ASSIGN(const std::optional<format::Inode> inode, find_inode(transaction, ino));
  if (!inode) {
    transaction.erase(orphan_key(ino));
    return true;
  }
  if (inode->links > 0) return true;
  if (inode->is_image()) MDFS_TRY(drop_levels(transaction, ino, 0, levels));
  if (inode->is_regular()) {
    MDFS_TRY_ASSIGN(const bool no_extents, free_some_extents(transaction, ino, inode->is_image(), block_size, at_once));
    if (!no_extents) return false;
    MDFS_TRY_ASSIGN(const bool no_cells, engine::free_some_data(transaction, ino, {}, block_size, at_once));
    if (!no_cells) return false;
  }
  MDFS_TRY_ASSIGN(const bool no_items, erase_some_items(transaction, ino, at_once));
  if (!no_items) return false;
  transaction.erase(inode_key(ino));
  transaction.erase(orphan_key(ino));
  transaction.count_objects(-1);
  return true;
}

}  // namespace

void VolumeImpl::orphan_unheld(Ino ino) {
  {
    const std::lock_guard lock(orphans_mutex_);
    orphans_.push_back(ino);
  }
  if (options_.commit_interval_ns > 0) {
    orphans_changed_.notify_one();
  } else if (!closed_) {
    free_queued_orphans(INT64_MAX);
  }
}

Status VolumeImpl::queue_orphans_of_last_mount() {
  if (store_->holds_still()) return {};  // the next mount frees them
  for (Ino next = 0;;) {
    MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                    store_->scan(orphan_key(next), orphan_key(format::kMaxObject - 1), kOrphansAtOnce));
    const std::lock_guard lock(orphans_mutex_);
    for (const store::Item& item : items) orphans_.push_back(item.key.offset);
    if (items.size() < kOrphansAtOnce) return {};
    next = items.back().key.offset + 1;
  }
}

Status VolumeImpl::free_leftovers(Ino ino) {
  const std::lock_guard lock(freeing_mutex_);
  return free_in_steps([&](store::Transaction& transaction, std::size_t at_once) {
    return free_some_leftovers(transaction, ino, store_->block_size(), at_once);
  });
}

Status VolumeImpl::clear_leftovers(Ino ino) {
  MDFS_TRY_ASSIGN(const auto any, store_->get(orphan_key(ino)));
  return any ? free_leftovers(ino) : Status();
}

Status VolumeImpl::free_orphan(Ino ino) {
  MDFS_TRY_ASSIGN(const std::optional<format::Inode> item, find_inode(*store_, ino));
  if (item && item->links > 0) return free_leftovers(ino);
  const std::lock_guard lock(freeing_mutex_);
  const Pin pin = table_.pin(ino);
  if (table_.is_held(*pin)) {
    pin->unlinked = true;  // comes back here when it is released
    return {};
  }
  open_objects_.discard(*pin);
  pin->unlinked = false;  // also if it cannot be freed: then the next mount tries again, and not the next release
  std::vector<Ino> levels;
  const Status freed = free_in_steps([&](store::Transaction& transaction, std::size_t at_once) {
    return free_some(transaction, ino, store_->block_size(), at_once, levels);
  });
  const std::lock_guard orphans(orphans_mutex_);
  orphans_.insert(orphans_.end(), levels.begin(), levels.end());
  return freed;
}

Status VolumeImpl::free_in_steps(const std::function<Result<bool>(store::Transaction&, std::size_t at_once)>& step) {
  std::size_t at_once = kOrphansAtOnce;
  for (bool gone = false; !gone;) {
    const Status status = change(store::Purpose::kFreeing, [&](Change& change) -> Status {
      MDFS_TRY_ASSIGN(gone, step(change.transaction, at_once));
      return {};
    });
    if (status.ok()) continue;
    // A full volume has room for the nodes of a few items at a time.
    gone = false;
    if (status.error().code != Errc::kNoSpace || at_once == 1) return status;
    at_once /= 2;
  }
  return {};
}

// True when the queue has become empty.
bool VolumeImpl::free_queued_orphans(std::int64_t budget_ns) {
  const std::int64_t start_ns = environment_.monotonic_ns();
  for (;;) {
    Ino ino = 0;
    {
      const std::lock_guard lock(orphans_mutex_);
      if (orphans_.empty()) return true;
      ino = orphans_.front();
      orphans_.pop_front();
    }
    const Status status = free_orphan(ino);
    if (!status.ok()) spdlog::error("inode {}: not freed until the next mount: {}", ino, status.error().message());
    if (environment_.monotonic_ns() - start_ns > budget_ns) return false;
  }
}

Status VolumeImpl::free_deleted() {
  constexpr std::int64_t kBudgetNs = 10'000'000'000;
  MDFS_TRY(check_writable());
  if (!store_->holds_still()) free_queued_orphans(kBudgetNs);
  return store_->commit_discardable();
}

void VolumeImpl::reaper_loop() {
  constexpr std::int64_t kTurnNs = 100'000'000;
  for (;;) {
    {
      std::unique_lock lock(orphans_mutex_);
      orphans_changed_.wait(lock, [&] { return stopping_ || !orphans_.empty(); });
      if (stopping_) return;
    }
    free_queued_orphans(kTurnNs);
  }
}

}  // namespace mdfs::volume
