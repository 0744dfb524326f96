// Write-back: one batch, from the lock to publishing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "engine/write/write_back.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

// All that has to be valid before the cache block can be written: all of an extent, the dirty blocks of a cell.
std::vector<ByteRanges::Range> needed_ranges(const OpenObject& object, const CacheBlock& cached) {
  if (object.is_image()) return {{0, object.extent_bytes}};
  std::vector<ByteRanges::Range> ranges;
  for (std::uint32_t block = 0; block < 32; ++block)
    if ((cached.dirty_blocks >> block & 1) != 0)
      ranges.push_back({block * object.block_size, (block + 1) * object.block_size});
  return ranges;
}

bool is_ready(const OpenObject& object, const CacheBlock& block) {
  const std::vector<ByteRanges::Range> ranges = needed_ranges(object, block);
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](const ByteRanges::Range& range) { return block.covers(range.begin, range.end); });
}

}  // namespace

Status WriteBack::load_rest(OpenObject& object, const std::vector<CacheBlockPtr>& blocks) {
  std::vector<Want> wants;
  for (const CacheBlockPtr& block : blocks) {
    const std::lock_guard lock(block->mutex);
    if (block->dirty && !is_ready(object, *block))
      wants.push_back({block, object.extent_coord(block->key.index), needed_ranges(object, *block)});
  }
  return loader_.load(object, std::move(wants), [](std::size_t, const BufferRef&) {});
}

namespace {

// The bytes in the tree must become a block.
bool must_leave_tree(OpenObject& object) {
  const std::lock_guard lock(object.state_mutex);
  return object.published_inline && object.size.load(std::memory_order_acquire) > MDFS_MAX_INLINE;
}

}  // namespace

bool WriteBack::outgrows_tree(OpenObject& object, std::uint64_t end) {
  return !object.is_image() && end > MDFS_MAX_INLINE && object.size.load(std::memory_order_acquire) <= MDFS_MAX_INLINE;
}

Status WriteBack::note_outgrown(OpenObject& object, store::Reservation reservation) {
  if (!must_leave_tree(object)) return {};
  const CacheBlockPtr first = core_.cache.find_or_create(object.key_of(0));
  MDFS_TRY(loader_.load(object, {{first, {}, {{0, object.block_size}}}}, [](std::size_t, const BufferRef&) {}));
  std::unique_lock lock(first->mutex);
  first->changed.wait(lock, [&] { return !first->write_locked; });
  if (!must_leave_tree(object) || (first->dirty_blocks & 1) != 0) return {};
  Change change;
  change.blocks = 1;
  change.reservation = reservation.split(object.worst_case(1, false));
  note_change(object, first, std::move(change));
  return {};
}

Status WriteBack::leave_inline(OpenObject& object, std::vector<CacheBlockPtr>& blocks) {
  if (object.is_image() || !must_leave_tree(object)) return {};
  MDFS_TRY(note_outgrown(object, store::Reservation()));
  const CacheBlockPtr first = core_.cache.find_or_create(object.key_of(0));
  if (std::find(blocks.begin(), blocks.end(), first) == blocks.end()) blocks.insert(blocks.begin(), first);
  return {};
}

bool WriteBack::lock_whole(OpenObject& object, const CacheBlockPtr& block, Batch& batch) {
  const std::lock_guard lock(block->mutex);
  if (!block->dirty || block->write_locked || !is_ready(object, *block)) return false;
  block->write_locked = true;
  Staged staged;
  staged.index = block->key.index;
  staged.coord = object.extent_coord(staged.index);
  staged.decoded = block->buffer;
  staged.blocks = std::exchange(block->dirty_blocks, 0);
  staged.block = block;
  block->filled_bytes = 0;
  const ChangedBytes changed = std::exchange(block->changed_bytes, {});
  {
    const std::lock_guard state(object.state_mutex);
    if (std::exchange(block->full, false)) object.remove_full(staged.coord);
    batch.whole.snapshots.push_back({block->changes, changed, block->reserved, object.end_of(staged.index)});
    batch.reservation.absorb(object.reservation.split(std::exchange(block->reserved, {})));
  }
  batch.whole.extents.push_back(std::move(staged));
  return true;
}

// A write that lets the object grow meanwhile may be in some of the cache blocks and not in others, so that the size of
// before does not reach its end, and that of after shows zeros: then once more. One that never rests is taken as it is.
void WriteBack::lock_all(OpenObject& object, const std::vector<CacheBlockPtr>& whole,
                         const std::vector<CacheBlockPtr>& in_parts, Batch& batch) {
  constexpr unsigned kMostTries = 4;
  for (unsigned tries = 1;; ++tries) {
    batch.size = object.size.load(std::memory_order_acquire);
    for (const CacheBlockPtr& block : whole) (void)lock_whole(object, block, batch);
    for (const CacheBlockPtr& block : in_parts) (void)lock_changes(object, block, batch);
    const std::uint64_t size = object.size.load(std::memory_order_acquire);
    std::uint64_t end = 0;
    for (Locked* const locked : {&batch.whole, &batch.in_parts}) {
      locked->end = 0;
      for (const Snapshot& snapshot : locked->snapshots) locked->end = std::max(locked->end, snapshot.end);
      locked->end = std::min(locked->end, size);
      end = std::max(end, locked->end);
    }
    if (end <= batch.size || tries == kMostTries) return;
    finish(object, batch, false);
  }
}

