// Truncation: what is cut off is zero and free in the transaction that sets the size.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/checked.h"
#include "engine/map/stored_items.h"
#include "engine/write/cut_starts.h"
#include "engine/write/held_extents.h"
#include "engine/write/replacer.h"
#include "geometry/copy_box.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

using geometry::Coord;

GridBox rows_from(std::uint64_t first_row) {
  GridBox rows;
  rows.last.fill(UINT64_MAX);
  rows.first[0] = first_row;
  return rows;
}

// Of a row of extents, in steps of the array.
std::uint64_t first_step(const OpenObject& object, std::uint64_t row) {
  return checked_mul(row, object.array().extent[0]).value_or(UINT64_MAX);
}

// The end of the rows of extents that share pages of the extent map with the row of a byte.
std::uint64_t band_end(const OpenObject& object, std::uint64_t byte) {
  const std::uint64_t band = checked_mul(object.grid_row_bytes(), object.page_box.side[0]).value_or(UINT64_MAX);
  return checked_mul(byte / band + 1, band).value_or(UINT64_MAX);
}

}  // namespace

Status Replacer::truncate(OpenObject& object, std::uint64_t size_bytes, const Stop& stop) {
  MDFS_TRY(prepare_size(object, size_bytes));
  MDFS_TRY(write_before(object, size_bytes));
  // Once more while no thread makes anything dirty: little is left after the first write-back.
  const RangeLock::Hold hold(object.range_lock, object.rank, rows_from(0), RangeLock::Mode::kExclusive);
  MDFS_TRY(write_before(object, size_bytes));
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  if (size_bytes > size) return extend(object, size_bytes);
  if (size_bytes == size) return {};
  return write_without_failed_disks([&] { return shrink(object, size_bytes, stop); });
}

Status Replacer::grow(OpenObject& object, std::uint64_t size_bytes) {
  MDFS_TRY(prepare_size(object, size_bytes));
  const std::uint64_t row = object.size.load(std::memory_order_acquire) / object.grid_row_bytes();
  const RangeLock::Hold hold(object.range_lock, object.rank, rows_from(row), RangeLock::Mode::kExclusive);
  return size_bytes > object.size.load(std::memory_order_acquire) ? extend(object, size_bytes) : Status{};
}

// A small file that has outgrown the tree leaves it before its size changes.
Status Replacer::prepare_size(OpenObject& object, std::uint64_t size_bytes) {
  if (size_bytes > object.max_bytes)
    return {Errc::kTooBig, fmt::format("a size of {} bytes: must be at most {}", size_bytes, object.max_bytes)};
  if (size_bytes > object.size.load(std::memory_order_acquire)) MDFS_TRY(clear_beyond_end(object));
  bool outgrown = false;
  {
    const std::lock_guard lock(object.state_mutex);
    outgrown = object.published_inline && size_bytes > MDFS_MAX_INLINE;
  }
  return outgrown ? write_back_.write_back(object) : Status{};
}

// Writes dirty bytes that stay, so that a crash shows no new size without earlier writes. The cut cell is published
// with the size. A full volume does not prevent a truncation, which may free space. A growing size is published with
// the bytes that are dirty then.
Status Replacer::write_before(OpenObject& object, std::uint64_t size_bytes) {
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  if (size_bytes == size) return {};
  const std::uint64_t row_bytes = object.grid_row_bytes();
  const bool with_size = !object.is_image() && size_bytes < size;
  const std::uint64_t rows = with_size ? size_bytes / row_bytes : ceil_div(std::min(size_bytes, size), row_bytes);
  Status written = write_back_.write_back_below(object, rows * object.extents_in_row());
  return !written.ok() && written.error().code == Errc::kNoSpace ? Status{} : written;
}

// Bytes beyond the size are zero wherever they are kept: nothing but the size changes. While there are bytes to be
// published it is published with them, so that a crash shows no size without what lies before it.
Status Replacer::extend(OpenObject& object, std::uint64_t size_bytes) {
  const std::uint64_t old = object.size.load(std::memory_order_acquire);
  {
    const std::lock_guard publishing(object.publishing);
    bool in_tree = false, dirty = false;
    {
      const std::lock_guard lock(object.state_mutex);
      in_tree = object.published_inline;
      dirty = !object.dirty_cache_blocks.empty();
    }
    if (!in_tree && dirty) {
      object.grow(size_bytes);
      write_back_.note_size(object);
      return {};
    }
    if (!in_tree) {
      MDFS_TRY(core_.store.transact(store::Purpose::kNormal, [&](store::Transaction& transaction) {
        return object.update(transaction, {size_bytes, 0, false});
      }));
      object.grow(size_bytes);
      const std::lock_guard lock(object.state_mutex);
      object.published_size = std::max(object.published_size, size_bytes);
      return {};
    }
  }
  // The bytes in the tree are as many as the size says: they are written again, longer, or move to a cell.
  return writer_.write_zeros(object, old, 1, store::Purpose::kNormal, size_bytes);
}

