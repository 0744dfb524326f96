// Looking without changing.
// SPDX-License-Identifier: Apache-2.0
#include "engine/survey.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/checked.h"
#include "engine/link.h"
#include "engine/requests.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

constexpr std::uint64_t kMostPlanned = 1u << 18;  // extents of a window, whose plan is in memory as a whole

void add_cell(const Content& content, std::uint64_t index, const format::FileCell& cell,
              std::vector<ExtentPlace>& places) {
  for (const format::FileRun& run : cell.runs)
    places.push_back(
        {{index, 0, 0}, run.address.disk, run.address.block, std::uint64_t{run.blocks()} * content.block_size});
}

// The blocks of a cell that lie wholly before a byte of it.
std::uint32_t block_mask_below(const Content& content, std::uint64_t byte) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << byte / content.block_size) - 1);
}

}  // namespace

Result<std::vector<ExtentPlace>> Survey::layout(Content& content) {
  const std::uint64_t kind = content.is_image() ? MDFS_KIND_EXTENTS : MDFS_KIND_FILE_CELL;
  std::vector<ExtentPlace> places;
  for (format::Key next{content.object, kind, 0};;) {
    MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                    core_.store.scan(next, {content.object, kind, UINT64_MAX}, kItemsAtOnce));
    for (const store::Item& item : items) {
      if (!content.is_image()) {
        MDFS_TRY_ASSIGN(const format::FileCell cell, format::decode_file_cell(item.value, content.block_size));
        add_cell(content, item.key.offset, cell, places);
        continue;
      }
      MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(item.value, content.table));
      for (unsigned place = 0; place < content.page_box.places; ++place) {
        const std::optional<format::ExtentRecord> record = page.get(place);
        if (!record) continue;
        const geometry::Coord coord = content.unit_of({item.key.offset, place});
        std::optional<ByteVector> runs_item;
        if (record->is_scattered()) {
          MDFS_TRY_ASSIGN(runs_item, core_.store.get(runs_key(content, {item.key.offset, place})));
        }
        MDFS_TRY_ASSIGN(const std::vector<store::Run> runs, runs_of(content, *record, runs_item));
        places.push_back({coord, runs.front().disk, runs.front().block, record->stored_bytes});
      }
    }
    if (items.size() < kItemsAtOnce || items.back().key.offset == UINT64_MAX) break;
    next.offset = items.back().key.offset + 1;
  }
  std::sort(places.begin(), places.end(), [&](const ExtentPlace& a, const ExtentPlace& b) {
    return std::tie(a.index, a.disk, a.block) < std::tie(b.index, b.disk, b.block);
  });
  return places;
}

Result<WindowPlan> Survey::plan(Content& content, const geometry::Window& window) {
  if (!content.is_image()) return {Errc::kNotImage, "window of an ordinary file"};
  const geometry::Box box = geometry::byte_box(*content.image, window);
  if (geometry::piece_count(content.array(), box) > kMostPlanned)
    return {Errc::kTooBig, "a window of more than 262144 extents cannot be planned"};
  WindowPlan plan;
  plan.disks.resize(core_.store.disk_count());
  std::vector<Segment> segments;
  const std::vector<geometry::Piece> pieces = geometry::decompose(content.array(), box);
  plan.extents = pieces.size();
  for (const geometry::Piece& piece : pieces) {
    if (const UnitPtr unit = core_.cache.peek(content.key_of(content.unit_index(piece.extent))); unit != nullptr) {
      const std::lock_guard lock(unit->mutex);
      plan.cached += covers(content, *unit, piece.in_extent) ? 1 : 0;
    }
    MDFS_TRY_ASSIGN(const StoredExtent extent, core_.records.extent(content, piece.extent, false));
    if (extent.is_hole()) {
      ++plan.holes;
      continue;
    }
    if (!content.is_raw()) {
      append_segments(extent.runs, content.block_size, 0, align_up(extent.stored_bytes, device::kAlignment), nullptr, 0,
                      segments);
      continue;
    }
    const std::vector<bool> touched =
        geometry::touched_sub_blocks(content.array(), piece.in_extent, content.part_bytes);
    for (std::uint64_t i = 0; i < touched.size(); ++i) {
      if (!touched[i]) continue;
      const std::uint64_t end = std::min<std::uint64_t>((i + 1) * content.part_bytes, content.unit_bytes);
      append_segments(extent.runs, content.block_size, i * content.part_bytes, align_up(end, device::kAlignment),
                      nullptr, 0, segments);
    }
  }
  if (segments.empty()) return plan;
  for (const geometry::DiskPlan& disk : plan_segments(segments, core_.options.largest_request_bytes).disks)
    plan.disks[disk.disk] = {disk.bytes, disk.requests.size(), disk.runs};
  return plan;
}

// ---- data and holes: blocks of files, rows of extents of images

