// Looking without changing.
// SPDX-License-Identifier: Apache-2.0
#include "engine/map/survey.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/checked.h"
#include "engine/map/layout_walk.h"
#include "engine/requests.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

constexpr std::uint64_t kMostPlanned = 1u << 18;  // extents of a window, whose plan is in memory as a whole
constexpr std::size_t kMostParts = 1u << 19;      // of these extents

// The blocks of a cell that lie wholly before a byte of it.
std::uint32_t block_mask_below(const OpenObject& object, std::uint64_t byte) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << byte / object.block_size) - 1);
}

// The blocks of its strips that a raw extent's sub-blocks are read from. `wanted`: of parts_under().
void plan_parts(const OpenObject& object, const MappedExtent& extent, const std::vector<ByteRanges::Range>& wanted,
                std::vector<Segment>& segments) {
  for (const StripPart& part : extent.parts) {
    std::uint64_t begin = UINT64_MAX, end = 0;
    for (const ByteRanges::Range& range : wanted) {
      if (range.begin >= part.end() || range.end <= part.begin) continue;
      begin = std::min<std::uint64_t>(begin, std::max(range.begin, part.begin) - part.begin);
      end = std::min(range.end, part.end()) - part.begin;
    }
    if (begin < end)
      append_segments(part.stored.runs, object.block_size, align_down(begin, object.block_size),
                      align_up(end, object.block_size), nullptr, 0, segments);
  }
}

}  // namespace

Result<LayoutRows> Survey::layout(OpenObject& object, const LayoutRequest& request, const Stop& stop) {
  LayoutRows found;
  found.next = request.from;
  LayoutWalk walk(core_, object, request.of, stop);
  MDFS_TRY_ASSIGN(found.at_end, walk.run(found.next, [&](const layout::ExtentPlace& row) {
    if (found.rows.size() >= request.most) return false;
    found.rows.push_back(row);
    return true;
  }));
  return found;
}

namespace {

constexpr std::uint64_t kMostWhole = 1u << 16;   // extents of an image that is looked at as a whole
constexpr std::uint64_t kMostInPart = 1u << 14;  // extents of a larger one that are planned at once
constexpr std::uint64_t kSamples = 16;           // of larger ones: so many boxes of pages
constexpr std::size_t kSampleWindows = 256;

// The box of extents about a page: some thousand of them, in whole bands.
GridBox sample_about(const layout::ImageLayout& image, const geometry::Coord& at) {
  constexpr std::array<std::uint64_t, 5> kSides = {4096, 48, 12, 6, 6};
  static_assert(kSides.size() == geometry::kMaxRank);
  const std::uint64_t side = kSides[image.rank - 1];
  GridBox box;
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    box.first[axis] = at[axis] / side * side;
    box.last[axis] = std::min(box.first[axis] + side, image.grid[axis]);
  }
  return box;
}

}  // namespace

Result<layout::Fragmentation> Survey::fragmentation(OpenObject& object, const Stop& stop) {
  const layout::ImageLayout image = describe(object);
  if (object.is_image() && checked_mul(image.grid[0], object.extents_in_row()).value_or(UINT64_MAX) > kMostWhole)
    return fragmentation_of_samples(object, image, stop);
  MDFS_TRY_ASSIGN(const std::vector<layout::ExtentPlace> places, extents(object, image, stop));
  return layout::fragmentation_of(image, places);
}

layout::ImageLayout Survey::describe(const OpenObject& object) {
  layout::ImageLayout image;
  image.rank = object.rank;
  image.grid = object.shape_for(object.size.load(std::memory_order_acquire)).grid();
  image.disks = object.placement == nullptr ? 1 : object.placement->disks;
  image.block_size = object.block_size;
  image.groups = &object.groups;
  image.placement_disk = [&object](const geometry::Coord& extent) { return object.placement_disk(extent); };
  return image;
}

namespace {

// A cell as if it were an extent: what is contiguous on a disk is one piece of it.
void add_cell_as_extent(const OpenObject& object, std::uint64_t index, const format::FileCell& cell,
                        std::vector<layout::ExtentPlace>& places) {
  if (cell.empty()) return;
  const store::Run first = cell.runs.front().place();
  layout::ExtentPlace place{
      {index, 0, 0}, first.disk, first.block, std::uint64_t{cell.blocks()} * object.block_size, 0};
  format::Address next{};
  for (const format::FileRun& one : cell.runs) {
    const store::Run run = one.place();
    place.pieces += place.pieces == 0 || run.address() != next ? 1 : 0;
    next = {run.disk, run.end()};
    if (run.disk == place.disk) place.end = std::max(place.end, run.end());
  }
  places.push_back(place);
}

}  // namespace