struct Replacer::Cut {
  std::vector<Staged> staged;
  bool shortens = false;                   // extents in strips, of which nothing is written again
  std::vector<ShortenedExtent> shortened;  // not staged
  store::Reservation reservation;
  std::uint64_t first_row = 0;  // of those that lose all
  std::int64_t stored_bytes_change = 0;
};

// At most `most` extents lose bytes, of those that lie in pages of the row of the new end.
Result<bool> Replacer::is_small_cut(OpenObject& object, std::uint64_t size_bytes, std::uint64_t most,
                                    const Stop& stop) {
  const std::uint64_t end = std::min(object.size.load(std::memory_order_acquire), band_end(object, size_bytes));
  std::uint64_t held = 0;
  const Status counted = each_held_coord(core_, object, size_bytes, end - size_bytes, [&](const Coord&) -> Status {
    if (held % kExtentsBetweenStops == 0) MDFS_TRY(stopped(stop));
    if (++held > most) return {Errc::kTooBig, "cut"};
    return {};
  });
  if (!counted.ok() && held <= most) return counted.error();
  return held <= most;
}

// The smallest size that one cut reaches: the wanted one, or one where a part begins. All that is not stored is passed
// over at once. `may_free_rows`: a transaction has room for the pages of whole rows of extents.
Result<std::uint64_t> Replacer::next_size(OpenObject& object, std::uint64_t size_bytes, std::uint64_t most,
                                          bool may_free_rows, const Stop& stop) {
  // No extent is written again if whole rows of extents go.
  if (may_free_rows && size_bytes % object.grid_row_bytes() == 0) return size_bytes;
  MDFS_TRY_ASSIGN(const bool at_once, is_small_cut(object, size_bytes, most, stop));
  if (at_once) return size_bytes;
  const std::uint64_t old = object.size.load(std::memory_order_acquire);
  const std::uint64_t end = band_end(object, size_bytes);
  if (end < old) return end;
  for (const CutStarts& starts : cut_starts(object.array(), old, size_bytes, most)) {
    MDFS_TRY_ASSIGN(const bool any, is_small_cut(object, starts.last(), most, stop));
    if (!any) continue;
    std::uint64_t small = starts.count - 1, less = 0;  // those before `less` lose too many extents
    while (less < small) {
      const std::uint64_t middle = less + (small - less) / 2;
      MDFS_TRY_ASSIGN(const bool is_small, is_small_cut(object, starts.at(middle), most, stop));
      if (is_small)
        small = middle;
      else
        less = middle + 1;
    }
    return starts.at(small);
  }
  return old - 1;
}

// On a full volume only few extents can be written again at once.
Status Replacer::shrink(OpenObject& object, std::uint64_t size_bytes, const Stop& stop) {
  if (!object.is_image()) return shrink_at_once(object, size_bytes, stop);
  std::uint64_t most = most_extents_at_once();
  bool may_free_rows = true;  // until there is no room for that
  while (object.size.load(std::memory_order_acquire) > size_bytes) {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(const std::uint64_t next, next_size(object, size_bytes, most, may_free_rows, stop));
    const Status status = shrink_at_once(object, next, stop);
    may_free_rows = status.ok();
    if (!status.ok() && (status.error().code != Errc::kNoSpace || most == 1)) return status;
    most = status.ok() ? std::min(most * 2, most_extents_at_once()) : most / 2;
  }
  return {};
}

Status Replacer::shrink_at_once(OpenObject& object, std::uint64_t size_bytes, const Stop& stop) {
  const WriteBackLocks locks(object, rows_from(size_bytes / object.grid_row_bytes()));
  bool small = false;
  {
    const std::lock_guard lock(object.state_mutex);
    small = !object.is_image() && !object.has_cells && size_bytes <= MDFS_MAX_INLINE;
  }
  if (small) return shrink_inline(object, size_bytes);
  Status status = shrink_cells(object, size_bytes, true, stop);
  if (!status.ok() && status.error().code == Errc::kBusy) status = shrink_cells(object, size_bytes, false, stop);
  return status;
}

