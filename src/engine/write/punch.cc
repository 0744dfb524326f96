// Punched holes: zeros, with the blocks under them freed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "engine/map/stored_items.h"
#include "engine/write/replacer.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

Status Replacer::punch(OpenObject& object, std::uint64_t offset, std::uint64_t length, const Stop& stop) {
  const std::uint64_t row_bytes = object.grid_row_bytes();
  const std::uint64_t asked_end = checked_add(offset, length).value_or(UINT64_MAX);
  GridBox rows;
  rows.last.fill(UINT64_MAX);
  rows.first[0] = offset / row_bytes;
  rows.last[0] = ceil_div(asked_end, row_bytes);
  const RangeLock::Hold hold(object.range_lock, object.rank, rows, RangeLock::Mode::kExclusive);
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  const std::uint64_t end = std::min(asked_end, size);
  if (offset >= end) return {};
  // Whole blocks of a file, whole rows of extents of an image; then what is stored of the edges is written with zeros:
  // on a full volume what the inside gives back has room for them.
  const std::uint64_t step = object.is_image() ? row_bytes : object.block_size;
  const std::uint64_t first = ceil_div(offset, step);
  const std::uint64_t last = end == size ? ceil_div(end, step) : end / step;
  if (object.is_image()) {
    if (first >= last) return zero_held(object, offset, end - offset, stop);
    MDFS_TRY(punch_rows(object, first, last, stop));
    MDFS_TRY(zero_held(object, offset, first * step - offset, stop));
    return last * step < end ? zero_held(object, last * step, end - last * step, stop) : Status{};
  }
  // Bytes that lie in the tree, or may come to, are few; a file that has outgrown it leaves it first.
  if (size <= MDFS_MAX_INLINE) return writer_.write_zeros(object, offset, end - offset, store::Purpose::kFreeing);
  bool in_tree = false;
  {
    const std::lock_guard lock(object.state_mutex);
    in_tree = object.published_inline;
  }
  if (in_tree) MDFS_TRY(write_back_.write_back(object));
  if (first < last) MDFS_TRY(punch_cells(object, first, last, stop));
  const std::uint64_t head_end = std::min(first * step, end);
  const std::uint64_t tail = std::max(last * step, head_end);
  MDFS_TRY(zero_in_block(object, offset, head_end - offset));
  return tail < end ? zero_in_block(object, tail, end - tail) : Status{};
}

// Bytes of an image. Extents that hold nothing stay as they are.
Status Replacer::zero_held(OpenObject& object, std::uint64_t offset, std::uint64_t length, const Stop& stop) {
  return each_held_extent(core_, object, offset, length, [&](const HeldExtent& held) -> Status {
    MDFS_TRY(stopped(stop));
    return writer_.zero_extent(object, held, offset + length, store::Purpose::kFreeing);
  });
}

// Bytes of a file within one block.
Status Replacer::zero_in_block(OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return {};
  MDFS_TRY_ASSIGN(const bool holds, holds_block(object, offset));
  return holds ? writer_.write_zeros(object, offset, length, store::Purpose::kFreeing) : Status{};
}

Result<bool> Replacer::holds_block(OpenObject& object, std::uint64_t offset) {
  const std::uint64_t cell = offset / object.extent_bytes;
  const std::uint64_t block = offset % object.extent_bytes / object.block_size;
  // Before the record is asked: what is written back meanwhile is in both.
  if (const CacheBlockPtr cached = core_.cache.peek(object.key_of(cell)); cached != nullptr) {
    const std::lock_guard lock(cached->mutex);
    if (cached->write_locked || (cached->dirty_blocks >> block & 1) != 0) return true;
  }
  MDFS_TRY_ASSIGN(const format::FileCell stored, core_.extent_map.cell(object, cell));
  return stored.find(static_cast<unsigned>(block)).has_value();
}

// Frees what `free_item` does of each stored item of [first, last], some in each transaction: fewer on a full volume.
Status Replacer::free_in_steps(OpenObject& object, std::uint64_t first, std::uint64_t last, const Stop& stop,
                               const std::function<Status(Publisher&, std::uint64_t item)>& free_item) {
  for (std::size_t at_once = kItemsInTransaction;;) {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(const auto items, stored_items(core_, object, first, last, at_once));
    if (items.empty()) return {};
    Publisher::Pages pages;
    const Status changed =
        core_.store.transact(store::Purpose::kFreeing, [&](store::Transaction& transaction) -> Status {
          Publisher publisher(core_, object, transaction);
          for (const std::uint64_t item : items) MDFS_TRY(free_item(publisher, item));
          pages = publisher.pages();
          return publisher.update_inode();
        });
    if (!changed.ok() && changed.error().code == Errc::kNoSpace && at_once > 1) {
      at_once /= 2;
      continue;
    }
    if (!changed.ok()) return changed;
    update_cached_pages(core_, object, pages);
    if (items.back() == last) return {};
    first = items.back() + 1;
  }
}

