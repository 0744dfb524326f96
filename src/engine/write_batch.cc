// Write-back: one batch, from the claim to the link.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "engine/write_back.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

// All that has to be valid before the unit can be written: all of an extent, the dirty blocks of a cell.
std::vector<ByteRanges::Range> needed_ranges(const Content& content, const Unit& unit) {
  if (content.is_image()) return {{0, content.unit_bytes}};
  std::vector<ByteRanges::Range> ranges;
  for (std::uint32_t block = 0; block < 32; ++block)
    if ((unit.dirty_blocks >> block & 1) != 0)
      ranges.push_back({block * content.block_size, (block + 1) * content.block_size});
  return ranges;
}

bool is_ready(const Content& content, const Unit& unit) {
  const std::vector<ByteRanges::Range> ranges = needed_ranges(content, unit);
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](const ByteRanges::Range& range) { return unit.covers(range.begin, range.end); });
}

}  // namespace

Status WriteBack::load_rest(Content& content, const std::vector<UnitPtr>& units) {
  std::vector<Want> wants;
  for (const UnitPtr& unit : units) {
    const std::lock_guard lock(unit->mutex);
    if (unit->dirty && !is_ready(content, *unit))
      wants.push_back({unit, content.unit_coord(unit->key.index), needed_ranges(content, *unit)});
  }
  return loader_.load(content, std::move(wants), [](std::size_t, const BufferRef&) {});
}

namespace {

// The bytes in the tree must become a block.
bool must_leave_tree(Content& content) {
  const std::lock_guard lock(content.state_mutex);
  return content.linked_inline && content.size.load(std::memory_order_acquire) > MDFS_MAX_INLINE;
}

}  // namespace

bool WriteBack::outgrows_tree(Content& content, std::uint64_t end) {
  return !content.is_image() && end > MDFS_MAX_INLINE &&
         content.size.load(std::memory_order_acquire) <= MDFS_MAX_INLINE;
}

Status WriteBack::note_outgrown(Content& content, store::Reservation promise) {
  if (!must_leave_tree(content)) return {};
  const UnitPtr first = core_.cache.find_or_create(content.key_of(0));
  MDFS_TRY(loader_.load(content, {{first, {}, {{0, content.block_size}}}}, [](std::size_t, const BufferRef&) {}));
  std::unique_lock lock(first->mutex);
  first->changed.wait(lock, [&] { return !first->claimed; });
  if (!must_leave_tree(content) || (first->dirty_blocks & 1) != 0) return {};
  Change change;
  change.blocks = 1;
  change.promise = promise.split(content.worst_case(1, false));
  note_change(content, first, std::move(change));
  return {};
}

Status WriteBack::leave_inline(Content& content, std::vector<UnitPtr>& units) {
  if (content.is_image() || !must_leave_tree(content)) return {};
  MDFS_TRY(note_outgrown(content, store::Reservation()));
  const UnitPtr first = core_.cache.find_or_create(content.key_of(0));
  if (std::find(units.begin(), units.end(), first) == units.end()) units.insert(units.begin(), first);
  return {};
}

bool WriteBack::claim(Content& content, const UnitPtr& unit, Batch& batch) {
  const std::lock_guard lock(unit->mutex);
  if (!unit->dirty || unit->claimed || !is_ready(content, *unit)) return false;
  unit->claimed = true;
  Staged staged;
  staged.index = unit->key.index;
  staged.coord = content.unit_coord(staged.index);
  staged.content = unit->buffer;
  staged.blocks = std::exchange(unit->dirty_blocks, 0);
  staged.unit = unit;
  unit->filled_bytes = 0;
  const ChangedBytes changed = std::exchange(unit->changed_bytes, {});
  {
    const std::lock_guard state(content.state_mutex);
    if (std::exchange(unit->full, false)) content.remove_full(staged.coord);
    batch.snapshots.push_back({unit->changes, changed, unit->promised});
    batch.reservation.absorb(content.reservation.split(std::exchange(unit->promised, {})));
  }
  batch.units.push_back(std::move(staged));
  return true;
}

Status WriteBack::write_batch(Content& content, std::vector<UnitPtr> units) {
  Status status = write_at_once(content, units);
  if (status.ok() || status.error().code != Errc::kNoSpace || units.size() < 2) return status;
  const auto middle = units.begin() + static_cast<std::ptrdiff_t>(units.size() / 2);
  MDFS_TRY(write_batch(content, {units.begin(), middle}));
  return write_batch(content, {middle, units.end()});
}

Status WriteBack::write_at_once(Content& content, std::vector<UnitPtr> units) {
  if (content.may_have_strips) MDFS_TRY(write_strips(content, units));
  if (units.empty()) return {};
  Batch batch;
  batch.size = content.size.load(std::memory_order_acquire);
  MDFS_TRY(leave_inline(content, units));
  MDFS_TRY(load_rest(content, units));
  bool has_first = false;
  for (const UnitPtr& unit : units)
    if (claim(content, unit, batch) && unit->key.index == 0) has_first = true;
  if (batch.units.empty()) return {};

  {
    const std::lock_guard lock(content.state_mutex);
    const bool small = batch.size <= MDFS_MAX_INLINE;
    batch.inline_bytes = !content.is_image() && small && !content.has_cells && has_first;
    // The file grew out of the tree after leave_inline() had looked: next time.
    batch.postponed = content.linked_inline && !batch.inline_bytes && !has_first;
  }
  Status status;
  if (!batch.postponed) {
    if (batch.inline_bytes)
      status = link_inline(content, batch);
    else if (status = stage(core_, content, batch.units, batch.reservation); status.ok())
      status = link_batch(content, batch);
  }
  finish(content, batch, status.ok() && !batch.postponed);
  return status;
}

