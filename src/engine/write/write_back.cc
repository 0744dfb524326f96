// Write-back: the threads, the dirty objects, and waits for the limit of dirty bytes.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/write_back.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <unordered_set>

#include "base/checked.h"
#include "base/log.h"

namespace mdfs::engine {

WriteBack::WriteBack(Core& core, Loader& loader) : core_(core), loader_(loader) {
  for (unsigned i = 0; i < kThreads; ++i) threads_.emplace_back([this] { run(); });
}

WriteBack::~WriteBack() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  // Objects that were never closed lose their dirty bytes. Remaining holders must not keep memory of the cache.
  for (const auto& [key, object] : dirty_) {
    object->dirty_cache_blocks.clear();
    object->reservation = store::Reservation();
  }
}

namespace {

// Have all bytes of the cache block been written, up to where it will end when the image has its full shape? While an
// image grows, the extent that its last slab lies in is not full.
bool is_full(const OpenObject& object, const CacheBlock& block) {
  if (!object.is_image())
    return static_cast<unsigned>(std::popcount(block.dirty_blocks)) == object.extent_bytes / object.block_size;
  const geometry::Coord coord = object.extent_coord(block.key.index);
  const geometry::ByteGeometry shape = object.planned_shape(object.size.load(std::memory_order_relaxed), coord);
  return block.filled_bytes >= object.bytes_inside(shape, coord);
}

// Of the full image. One that grows beyond the shape it was opened with has no last row.
std::uint64_t planned_rows(const OpenObject& object) {
  const std::uint64_t planned = object.array().shape[0];
  if (object.shape_for(object.size.load(std::memory_order_relaxed)).shape[0] > planned) return UINT64_MAX;
  return ceil_div(planned, object.array().extent[0]);
}

}  // namespace

void WriteBack::note_change(OpenObject& object, const CacheBlockPtr& block, Change change) {
  const std::uint64_t charge = block->buffer.size();
  core_.dirty_bytes.fetch_add(charge - block->dirty_charge, std::memory_order_relaxed);
  block->dirty_charge = charge;
  ++block->changes;
  block->dirty_blocks |= change.blocks;
  block->changed_bytes.add(change.changed);
  block->filled_bytes += change.bytes;
  bool kick = core_.dirty_bytes.load(std::memory_order_relaxed) > core_.dirty_limit_bytes() / 4 * 3;
  bool first = false;
  {
    const std::lock_guard lock(object.state_mutex);
    block->reserved += change.reservation.amount();
    object.reservation.absorb(std::move(change.reservation));
    if (!block->dirty) {
      block->dirty = true;
      block->dirty_since_ns = core_.environment.monotonic_ns();
      object.last_dirtied_ns = block->dirty_since_ns;
      first = object.dirty_cache_blocks.empty();
      if (first) object.dirty_since_ns = block->dirty_since_ns;
      object.dirty_cache_blocks.emplace(block->key.index, block);
    }
    if (!block->full && is_full(object, *block)) {
      block->full = true;
      const geometry::Coord coord = object.extent_coord(block->key.index);
      object.add_full(coord, object.groups.extents_in_group(coord, planned_rows(object)));
      kick = kick || object.full_group_bytes >= core_.batch_bytes();
    }
    if (object.may_have_strips && object.rank > 1 &&
        object.syncs.expects_sync(object.size.load(std::memory_order_relaxed), object.grid_row_bytes() / 2)) {
      const bool was_due = object.early_bytes >= core_.options.early_batch_bytes;
      object.early_bytes += change.bytes;
      kick = kick || (!was_due && object.early_bytes >= core_.options.early_batch_bytes);
    }
  }
  if (!first && (!kick || kicked_.load(std::memory_order_relaxed))) return;
  {
    const std::lock_guard lock(mutex_);
    if (first) dirty_.emplace(&object, object.shared_from_this());
    if (kick) kicked_ = true;
  }
  if (kick) work_.notify_one();
}

store::Reservation WriteBack::take_reservation(OpenObject& object, CacheBlock& block) {
  const std::lock_guard lock(object.state_mutex);
  return object.reservation.split(std::exchange(block.reserved, {}));
}