Status WriteBack::write_batch(OpenObject& object, std::vector<CacheBlockPtr> blocks) {
  Status status = write_without_failed_disks([&] { return write_at_once(object, blocks, Way::kStripsWhereWorth); });
  if (status.ok() || status.error().code != Errc::kNoSpace || blocks.size() < 2) return status;
  const auto middle = blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2);
  MDFS_TRY(write_batch(object, {blocks.begin(), middle}));
  return write_batch(object, {middle, blocks.end()});
}

Status WriteBack::write_at_once(OpenObject& object, std::vector<CacheBlockPtr> blocks, Way way) {
  std::vector<CacheBlockPtr> in_parts, not_taken;
  if (object.may_have_strips && way == Way::kStripsWhereWorth) MDFS_TRY(take_parts(object, blocks, in_parts));
  MDFS_TRY(leave_inline(object, blocks));
  // All or none, if another try may succeed. What is lost keeps the extents dirty that need it, and no others.
  Status loaded = load_rest(object, blocks);
  if (!loaded.ok() && !is_lost(loaded.error())) return loaded;
  Batch batch;
  lock_all(object, blocks, in_parts, batch);
  if (batch.whole.extents.empty() && batch.in_parts.extents.empty()) return loaded;

  const bool has_first = std::any_of(batch.whole.extents.begin(), batch.whole.extents.end(),
                                     [](const Staged& staged) { return staged.index == 0; });
  {
    const std::lock_guard lock(object.state_mutex);
    const bool small = batch.size <= MDFS_MAX_INLINE;
    batch.inline_bytes = !object.is_image() && small && !object.has_cells && has_first;
    // The file grew out of the tree after leave_inline() had looked: next time.
    batch.postponed = object.published_inline && !batch.inline_bytes && !has_first;
  }
  Status status;
  if (!batch.postponed) {
    if (batch.inline_bytes) {
      status = publish_inline(object, batch);
    } else {
      status = write_strips(object, batch, not_taken);
      if (status.ok() && !batch.whole.extents.empty())
        status = stage(core_, object, batch.whole.extents, batch.reservation);
      if (status.ok())
        status = publish_batch(object, batch);
      else
        abandon_strips(batch);
    }
  }
  const bool full_page = !status.ok() && status.error().code == Errc::kBusy;
  finish(object, batch, status.ok() && !batch.postponed);
  if (full_page) {
    blocks.insert(blocks.end(), in_parts.begin(), in_parts.end());
    return write_at_once(object, std::move(blocks), Way::kWhole);
  }
  if (status.ok() && !not_taken.empty()) status = write_at_once(object, std::move(not_taken), Way::kWhole);
  return status.ok() ? std::move(loaded) : status;
}

std::uint64_t WriteBack::size_to_publish(const OpenObject& object, const Batch& batch) {
  std::vector<std::uint64_t> in_batch;
  for (const Locked* const locked : {&batch.whole, &batch.in_parts})
    for (const Staged& staged : locked->extents) in_batch.push_back(staged.index);
  std::sort(in_batch.begin(), in_batch.end());
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  std::uint64_t published = std::min(batch.size, size);
  for (const auto& [index, extent] : object.dirty_cache_blocks) {
    if (object.first_byte_of(index) >= published) break;
    if (std::binary_search(in_batch.begin(), in_batch.end(), index)) continue;
    published = object.first_byte_of(index);
    break;
  }
  const std::uint64_t reached = std::min(size, std::max(batch.whole.end, batch.in_parts.end));
  return std::max({published, reached, object.published_size});
}