Result<std::vector<layout::ExtentPlace>> Survey::extents(OpenObject& object, const layout::ImageLayout& image,
                                                         const Stop& stop) {
  std::vector<layout::ExtentPlace> places;
  if (object.is_image()) {
    LayoutCursor at;
    LayoutWalk walk(core_, object, LayoutOf::kExtents, stop);  // what is in strips does not stay there
    MDFS_TRY(walk.run(at, [&](const layout::ExtentPlace& place) {
      // Rows beyond were written while we looked.
      if (place.index[0] < image.grid[0]) places.push_back(place);
      return places.size() < kMostWhole;
    }));
    std::sort(places.begin(), places.end(),
              [](const layout::ExtentPlace& a, const layout::ExtentPlace& b) { return a.index < b.index; });
    return places;
  }
  for (format::Key next{object.number, MDFS_KIND_FILE_CELL, 0};;) {
    MDFS_TRY(stopped(stop));
    MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                    core_.store.scan(next, {object.number, MDFS_KIND_FILE_CELL, UINT64_MAX}, kItemsAtOnce));
    for (const store::Item& item : items) {
      MDFS_TRY_ASSIGN(const format::FileCell cell, format::decode_file_cell(item.value, object.block_size));
      if (item.key.offset < image.grid[0]) add_cell_as_extent(object, item.key.offset, cell, places);
    }
    // Of a larger file the beginning speaks for the rest.
    if (items.size() < kItemsAtOnce || places.size() >= kMostWhole || items.back().key.offset == UINT64_MAX)
      return places;
    next.offset = items.back().key.offset + 1;
  }
}

Status Survey::add_extent(OpenObject& object, const geometry::Coord& coord, std::vector<layout::ExtentPlace>& places) {
  if (!object.is_image()) {
    MDFS_TRY_ASSIGN(const format::FileCell cell, core_.extent_map.cell(object, coord[0]));
    add_cell_as_extent(object, coord[0], cell, places);
    return {};
  }
  MDFS_TRY_ASSIGN(const MappedExtent extent, core_.extent_map.extent(object, coord, false));
  if (!extent.has_record()) return {};
  places.push_back(row_of(coord, extent.record.runs, extent.record.stored_bytes));
  return {};
}

Result<layout::DefragPlan> Survey::plan_defrag(OpenObject& object, std::uint64_t from) {
  const layout::ImageLayout image = describe(object);
  const std::uint64_t extents_in_all = checked_mul(image.grid[0], object.extents_in_row()).value_or(UINT64_MAX);
  std::vector<layout::ExtentPlace> places;
  layout::DefragPlan plan;
  if (extents_in_all <= kMostWhole) {
    MDFS_TRY_ASSIGN(places, extents(object, image, {}));
  } else {
    // Whole runs, in their order; of a run that is longer than that, parts.
    const std::uint64_t run = std::min(object.groups.run_extents(image.disks), kMostWhole);
    const std::uint64_t last = from + std::max<std::uint64_t>(1, kMostInPart / run) * run;
    const std::uint64_t end = object.groups.order_end(image.grid[0]);
    for (std::uint64_t order = from; order < std::min(last, end); ++order) {
      const std::optional<geometry::Coord> extent = object.groups.extent_at(order, image.grid[0]);
      if (extent) MDFS_TRY(add_extent(object, *extent, places));
    }
    plan.next = last < end ? last : 0;
  }
  for (const layout::ExtentPlace& place : places) plan.stored_bytes += align_up(place.stored_bytes, object.block_size);
  plan.moves = layout::plan_defrag(image, places,
                                   [this](unsigned disk) { return core_.store.disk_info(disk).data_free_blocks; });
  return plan;
}