void WriteBack::note_clean(OpenObject& object, CacheBlock& block) {
  core_.dirty_bytes.fetch_sub(block.dirty_charge, std::memory_order_relaxed);
  block.dirty_charge = 0;
  block.dirty_blocks = 0;
  block.changed_bytes = {};
  block.filled_bytes = 0;
  store::Reservation reservation;
  {
    const std::lock_guard lock(object.state_mutex);
    reservation = object.reservation.split(std::exchange(block.reserved, {}));
    if (block.full) object.remove_full(object.extent_coord(block.key.index));
    block.full = false;
    block.dirty = false;
    object.dirty_cache_blocks.erase(block.key.index);
  }
  forget_if_clean(object);
}

void WriteBack::forget_if_clean(OpenObject& object) {
  const std::lock_guard lock(object.state_mutex);
  if (!object.dirty_cache_blocks.empty() || object.published_size < object.size.load(std::memory_order_acquire)) return;
  // Under the state's lock, so that a cache block that becomes dirty now registers after this.
  const std::lock_guard registry(mutex_);
  dirty_.erase(&object);
}

void WriteBack::note_sync(OpenObject& object) {
  const std::lock_guard lock(object.state_mutex);
  object.syncs.note_sync(object.size.load(std::memory_order_acquire));
  object.early_bytes = 0;
}

void WriteBack::note_size(OpenObject& object) {
  const std::lock_guard lock(object.state_mutex);
  if (object.dirty_cache_blocks.empty()) object.dirty_since_ns = core_.environment.monotonic_ns();
  const std::lock_guard registry(mutex_);
  dirty_.emplace(&object, object.shared_from_this());
}

void WriteBack::wake_waiters() {
  const std::lock_guard lock(mutex_);
  stuck_ = false;
  room_.notify_all();
}

Status WriteBack::wait_for_room(const Stop& stop) {
  const auto fits = [this] { return core_.dirty_bytes.load(std::memory_order_relaxed) <= core_.dirty_limit_bytes(); };
  if (fits()) return {};
  std::unique_lock lock(mutex_);
  while (!fits()) {
    if (stuck_) return {Errc::kIo, "dirty data cannot be written back"};
    MDFS_TRY(stopped(stop));
    kicked_ = true;
    work_.notify_all();
    room_.wait_for(lock, std::chrono::milliseconds(kIdleCheckMs));
  }
  return {};
}

Result<ByteBudget::Share> WriteBack::admit(std::size_t bytes, const Stop& stop) {
  // The turn comes first, so that a later thread does not take the space that an earlier one waits for. Write-back
  // itself needs no share: it frees space.
  MDFS_TRY(stopped(stop));
  ByteBudget::Share share = core_.writes.wait_for(bytes, std::chrono::milliseconds(kIdleCheckMs), stop);
  if (!share) return interrupted();
  MDFS_TRY(wait_for_room(stop));
  return share;
}

std::vector<std::shared_ptr<OpenObject>> WriteBack::dirty_objects() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<OpenObject>> objects;
  objects.reserve(dirty_.size());
  for (const auto& [key, object] : dirty_) objects.push_back(object);
  return objects;
}

// Beyond three quarters of the limit there are too many dirty bytes.
std::shared_ptr<OpenObject> WriteBack::choose(bool may_be_pieces, WhichBlocks& which) {
  const bool pressed = core_.dirty_bytes.load(std::memory_order_relaxed) > core_.dirty_limit_bytes() / 4 * 3;
  std::vector<std::shared_ptr<OpenObject>> objects = dirty_objects();
  bool any = false, any_alive = false;
  std::vector<DirtyFacts> facts;
  std::erase_if(objects, [&](const std::shared_ptr<OpenObject>& object) {
    const std::lock_guard lock(object->state_mutex);
    if (object->dirty_cache_blocks.empty()) return true;
    any = true;
    if (object->background_failed) return true;
    any_alive = true;
    const bool early_enough = pressed || object->early_bytes >= core_.options.early_batch_bytes;
    const std::uint64_t early = may_be_pieces && early_enough ? object->early_bytes : 0;
    facts.push_back({object->full_group_bytes, object->full_bytes, object->last_dirtied_ns, early});
    return false;
  });
  const std::optional<WriteChoice> choice = choose_to_write(facts, core_.batch_bytes(), pressed);
  if (choice) {
    which = choice->which;
    if (which != WhichBlocks::kAll) return objects[choice->object];
  }
  const std::lock_guard lock(mutex_);
  stuck_ = any && !any_alive;
  if (stuck_) room_.notify_all();
  return choice ? objects[choice->object] : nullptr;
}