Status Replacer::punch_rows(OpenObject& object, std::uint64_t first_row, std::uint64_t last_row, const Stop& stop) {
  GridBox rows;
  rows.last.fill(UINT64_MAX);
  rows.first[0] = first_row;
  rows.last[0] = last_row;
  const WriteBackLocks locks(object, rows);
  const std::uint64_t side = object.page_box.side[0];
  const std::uint64_t first_page = first_row / side * object.pages_in_row();
  const std::uint64_t last_page = ceil_div(last_row, side) * object.pages_in_row() - 1;
  const ClosedBarrier closed(object.barrier);
  const std::lock_guard publishing(object.publishing);
  const std::uint64_t step = object.array().extent[0];
  const Versions::Change change(object.versions, checked_mul(first_row, step).value_or(UINT64_MAX),
                                checked_mul(last_row, step).value_or(UINT64_MAX));
  const Status freed =
      free_in_steps(object, first_page, last_page, stop,
                    [&](Publisher& publisher, std::uint64_t page) { return publisher.free_in_page(page, rows); });
  const std::uint64_t first_extent = first_row * object.extents_in_row(),
                      last_extent = last_row * object.extents_in_row();
  if (freed.ok())
    reset_blocks(object, first_extent, last_extent, true);
  else
    forget_clean(object, first_extent, last_extent);
  write_back_.wake_waiters();
  return freed;
}

Status Replacer::punch_cells(OpenObject& object, std::uint64_t first_block, std::uint64_t last_block,
                             const Stop& stop) {
  const std::uint64_t cell_blocks = object.extent_bytes / object.block_size;
  GridBox cells;
  cells.first[0] = first_block / cell_blocks;
  cells.last[0] = ceil_div(last_block, cell_blocks);
  const WriteBackLocks locks(object, cells);
  const ClosedBarrier closed(object.barrier);
  const std::lock_guard publishing(object.publishing);
  const auto free_blocks = [&](Publisher& publisher, std::uint64_t cell) {
    const std::uint64_t from = std::max(first_block, cell * cell_blocks) - cell * cell_blocks;
    const std::uint64_t to = std::min(last_block, (cell + 1) * cell_blocks) - cell * cell_blocks;
    return publisher.punch_cell(cell, block_mask(object, from * object.block_size, to * object.block_size));
  };
  const Status freed = free_in_steps(object, cells.first[0], cells.last[0] - 1, stop, free_blocks);
  if (freed.ok())
    zero_blocks(object, first_block, last_block);
  else
    forget_clean(object, cells.first[0], cells.last[0]);
  write_back_.wake_waiters();
  return freed;
}

// A part of these extents has been freed, and it is not known which: what is not dirty is loaded again.
void Replacer::forget_clean(OpenObject& object, std::uint64_t first, std::uint64_t last) {
  for (const CacheBlockPtr& block : core_.cache.blocks_between(object.number, first, last)) {
    const std::lock_guard lock(block->mutex);
    if (block->dirty) continue;
    block->buffer = BufferRef();
    block->complete = false;
    block->valid.clear();
    block->known_on_disk = false;
  }
}

void Replacer::zero_blocks(OpenObject& object, std::uint64_t first_block, std::uint64_t last_block) {
  const std::uint64_t cell_blocks = object.extent_bytes / object.block_size;
  const std::uint64_t last_cell = ceil_div(last_block, cell_blocks);
  for (const CacheBlockPtr& block : core_.cache.blocks_between(object.number, first_block / cell_blocks, last_cell)) {
    const std::uint64_t cell = block->key.index;
    const auto begin = static_cast<std::uint32_t>((std::max(first_block, cell * cell_blocks) - cell * cell_blocks) *
                                                  object.block_size);
    const auto end = static_cast<std::uint32_t>((std::min(last_block, (cell + 1) * cell_blocks) - cell * cell_blocks) *
                                                object.block_size);
    const std::lock_guard lock(block->mutex);
    if (begin < block->buffer.size()) {
      BufferRef own = core_.cache.acquire(block->buffer.size());
      std::memcpy(own.data(), block->buffer.data(), own.size());
      std::memset(own.data() + begin, 0, std::min<std::size_t>(end, own.size()) - begin);
      block->buffer = std::move(own);
    }
    if (!block->complete) block->valid.add(begin, end);
    if (!block->dirty) continue;
    block->dirty_blocks &= ~block_mask(object, begin, end);
    if (block->dirty_blocks == 0) write_back_.note_clean(object, *block);
  }
}

}  // namespace mdfs::engine