Result<layout::Fragmentation> Survey::fragmentation_of_samples(OpenObject& object, const layout::ImageLayout& image,
                                                               const Stop& stop) {
  layout::Fragmentation fragmentation;
  const std::uint64_t page_rows = ceil_div(image.grid[0], object.page_box.side[0]);
  const std::uint64_t pages = checked_mul(page_rows, object.pages_in_row()).value_or(UINT64_MAX);
  std::vector<geometry::Coord> seen;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    MDFS_TRY(stopped(stop));
    // The next page that there is: images may be sparse.
    const format::Key from{object.number, MDFS_KIND_EXTENTS, pages / kSamples * i + pages / kSamples / 2};
    MDFS_TRY_ASSIGN(const auto next, core_.store.scan(from, {object.number, MDFS_KIND_EXTENTS, UINT64_MAX}, 1));
    if (next.empty()) continue;
    const geometry::Coord origin = object.extent_of({next.front().key.offset, 0});
    if (origin[0] >= image.grid[0]) continue;
    const GridBox box = sample_about(image, origin);
    if (std::find(seen.begin(), seen.end(), box.first) != seen.end()) continue;
    seen.push_back(box.first);
    std::vector<layout::ExtentPlace> places;
    const auto take = [&](const layout::ExtentPlace& extent) {
      for (unsigned axis = 0; axis < image.rank; ++axis)
        if (extent.index[axis] < box.first[axis] || extent.index[axis] >= box.last[axis]) return true;
      places.push_back(extent);
      return true;
    };
    std::uint64_t last_page = UINT64_MAX;
    geometry::Coord at = box.first;
    for (bool more = true; more;) {
      const geometry::PagePlace place = object.page_of(at);
      if (place.page != last_page) {
        last_page = place.page;
        MDFS_TRY_ASSIGN(const auto value, core_.store.get(page_key(object, place.page)));
        LayoutCursor row{place.page, 0};
        bool taking = true;
        if (value) MDFS_TRY(each_extent(core_, object, place.page, *value, row, take, taking));
      }
      // The next page's first extent inside the box.
      more = false;
      for (unsigned axis = object.rank; axis-- > 0 && !more;) {
        at[axis] = (at[axis] / object.page_box.side[axis] + 1) * object.page_box.side[axis];
        more = at[axis] < box.last[axis];
        if (!more) at[axis] = box.first[axis];
      }
    }
    fragmentation += layout::fragmentation_of(image, places, kSampleWindows);
  }
  return fragmentation;
}

namespace {

// What lies on a lost disk is read from its other piece.
void read_around(std::uint64_t lost, MappedExtent& extent) {
  const auto turn = [&](format::StoredExtent& stored) {
    const auto is_lost = [&](const format::Runs& runs) { return (format::StoredExtent::disks_of(runs) & lost) != 0; };
    if (stored.has_copy() && is_lost(stored.runs) && !is_lost(stored.copy)) stored = stored.by_copy();
  };
  turn(extent.record);
  for (StripPart& part : extent.parts) turn(part.stored);
}

// What is read for the bytes of a record: its runs, or of each other piece of its group as much.
std::vector<format::GroupPiece> pieces_to_read(std::uint64_t lost, const format::StoredExtent& record) {
  const bool is_lost = (format::StoredExtent::disks_of(record.runs) & lost) != 0;
  return is_lost && (record.others.disks() & lost) == 0 ? record.others.pieces() : std::vector<format::GroupPiece>();
}

}  // namespace