std::uint64_t WriteBack::size_to_link(const Content& content, std::uint64_t size, const std::vector<Staged>& units) {
  std::uint64_t linked = size;
  for (const auto& [index, unit] : content.dirty_units) {
    const std::uint64_t first_byte = content.first_byte_of(index);
    if (first_byte + content.grid_row_bytes() <= content.linked_size) continue;
    if (std::any_of(units.begin(), units.end(), [&, i = index](const Staged& s) { return s.index == i; })) continue;
    linked = std::min(linked, first_byte);
    break;
  }
  return std::max(linked, content.linked_size);
}

Status WriteBack::link_batch(Content& content, Batch& batch) {
  Linker::Pages pages;
  std::uint64_t size = 0;
  bool left_inline = false;
  const std::lock_guard linking(content.linking);
  const auto link = [&](store::Transaction& transaction) -> Status {
    Linker linker(core_, content, transaction);
    if (batch.strips.empty())
      MDFS_TRY(linker.link(batch.units));
    else
      MDFS_TRY(linker.link_strips(batch.strips));
    {
      const std::lock_guard lock(content.state_mutex);
      size = size_to_link(content, std::min(batch.size, content.size.load(std::memory_order_acquire)), batch.units);
      left_inline = content.linked_inline;
    }
    if (left_inline) transaction.erase(inline_key(content));
    MDFS_TRY(content.update(transaction, {size, linker.stored_bytes_change(), false}));
    pages = linker.pages();
    return {};
  };
  Status status = core_.store.transact(store::Purpose::kPromised, link, &batch.reservation);
  if (!status.ok()) {
    abandon(core_, batch.units);
    return status;
  }
  publish_pages(core_, content, pages);
  const std::lock_guard lock(content.state_mutex);
  content.linked_size = std::max(content.linked_size, size);
  content.linked_inline = false;
  content.has_cells = !content.is_image();
  return {};
}

Status WriteBack::link_inline(Content& content, Batch& batch) {
  const Staged& first = batch.units.front();
  ByteVector bytes(batch.size);
  if (first.content)
    std::copy_n(first.content.data(), std::min<std::size_t>(bytes.size(), first.content.size()), bytes.begin());
  const std::lock_guard linking(content.linking);
  const auto link = [&](store::Transaction& transaction) -> Status {
    {
      const std::lock_guard lock(content.state_mutex);
      // The file has grown meanwhile.
      batch.postponed = content.has_cells || content.size.load(std::memory_order_acquire) != batch.size;
    }
    if (batch.postponed) return {};
    transaction.put(inline_key(content), bytes);
    return content.update(transaction, {batch.size, 0, true});
  };
  MDFS_TRY(core_.store.transact(store::Purpose::kPromised, link, &batch.reservation));
  if (batch.postponed) return {};
  const std::lock_guard lock(content.state_mutex);
  content.linked_size = batch.size;
  content.linked_inline = true;
  return {};
}

// What staging took out of the promise was given back when it was abandoned.
store::Reservation WriteBack::promise_again(store::Reservation& rest, const Snapshot& snapshot) {
  store::Reservation again = rest.split(snapshot.promised);
  const store::Room missing = snapshot.promised.less(again.room());
  if (missing.empty()) return again;
  Result<store::Reservation> more = core_.store.reserve(missing, store::Purpose::kFreeing);
  if (more.ok()) again.absorb(std::move(more).value());
  return again;
}

void WriteBack::finish(Content& content, Batch& batch, bool written) {
  for (std::size_t i = 0; i < batch.units.size(); ++i) {
    const Staged& staged = batch.units[i];
    const Snapshot& snapshot = batch.snapshots[i];
    Unit& unit = *staged.unit;
    store::Reservation again;
    if (!written) again = promise_again(batch.reservation, snapshot);
    const std::lock_guard lock(unit.mutex);
    unit.claimed = false;
    if (written) {
      unit.linked_changes = snapshot.changes;
      unit.known_on_disk = !staged.runs.empty() || !batch.strips.empty() || !content.is_image();
      if (unit.changes == snapshot.changes) note_clean(content, unit);
    } else {
      unit.dirty_blocks |= staged.blocks;
      unit.changed_bytes.add(snapshot.changed);
      const std::lock_guard state(content.state_mutex);
      unit.promised += again.room();
      content.reservation.absorb(std::move(again));
    }
    unit.changed.notify_all();
  }
  batch.units.clear();
  wake_waiters();
}

// A size that no dirty unit brings along: that of a file whose last batches were linked out of order.
Status WriteBack::link_size(Content& content) {
  std::uint64_t size = 0;
  bool in_tree = false;
  const std::lock_guard linking(content.linking);
  {
    const std::lock_guard lock(content.state_mutex);
    size = content.size.load(std::memory_order_acquire);
    in_tree = content.linked_inline;
    if (!content.dirty_units.empty() || content.linked_size >= size) return {};
  }
  MDFS_TRY(core_.store.transact(store::Purpose::kPromised, [&](store::Transaction& transaction) {
    return content.update(transaction, {size, 0, in_tree});
  }));
  const std::lock_guard lock(content.state_mutex);
  content.linked_size = std::max(content.linked_size, size);
  return {};
}

}  // namespace mdfs::engine