Status WriteBack::publish_batch(OpenObject& object, Batch& batch) {
  Publisher::Pages pages;
  std::vector<Home> homes;
  std::uint64_t size = 0;
  bool left_inline = false;
  std::vector<StagedStrip> strips;
  for (StripJob& job : batch.strips) strips.push_back(job.staged);
  const std::lock_guard publishing(object.publishing);
  const auto publish = [&](store::Transaction& transaction) -> Status {
    Publisher publisher(core_, object, transaction);
    if (!batch.whole.extents.empty()) MDFS_TRY(publisher.publish(batch.whole.extents));
    if (!strips.empty()) MDFS_TRY(publisher.publish_strips(strips));
    {
      const std::lock_guard lock(object.state_mutex);
      size = size_to_publish(object, batch);
      left_inline = object.published_inline;
    }
    if (left_inline) transaction.erase(inline_key(object));
    MDFS_TRY(object.update(transaction, {size, publisher.stored_bytes_change(), false}));
    pages = publisher.pages();
    homes = publisher.homes();
    return {};
  };
  Status status = core_.store.transact(store::Purpose::kReserved, publish, &batch.reservation);
  if (!status.ok()) {
    abandon(core_, batch.whole.extents);
    abandon_strips(batch);
    return status;
  }
  update_cached_pages(core_, object, pages);
  if (core_.options.grouping) core_.relocations.homes().note(object.number, homes);
  const std::lock_guard lock(object.state_mutex);
  object.published_size = std::max(object.published_size, size);
  object.published_inline = false;
  object.has_cells = !object.is_image();
  return {};
}

Status WriteBack::publish_inline(OpenObject& object, Batch& batch) {
  const Staged& first = batch.whole.extents.front();
  ByteVector bytes(batch.size);
  if (first.decoded)
    std::copy_n(first.decoded.data(), std::min<std::size_t>(bytes.size(), first.decoded.size()), bytes.begin());
  const std::lock_guard publishing(object.publishing);
  const auto publish = [&](store::Transaction& transaction) -> Status {
    {
      const std::lock_guard lock(object.state_mutex);
      // The file has grown meanwhile.
      batch.postponed = object.has_cells || object.size.load(std::memory_order_acquire) != batch.size;
    }
    if (batch.postponed) return {};
    transaction.put(inline_key(object), bytes);
    return object.update(transaction, {batch.size, 0, true});
  };
  MDFS_TRY(core_.store.transact(store::Purpose::kReserved, publish, &batch.reservation));
  if (batch.postponed) return {};
  const std::lock_guard lock(object.state_mutex);
  object.published_size = batch.size;
  object.published_inline = true;
  return {};
}

// Staging took a part of the reservation; abandoning the extents gave it back.
store::Reservation WriteBack::reserve_again(store::Reservation& rest, const Snapshot& snapshot) {
  store::Reservation again = rest.split(snapshot.reserved);
  const store::SpaceAmount missing = snapshot.reserved.less(again.amount());
  if (missing.empty()) return again;
  Result<store::Reservation> more = core_.store.reserve(missing, store::Purpose::kFreeing);
  if (more.ok()) again.absorb(std::move(more).value());
  return again;
}

void WriteBack::finish(OpenObject& object, Batch& batch, bool written) {
  finish(object, batch.whole, batch.reservation, written, false);
  finish(object, batch.in_parts, batch.reservation, written, true);
  wake_waiters();
}

void WriteBack::finish(OpenObject& object, Locked& locked, store::Reservation& reservation, bool written,
                       bool in_strips) {
  for (std::size_t i = 0; i < locked.extents.size(); ++i) {
    const Staged& staged = locked.extents[i];
    const Snapshot& snapshot = locked.snapshots[i];
    CacheBlock& block = *staged.block;
    store::Reservation again;
    if (!written) again = reserve_again(reservation, snapshot);
    const std::lock_guard lock(block.mutex);
    block.write_locked = false;
    if (written) {
      block.published_changes = snapshot.changes;
      block.known_on_disk = staged.extent.is_stored() || in_strips || !object.is_image();
      if (block.changes == snapshot.changes) note_clean(object, block);
    } else {
      block.dirty_blocks |= staged.blocks;
      block.changed_bytes.add(snapshot.changed);
      const std::lock_guard state(object.state_mutex);
      block.reserved += again.amount();
      object.reservation.absorb(std::move(again));
    }
    block.changed.notify_all();
  }
  locked.extents.clear();
  locked.snapshots.clear();
}

// A size that no dirty cache block brings along: that of a file whose last batches were published out of order, or
// which has been made larger. `at_least` is published even if something has become dirty before it meanwhile.
Status WriteBack::publish_size(OpenObject& object, std::uint64_t at_least) {
  std::uint64_t size = 0;
  bool in_tree = false;
  const std::lock_guard publishing(object.publishing);
  {
    const std::lock_guard lock(object.state_mutex);
    size = object.size.load(std::memory_order_acquire);
    in_tree = object.published_inline;
    if (!object.dirty_cache_blocks.empty()) size = std::min(size, at_least);
    if (object.published_size >= size) return {};
  }
  MDFS_TRY(core_.store.transact(store::Purpose::kReserved, [&](store::Transaction& transaction) {
    return object.update(transaction, {size, 0, in_tree});
  }));
  const std::lock_guard lock(object.state_mutex);
  object.published_size = std::max(object.published_size, size);
  return {};
}

}  // namespace mdfs::engine