Result<WindowPlan> Survey::plan(OpenObject& object, const geometry::Window& window, const Stop& stop) {
  if (!object.is_image()) return {Errc::kNotImage, "window of an ordinary file"};
  const geometry::Box box = geometry::byte_box(*object.image, window);
  if (geometry::piece_count(object.array(), box) > kMostPlanned)
    return {Errc::kTooBig, "a window of more than 262144 extents cannot be planned"};
  const std::uint64_t lost = core_.store.lost_disks();
  WindowPlan plan;
  plan.disks.resize(core_.store.disk_count());
  std::vector<Segment> segments;
  const std::vector<geometry::Piece> pieces = geometry::decompose(object.array(), box);
  plan.extents = pieces.size();
  for (const geometry::Piece& piece : pieces) {
    MDFS_TRY(stopped(stop));
    if (segments.size() > kMostParts)
      return {Errc::kTooBig, "a window of more than 524288 separate parts of extents cannot be planned"};
    if (const CacheBlockPtr block = core_.cache.peek(object.key_of(object.extent_index(piece.extent)));
        block != nullptr) {
      const std::lock_guard lock(block->mutex);
      plan.cached += covers(object, *block, piece.in_extent) ? 1 : 0;
    }
    MDFS_TRY_ASSIGN(MappedExtent extent, core_.extent_map.extent(object, piece.extent, false));
    if (lost != 0) read_around(lost, extent);
    if (extent.is_hole()) {
      ++plan.holes;
      continue;
    }
    const std::vector<format::GroupPiece> others = pieces_to_read(lost, extent.record);
    const auto add = [&](std::uint32_t begin, std::uint32_t end) {
      if (others.empty())
        append_segments(extent.record.runs, object.block_size, begin, align_up(end, device::kAlignment), nullptr, 0,
                        segments);
      for (const format::GroupPiece& other : others)
        if (begin < other.stored_bytes)
          append_segments({&other.run, 1}, object.block_size, begin,
                          align_up(std::min(end, other.stored_bytes), device::kAlignment), nullptr, 0, segments);
    };
    if (!object.is_raw()) {
      if (extent.has_record()) add(0, extent.record.stored_bytes);
      for (const StripPart& part : extent.parts)
        append_segments(part.stored.runs, object.block_size, 0, part.stored.stored_bytes, nullptr, 0, segments);
      continue;
    }
    const std::vector<ByteRanges::Range> wanted = parts_under(object, piece.in_extent);
    plan_parts(object, extent, wanted, segments);
    if (!extent.has_record()) continue;
    for (const ByteRanges::Range& range : wanted) add(range.begin, range.end);
  }
  if (segments.empty()) return plan;
  for (const geometry::DiskPlan& disk : plan_segments(segments, core_.options.largest_request_bytes).disks) {
    if (disk.disk >= plan.disks.size()) plan.disks.resize(disk.disk + std::size_t{1});  // it has just come
    plan.disks[disk.disk] = {disk.bytes, disk.requests.size(), disk.runs};
  }
  return plan;
}

// ---- data and holes: blocks of files, rows of extents of images

Result<std::uint32_t> Survey::data_blocks(OpenObject& object, std::uint64_t index) {
  MDFS_TRY_ASSIGN(const format::FileCell cell, core_.extent_map.cell(object, index));
  std::uint32_t blocks = cell.block_mask();
  if (const CacheBlockPtr cached = core_.cache.peek(object.key_of(index)); cached != nullptr) {
    std::unique_lock lock(cached->mutex);
    // A block that is being written is no longer dirty and not published yet.
    cached->changed.wait(lock, [&] { return !cached->write_locked; });
    blocks |= cached->dirty_blocks;
    lock.unlock();
    MDFS_TRY_ASSIGN(const format::FileCell now, core_.extent_map.cell(object, index));
    blocks |= now.block_mask();
  }
  const std::lock_guard lock(object.state_mutex);
  if (index == 0 && object.published_inline) blocks |= 1;
  return blocks;
}

Result<std::uint64_t> Survey::next_published_row(OpenObject& object, std::uint64_t row) {
  const std::uint64_t kind = object.is_image() ? MDFS_KIND_EXTENTS : MDFS_KIND_FILE_CELL;
  if (!object.is_image()) {
    MDFS_TRY_ASSIGN(const auto items,
                    core_.store.scan({object.number, kind, row}, {object.number, kind, UINT64_MAX}, 1));
    return items.empty() ? UINT64_MAX : items.front().key.offset;
  }
  const std::uint64_t side = object.page_box.side[0];
  std::uint64_t best = UINT64_MAX;
  if (object.may_have_strips) {
    MDFS_TRY_ASSIGN(best, next_row_with_strips(object, row));
  }
  for (format::Key next{object.number, kind, row / side * object.pages_in_row()};;) {
    MDFS_TRY_ASSIGN(const auto items, core_.store.scan(next, {object.number, kind, UINT64_MAX}, kItemsAtOnce));
    for (const store::Item& item : items) {
      // Pages of a later row of pages cannot hold an earlier row of extents.
      if (best != UINT64_MAX && object.extent_of({item.key.offset, 0})[0] > best) return best;
      MDFS_TRY_ASSIGN(const format::ExtentPage page, format::ExtentPage::decode(item.value, object.table));
      for (unsigned place = 0; place < object.page_box.places; ++place) {
        if (!page.has(place)) continue;
        const std::uint64_t here = object.extent_of({item.key.offset, place})[0];
        if (here >= row) best = std::min(best, here);
      }
    }
    if (items.size() < kItemsAtOnce || items.back().key.offset == UINT64_MAX) return best;
    next.offset = items.back().key.offset + 1;
  }
}