Result<std::uint32_t> Survey::data_blocks(Content& content, std::uint64_t index) {
  MDFS_TRY_ASSIGN(const format::FileCell cell, core_.records.cell(content, index));
  std::uint32_t blocks = 0;
  for (const format::FileRun& run : cell.runs)
    for (unsigned block = run.first; block < run.end(); ++block) blocks |= 1u << block;
  if (const UnitPtr unit = core_.cache.peek(content.key_of(index)); unit != nullptr) {
    std::unique_lock lock(unit->mutex);
    // What is being written is not dirty any more and not linked yet.
    unit->changed.wait(lock, [&] { return !unit->claimed; });
    blocks |= unit->dirty_blocks;
    lock.unlock();
    MDFS_TRY_ASSIGN(const format::FileCell now, core_.records.cell(content, index));
    for (const format::FileRun& run : now.runs)
      for (unsigned block = run.first; block < run.end(); ++block) blocks |= 1u << block;
  }
  const std::lock_guard lock(content.state_mutex);
  if (index == 0 && content.linked_inline) blocks |= 1;
  return blocks;
}

Result<std::uint64_t> Survey::next_linked_row(Content& content, std::uint64_t row) {
  const std::uint64_t kind = content.is_image() ? MDFS_KIND_EXTENTS : MDFS_KIND_FILE_CELL;
  if (!content.is_image()) {
    MDFS_TRY_ASSIGN(const auto items,
                    core_.store.scan({content.object, kind, row}, {content.object, kind, UINT64_MAX}, 1));
    return items.empty() ? UINT64_MAX : items.front().key.offset;
  }
  const std::uint64_t side = content.page_box.side[0];
  std::uint64_t best = UINT64_MAX;
  for (format::Key next{content.object, kind, row / side * content.pages_in_row()};;) {
    MDFS_TRY_ASSIGN(const auto items, core_.store.scan(next, {content.object, kind, UINT64_MAX}, kItemsAtOnce));
    for (const store::Item& item : items) {
      // Pages of a later row of pages cannot hold an earlier row of extents.
      if (best != UINT64_MAX && content.unit_of({item.key.offset, 0})[0] > best) return best;
      MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(item.value, content.table));
      for (unsigned place = 0; place < content.page_box.places; ++place) {
        if (!page.has(place)) continue;
        const std::uint64_t here = content.unit_of({item.key.offset, place})[0];
        if (here >= row) best = std::min(best, here);
      }
    }
    if (items.size() < kItemsAtOnce || items.back().key.offset == UINT64_MAX) return best;
    next.offset = items.back().key.offset + 1;
  }
}

Result<std::uint64_t> Survey::next_row_with_data(Content& content, std::uint64_t row) {
  std::uint64_t dirty = UINT64_MAX;
  {
    const std::lock_guard lock(content.state_mutex);
    const auto unit = content.dirty_units.lower_bound(checked_mul(row, content.units_in_row()).value_or(UINT64_MAX));
    if (unit != content.dirty_units.end()) dirty = unit->first / content.units_in_row();
    if (row == 0 && content.linked_inline) dirty = 0;
  }
  MDFS_TRY_ASSIGN(const std::uint64_t linked, next_linked_row(content, row));
  return std::min(dirty, linked);
}

Result<std::uint64_t> Survey::next_data(Content& content, std::uint64_t offset) {
  const std::uint64_t size = content.size.load(std::memory_order_acquire);
  if (offset >= size) return {Errc::kNoDevice, "beyond the end of the file"};
  const std::uint64_t row_bytes = content.grid_row_bytes();
  for (std::uint64_t row = offset / row_bytes;;) {
    MDFS_TRY_ASSIGN(const std::uint64_t found, next_row_with_data(content, row));
    if (found == UINT64_MAX || found * row_bytes >= size) return {Errc::kNoDevice, "no data up to the end of the file"};
    const std::uint64_t start = std::max(offset, found * row_bytes);
    if (content.is_image()) return start;
    MDFS_TRY_ASSIGN(std::uint32_t blocks, data_blocks(content, found));
    blocks &= ~block_mask_below(content, start - found * row_bytes);
    if (blocks != 0) {
      const std::uint64_t at = found * row_bytes + std::uint64_t(std::countr_zero(blocks)) * content.block_size;
      if (at >= size) return {Errc::kNoDevice, "no data up to the end of the file"};
      return std::max(offset, at);
    }
    row = found + 1;
  }
}

Result<std::uint64_t> Survey::next_hole(Content& content, std::uint64_t offset) {
  const std::uint64_t size = content.size.load(std::memory_order_acquire);
  if (offset >= size) return {Errc::kNoDevice, "beyond the end of the file"};
  const std::uint64_t row_bytes = content.grid_row_bytes();
  for (std::uint64_t row = offset / row_bytes; row * row_bytes < size; ++row) {
    MDFS_TRY_ASSIGN(const std::uint64_t found, next_row_with_data(content, row));
    const std::uint64_t start = std::max(offset, row * row_bytes);
    if (found != row) return start;
    if (content.is_image()) continue;
    MDFS_TRY_ASSIGN(std::uint32_t blocks, data_blocks(content, row));
    blocks |= block_mask_below(content, start - row * row_bytes);
    const auto first_hole = static_cast<unsigned>(std::countr_one(blocks));
    if (first_hole * content.block_size < content.unit_bytes)
      return std::min(size, std::max(offset, row * row_bytes + std::uint64_t{first_hole} * content.block_size));
  }
  return size;
}

}  // namespace mdfs::engine