std::vector<CacheBlockPtr> WriteBack::collect(OpenObject& object, WhichBlocks which) {
  struct Candidate {
    bool not_full;
    std::uint64_t bytes;
    std::int64_t since_ns;
    std::uint64_t order;
    CacheBlockPtr block;
  };
  std::vector<Candidate> candidates;
  {
    const std::lock_guard lock(object.state_mutex);
    candidates.reserve(object.dirty_cache_blocks.size());
    for (const auto& [index, block] : object.dirty_cache_blocks) {
      const geometry::Coord coord = object.extent_coord(index);
      if (which == WhichBlocks::kFullGroups) {
        const auto group = object.full_groups.find(object.groups.group_of(coord));
        if (group == object.full_groups.end() || group->second.full_group_bytes == 0) continue;
      }
      candidates.push_back({true, 0, 0, object.groups.order_of(coord), block});
    }
  }
  std::erase_if(candidates, [&](Candidate& candidate) {
    const std::lock_guard lock(candidate.block->mutex);
    candidate.not_full = !candidate.block->full;
    candidate.since_ns = candidate.block->dirty_since_ns;
    candidate.bytes = bytes_to_write(object, *candidate.block);
    return candidate.block->write_locked || !candidate.block->dirty ||
           (which != WhichBlocks::kAll && candidate.not_full);
  });
  // The full ones, in the order in which they are to lie; then those that have waited longest.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.not_full != b.not_full) return b.not_full;
    if (a.not_full && a.since_ns != b.since_ns) return a.since_ns < b.since_ns;
    return a.order < b.order;
  });
  // Full groups are not cut.
  const auto group_of = [&](const Candidate& candidate) {
    return object.groups.group_of(object.extent_coord(candidate.block->key.index));
  };
  std::vector<CacheBlockPtr> blocks;
  for (std::size_t bytes = 0; blocks.size() < candidates.size() && blocks.size() < kMaxBatchBlocks;) {
    const std::size_t next = blocks.size();
    const bool cut =
        which != WhichBlocks::kFullGroups || (next > 0 && group_of(candidates[next - 1]) != group_of(candidates[next]));
    if (bytes >= core_.batch_bytes() && cut) break;
    blocks.push_back(candidates[next].block);
    bytes += candidates[next].bytes;
  }
  return blocks;
}

void WriteBack::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return stopping_ || kicked_; });
      if (stopping_) return;
      kicked_ = false;
    }
    for (bool may_be_pieces = true;;) {
      WhichBlocks which = WhichBlocks::kFull;
      const std::shared_ptr<OpenObject> object = choose(may_be_pieces, which);
      if (object == nullptr) break;
      const bool early = which == WhichBlocks::kPieces;
      std::vector<CacheBlockPtr> blocks = early ? collect_pieces(*object) : collect(*object, which);
      if (blocks.empty() && early) {  // they are not complete yet; the next kick looks again
        may_be_pieces = false;
        continue;
      }
      if (blocks.empty()) break;
      const Status status = write_batch(*object, std::move(blocks));
      if (status.ok()) continue;
      const std::lock_guard lock(object->state_mutex);
      object->background_failed = true;
      if (!object->error) object->error = status.error();
    }
  }
}

std::vector<CacheBlockPtr> WriteBack::dirty_before(OpenObject& object, std::int64_t since_ns) {
  std::vector<CacheBlockPtr> blocks;
  {
    const std::lock_guard lock(object.state_mutex);
    for (const auto& [index, block] : object.dirty_cache_blocks) blocks.push_back(block);
  }
  if (since_ns == kWhenever) return blocks;
  const auto group_of = [&](const CacheBlockPtr& block) {
    return object.groups.group_of(object.extent_coord(block->key.index));
  };
  std::unordered_set<std::uint64_t> old_groups;
  for (const CacheBlockPtr& block : blocks) {
    const std::lock_guard lock(block->mutex);
    if (block->dirty && block->dirty_since_ns <= since_ns) old_groups.insert(group_of(block));
  }
  std::erase_if(blocks, [&](const CacheBlockPtr& block) { return !old_groups.contains(group_of(block)); });
  return blocks;
}