Result<std::uint64_t> Survey::next_row_with_strips(OpenObject& object, std::uint64_t row) {
  std::uint64_t best = UINT64_MAX;
  const std::uint64_t first = row / object.page_box.side[0] * object.pages_in_row();
  if (first > UINT64_MAX / MDFS_STRIPS_PER_PAGE) return best;
  for (format::Key next = strip_key(object, first, 0);;) {
    MDFS_TRY_ASSIGN(const auto items,
                    core_.store.scan(next, {object.number, MDFS_KIND_STRIP, UINT64_MAX}, kItemsAtOnce));
    for (const store::Item& item : items) {
      const std::uint64_t page = item.key.offset / MDFS_STRIPS_PER_PAGE;
      if (best != UINT64_MAX && object.extent_of({page, 0})[0] > best) return best;
      MDFS_TRY_ASSIGN(const format::Strip strip, format::decode_strip(item.value, object.table, object.block_size));
      for (unsigned place = 0; place < object.page_box.places; ++place) {
        const std::uint64_t here = object.extent_of({page, place})[0];
        if (strip.has(place) && here >= row) best = std::min(best, here);
      }
    }
    if (items.size() < kItemsAtOnce || items.back().key.offset == UINT64_MAX) return best;
    next.offset = items.back().key.offset + 1;
  }
}

Result<std::uint64_t> Survey::next_row_with_data(OpenObject& object, std::uint64_t row) {
  std::uint64_t dirty = UINT64_MAX;
  {
    const std::lock_guard lock(object.state_mutex);
    const auto block =
        object.dirty_cache_blocks.lower_bound(checked_mul(row, object.extents_in_row()).value_or(UINT64_MAX));
    if (block != object.dirty_cache_blocks.end()) dirty = block->first / object.extents_in_row();
    if (row == 0 && object.published_inline) dirty = 0;
  }
  MDFS_TRY_ASSIGN(const std::uint64_t published, next_published_row(object, row));
  return std::min(dirty, published);
}

Result<std::uint64_t> Survey::next_data(OpenObject& object, std::uint64_t offset) {
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  if (offset >= size) return {Errc::kNoDevice, "beyond the end of the file"};
  const std::uint64_t row_bytes = object.grid_row_bytes();
  for (std::uint64_t row = offset / row_bytes;;) {
    MDFS_TRY_ASSIGN(const std::uint64_t found, next_row_with_data(object, row));
    if (found == UINT64_MAX || found * row_bytes >= size) return {Errc::kNoDevice, "no data up to the end of the file"};
    const std::uint64_t start = std::max(offset, found * row_bytes);
    if (object.is_image()) return start;
    MDFS_TRY_ASSIGN(std::uint32_t blocks, data_blocks(object, found));
    blocks &= ~block_mask_below(object, start - found * row_bytes);
    if (blocks != 0) {
      const std::uint64_t at = found * row_bytes + std::uint64_t(std::countr_zero(blocks)) * object.block_size;
      if (at >= size) return {Errc::kNoDevice, "no data up to the end of the file"};
      return std::max(offset, at);
    }
    row = found + 1;
  }
}

Result<std::uint64_t> Survey::next_hole(OpenObject& object, std::uint64_t offset) {
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  if (offset >= size) return {Errc::kNoDevice, "beyond the end of the file"};
  const std::uint64_t row_bytes = object.grid_row_bytes();
  for (std::uint64_t row = offset / row_bytes; row * row_bytes < size; ++row) {
    MDFS_TRY_ASSIGN(const std::uint64_t found, next_row_with_data(object, row));
    const std::uint64_t start = std::max(offset, row * row_bytes);
    if (found != row) return start;
    if (object.is_image()) continue;
    MDFS_TRY_ASSIGN(std::uint32_t blocks, data_blocks(object, row));
    blocks |= block_mask_below(object, start - row * row_bytes);
    const auto first_hole = static_cast<unsigned>(std::countr_one(blocks));
    if (first_hole * object.block_size < object.extent_bytes)
      return std::min(size, std::max(offset, row * row_bytes + std::uint64_t{first_hole} * object.block_size));
  }
  return size;
}

}  // namespace mdfs::engine