Status Replacer::shrink_cells(OpenObject& object, std::uint64_t size_bytes, bool shortens, const Stop& stop) {
  Cut cut;
  cut.shortens = shortens;
  cut.first_row = ceil_div(size_bytes, object.grid_row_bytes());
  Status status;
  if (size_bytes % object.grid_row_bytes() != 0)
    status = object.is_image() ? cut_row(object, size_bytes, cut, stop) : cut_cell(object, size_bytes, cut);
  // From here on there is room: on a full volume for a few items at a time.
  const auto no_room = [&] { return !status.ok() && status.error().code == Errc::kNoSpace; };
  if (status.ok()) {
    for (std::size_t items = kItemsInTransaction; items > 0; items = no_room() ? items / 2 : 0) {
      status = free_far(object, cut.first_row, items, stop);
      if (status.ok()) status = publish_cut(object, size_bytes, cut);
    }
  }
  if (!status.ok()) abandon(core_, cut.staged);
  return status;
}

// The file has no cells: what is left of it lies in the tree.
Status Replacer::shrink_inline(OpenObject& object, std::uint64_t size_bytes) {
  const CacheBlockPtr block = core_.cache.find_or_create(object.key_of(0));
  MDFS_TRY_ASSIGN(BufferRef kept, copy_of(object, block));
  if (!kept) {
    kept = core_.cache.acquire(object.block_size);
    std::memset(kept.data(), 0, kept.size());
  }
  std::memset(kept.data() + size_bytes, 0, kept.size() - size_bytes);
  const ClosedBarrier closed(object.barrier);
  const std::lock_guard publishing(object.publishing);
  MDFS_TRY(core_.store.transact(store::Purpose::kFreeing, [&](store::Transaction& transaction) {
    if (size_bytes > 0)
      transaction.put(inline_key(object), ConstBytes(kept.bytes()).first(size_bytes));
    else
      transaction.erase(inline_key(object));
    return object.update(transaction, {size_bytes, 0, size_bytes > 0});
  }));
  {
    const std::lock_guard lock(object.state_mutex);
    object.published_inline = size_bytes > 0;
    object.published_size = size_bytes;
  }
  object.size.store(size_bytes, std::memory_order_release);
  reset_blocks(object, 1, UINT64_MAX, true);
  const std::lock_guard lock(block->mutex);
  block->buffer = std::move(kept);
  block->complete = true;
  block->valid.clear();
  if (block->dirty) write_back_.note_clean(object, *block);
  return {};
}

// The cell that the new end lies in: its last block is written anew with a zero tail, the blocks behind it go.
Status Replacer::cut_cell(OpenObject& object, std::uint64_t size_bytes, Cut& cut) {
  const std::uint64_t index = size_bytes / object.extent_bytes;
  const std::uint64_t end = size_bytes % object.extent_bytes;
  const CacheBlockPtr block = core_.cache.find_or_create(object.key_of(index));
  Staged staged;
  staged.index = index;
  staged.coord = object.extent_coord(index);
  staged.block = block;
  staged.holes = block_mask(object, align_up(end, object.block_size), object.extent_bytes);
  MDFS_TRY_ASSIGN(const format::FileCell cell, core_.extent_map.cell(object, index));
  {
    const std::lock_guard lock(block->mutex);
    staged.blocks = block->dirty_blocks;
  }
  if (end % object.block_size != 0 && cell.find(static_cast<unsigned>(end / object.block_size)))
    staged.blocks |= block_mask(object, end, end + 1);
  staged.blocks &= ~staged.holes;
  if (staged.blocks != 0) {
    MDFS_TRY_ASSIGN(staged.decoded, copy_of(object, block));
    if (staged.decoded && staged.decoded.size() > end)
      std::memset(staged.decoded.data() + end, 0, staged.decoded.size() - end);
    MDFS_TRY_ASSIGN(cut.reservation, core_.store.reserve(object.worst_case_blocks(std::popcount(staged.blocks)),
                                                         store::Purpose::kFreeing));
  }
  cut.staged.push_back(std::move(staged));
  return stage(core_, object, cut.staged, cut.reservation);
}

// An extent whose bytes all lie in strips need not be written again: true. It loses the pieces, which are its last
// bytes, because the bytes of an extent have the order that they have in the file.
Result<bool> Replacer::shorten(OpenObject& object, const Staged& extent, const std::vector<geometry::Piece>& lost,
                               Cut& cut) {
  MDFS_TRY_ASSIGN(const MappedExtent stored, core_.extent_map.extent(object, extent.coord, false));
  if (stored.parts.empty() || stored.has_record() || lost.empty()) return false;
  if (const CacheBlockPtr cached = core_.cache.peek(object.key_of(extent.index)); cached != nullptr) {
    const std::lock_guard lock(cached->mutex);
    if (cached->dirty) return false;
  }
  std::uint32_t kept = object.extent_bytes;
  for (const geometry::Piece& piece : lost) kept = std::min(kept, object.byte_at(piece.in_extent.start));
  cut.shortened.push_back({extent.coord, kept});
  return true;
}