Status WriteBack::write_blocks(OpenObject& object, std::vector<CacheBlockPtr> blocks) {
  struct Open {
    CacheBlockPtr block;
    std::uint64_t changes;  // that must be published when we return
    std::uint64_t bytes;
  };
  std::vector<Open> open;
  for (CacheBlockPtr& block : blocks) open.push_back({std::move(block), 0, 0});
  // As they are to lie on the disks.
  const auto order_of = [&](const Open& one) {
    return object.groups.order_of(object.extent_coord(one.block->key.index));
  };
  std::sort(open.begin(), open.end(), [&](const Open& a, const Open& b) { return order_of(a) < order_of(b); });
  for (Open& one : open) {
    const std::lock_guard lock(one.block->mutex);
    one.changes = one.block->changes;
    one.bytes = bytes_to_write(object, *one.block);
  }
  while (!open.empty()) {
    Status lost;  // the rest of some extents; the others are written
    for (std::size_t begin = 0; begin < open.size();) {
      std::vector<CacheBlockPtr> batch;
      for (std::size_t bytes = 0; begin < open.size() && bytes < core_.batch_bytes() && batch.size() < kMaxBatchBlocks;
           bytes += open[begin++].bytes)
        batch.push_back(open[begin].block);
      Status written = write_batch(object, std::move(batch));
      if (written.ok()) continue;
      if (!is_lost(written.error())) return written;
      if (lost.ok()) lost = std::move(written);
    }
    if (!lost.ok()) return lost;
    // Blocks that others had locked, or that changed before they could be locked.
    std::vector<Open> rest;
    for (const Open& one : open) {
      std::unique_lock lock(one.block->mutex);
      one.block->changed.wait(lock, [&] { return !one.block->write_locked; });
      if (one.block->dirty && one.block->published_changes < one.changes) rest.push_back(one);
    }
    open = std::move(rest);
  }
  return {};
}

Status WriteBack::write_back(OpenObject& object, std::int64_t since_ns) {
  const std::uint64_t size = since_ns == kWhenever ? object.size.load(std::memory_order_acquire) : 0;
  {
    const std::lock_guard lock(object.state_mutex);
    object.background_failed = false;
  }
  Status written = write_blocks(object, dirty_before(object, since_ns));
  if (!written.ok()) {
    // Reports the error of the background as well.
    const std::lock_guard lock(object.state_mutex);
    object.error.reset();
    object.background_failed = true;
    return written;
  }
  MDFS_TRY(publish_size(object, size));
  forget_if_clean(object);
  const std::lock_guard lock(object.state_mutex);
  if (!object.error) return {};
  const Error error = *std::exchange(object.error, std::nullopt);
  return error;
}

Status WriteBack::write_back_below(OpenObject& object, std::uint64_t index) {
  std::vector<CacheBlockPtr> blocks;
  {
    const std::lock_guard lock(object.state_mutex);
    const auto end = object.dirty_cache_blocks.lower_bound(index);
    for (auto dirty = object.dirty_cache_blocks.begin(); dirty != end; ++dirty) blocks.push_back(dirty->second);
  }
  return write_blocks(object, std::move(blocks));
}

Status WriteBack::write_back_all(std::int64_t at_least_age_ns) {
  Status first_error;
  const std::int64_t now = core_.environment.monotonic_ns();
  for (const std::shared_ptr<OpenObject>& object : dirty_objects()) {
    {
      const std::lock_guard lock(object->state_mutex);
      if (now - object->dirty_since_ns < at_least_age_ns) continue;
    }
    Status status = write_back(*object, at_least_age_ns > 0 ? now - at_least_age_ns : kWhenever);
    if (status.ok()) continue;
    spdlog::warn("inode {}: written data cannot be stored now: {}", object->number, status.error().message());
    // The next caller that asks for this object gets the error as well.
    const std::lock_guard lock(object->state_mutex);
    if (!object->error) object->error = status.error();
    object->background_failed = true;
    if (first_error.ok()) first_error = std::move(status);
  }
  return first_error;
}

}  // namespace mdfs::engine