// The row of extents that the new end lies in, in batches that memory has room for.
Status Replacer::cut_row(OpenObject& object, std::uint64_t size_bytes, Cut& cut, const Stop& stop) {
  const std::uint64_t old = object.size.load(std::memory_order_acquire);
  const std::uint64_t row_end = std::min(old, cut.first_row * object.grid_row_bytes());
  std::vector<std::uint64_t> lost;  // at most most_extents_at_once(), or all of them of one row of bytes
  const auto add = [&](const Coord& coord) -> Status {
    if (lost.size() % kExtentsBetweenStops == 0) MDFS_TRY(stopped(stop));
    lost.push_back(object.extent_index(coord));
    return {};
  };
  MDFS_TRY(each_held_coord(core_, object, size_bytes, row_end - size_bytes, add));
  std::sort(lost.begin(), lost.end());
  std::vector<Staged> batch;
  const auto stage_batch = [&]() -> Status {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(cut.reservation,
                    core_.store.reserve(object.worst_case_data(batch.size()), store::Purpose::kFreeing));
    MDFS_TRY(stage(core_, object, batch, cut.reservation, stop));
    for (Staged& staged : batch) {
      staged.decoded = BufferRef();
      cut.staged.push_back(std::move(staged));
    }
    batch.clear();
    return {};
  };
  for (const std::uint64_t index : lost) {
    MDFS_TRY(stopped(stop));
    Staged staged;
    staged.index = index;
    staged.coord = object.extent_coord(index);
    const std::vector<geometry::Piece> pieces =
        pieces_of_extent(object, size_bytes, row_end - size_bytes, staged.coord);
    if (cut.shortens) {
      MDFS_TRY_ASSIGN(const bool shortened, shorten(object, staged, pieces, cut));
      if (shortened) continue;
    }
    const CacheBlockPtr block = core_.cache.find_or_create(object.key_of(index));
    MDFS_TRY_ASSIGN(staged.decoded, copy_of(object, block));
    if (staged.decoded)
      for (const geometry::Piece& piece : pieces)
        geometry::fill_box(object.rank, piece.in_extent.length, std::byte{0}, staged.decoded.bytes(),
                           object.array().extent, piece.in_extent.start);
    batch.push_back(std::move(staged));
    if (batch.size() * object.capacity_bytes >= core_.batch_bytes()) MDFS_TRY(stage_batch());
  }
  return batch.empty() ? Status{} : stage_batch();
}

Status Replacer::publish_cut(OpenObject& object, std::uint64_t size_bytes, Cut& cut) {
  const ClosedBarrier closed(object.barrier);
  const std::lock_guard publishing(object.publishing);
  // The last row of extents that stays is cut, too.
  const Versions::Change change(object.versions, first_step(object, size_bytes / object.grid_row_bytes()), UINT64_MAX);
  Publisher::Pages pages;
  Status changed = core_.store.transact(store::Purpose::kFreeing, [&](store::Transaction& transaction) -> Status {
    Publisher publisher(core_, object, transaction);
    MDFS_TRY(publisher.publish(cut.staged));
    MDFS_TRY(publisher.shorten_parts(cut.shortened));
    MDFS_TRY(free_rows(object, publisher, cut.first_row, UINT64_MAX));
    pages = publisher.pages();
    return object.update(transaction, {size_bytes, publisher.stored_bytes_change(), false});
  });
  if (!changed.ok()) return changed;
  update_cached_pages(core_, object, pages);
  object.size.store(size_bytes, std::memory_order_release);
  {
    const std::lock_guard lock(object.state_mutex);
    object.published_size = size_bytes;
    object.has_cells = !object.is_image() && size_bytes > 0;
  }
  for (const ShortenedExtent& shortened : cut.shortened) {
    Staged& outdated = cut.staged.emplace_back();
    outdated.index = object.extent_index(shortened.coord);
  }
  exchange(object, cut.staged, false, [] {});
  reset_blocks(object, cut.first_row * object.extents_in_row(), UINT64_MAX, true);
  write_back_.wake_waiters();
  return {};
}

// ---- freeing records

Status Replacer::free_rows(OpenObject& object, Publisher& publisher, std::uint64_t first_row, std::uint64_t last_row) {
  if (!object.is_image()) return publisher.free_items(first_row, last_row - 1);
  const std::uint64_t side = object.page_box.side[0];
  const std::uint64_t pages = object.pages_in_row();
  GridBox rows = rows_from(first_row);
  rows.last[0] = last_row;
  // Pages that reach across the first or the last row lose some of their records, those between all.
  const std::uint64_t inner_first = ceil_div(first_row, side);
  const std::uint64_t inner_last = last_row == UINT64_MAX ? UINT64_MAX / pages : last_row / side;
  std::vector<std::uint64_t> edges;
  if (first_row % side != 0) edges.push_back(first_row / side);
  if (last_row != UINT64_MAX && last_row % side != 0 && (edges.empty() || edges.back() != last_row / side))
    edges.push_back(last_row / side);
  for (const std::uint64_t edge : edges) {
    MDFS_TRY_ASSIGN(const auto items, stored_items(core_, object, edge * pages, (edge + 1) * pages - 1, SIZE_MAX));
    for (const std::uint64_t page : items) MDFS_TRY(publisher.free_in_page(page, rows));
  }
  return inner_first < inner_last ? publisher.free_items(inner_first * pages, inner_last * pages - 1) : Status{};
}

// The highest item at or after `first`, which exists: by halving, since keys are only found upwards.
Result<std::uint64_t> Replacer::last_item(OpenObject& object, std::uint64_t first) {
  std::uint64_t found = first;
  std::uint64_t beyond = UINT64_MAX;  // nothing lies at or after it
  while (beyond - found > 1) {
    const std::uint64_t middle = found + (beyond - found) / 2;
    MDFS_TRY_ASSIGN(const auto items, stored_items(core_, object, middle, UINT64_MAX, 1));
    if (items.empty())
      beyond = middle;
    else
      found = items.front();
  }
  return found;
}

// A file with very many records is shortened from its end in several transactions, each of which leaves a file that is
// whole up to the size that it sets.
Status Replacer::free_far(OpenObject& object, std::uint64_t first_row, std::size_t items_left, const Stop& stop) {
  const std::uint64_t side = object.is_image() ? object.page_box.side[0] : 1;
  const std::uint64_t in_row = object.is_image() ? object.pages_in_row() : 1;
  const std::uint64_t first_item = ceil_div(first_row, side) * in_row;
  std::uint64_t before = UINT64_MAX;
  while (true) {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(const auto items, stored_items(core_, object, first_item, UINT64_MAX, items_left + 1));
    if (items.size() <= items_left) return {};
    MDFS_TRY_ASSIGN(const std::uint64_t last, last_item(object, items.front()));
    if (last >= before) return Error{Errc::kCorrupt, fmt::format("extents: page {} lies beyond all images", last)};
    before = last;
    const std::uint64_t item_row = std::max(first_item, last - std::min<std::uint64_t>(last, items_left)) / in_row;
    MDFS_TRY(free_from(object, std::max(item_row * side, first_row)));
  }
}

// The object ends where this row begins, if it did not end before.
Status Replacer::free_from(OpenObject& object, std::uint64_t row) {
  const std::uint64_t size = std::min(object.size.load(std::memory_order_acquire),
                                      checked_mul(row, object.grid_row_bytes()).value_or(UINT64_MAX));
  const ClosedBarrier closed(object.barrier);
  const std::lock_guard publishing(object.publishing);
  const Versions::Change change(object.versions, first_step(object, row), UINT64_MAX);
  Publisher::Pages pages;
  std::uint64_t published = 0;
  Status changed = core_.store.transact(store::Purpose::kFreeing, [&](store::Transaction& transaction) -> Status {
    Publisher publisher(core_, object, transaction);
    MDFS_TRY(free_rows(object, publisher, row, UINT64_MAX));
    pages = publisher.pages();
    {
      const std::lock_guard lock(object.state_mutex);
      published = std::min(object.published_size, size);
    }
    return object.update(transaction, {published, publisher.stored_bytes_change(), false});
  });
  if (!changed.ok()) return changed;
  update_cached_pages(core_, object, pages);
  object.size.store(size, std::memory_order_release);
  {
    const std::lock_guard lock(object.state_mutex);
    object.published_size = published;
  }
  reset_blocks(object, row * object.extents_in_row(), UINT64_MAX, true);
  return {};
}

void Replacer::reset_blocks(OpenObject& object, std::uint64_t first, std::uint64_t last, bool zeros) {
  for (const CacheBlockPtr& block : core_.cache.blocks_between(object.number, first, last)) {
    const std::lock_guard lock(block->mutex);
    block->buffer = BufferRef();
    block->complete = zeros;
    block->valid.clear();
    block->known_on_disk = false;
    if (block->dirty) write_back_.note_clean(object, *block);
  }
}

}  // namespace mdfs::engine
