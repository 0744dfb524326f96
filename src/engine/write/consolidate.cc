// Consolidation: extents whose bytes lie in strips are written whole, and the strips are freed in the same transaction.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "engine/map/stored_items.h"
#include "engine/write/replacer.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

// Is the extent complete? It is when strips, or its record with strips, hold everything up to its last step along the
// slowest axis. Before that, an image that ends inside the extent may still grow.
bool is_complete(const OpenObject& object, const geometry::Coord& extent, bool has_record,
                 const std::vector<ByteRanges::Range>& parts) {
  geometry::Box inside;
  inside.length = object.array().extent;
  for (unsigned axis = 1; axis < object.rank; ++axis)
    inside.length[axis] =
        std::min(inside.length[axis], object.array().shape[axis] - extent[axis] * object.array().extent[axis]);
  ByteRanges covered;
  std::uint32_t first = UINT32_MAX;
  for (const ByteRanges::Range& part : parts) {
    covered.add(part.begin, part.end);
    first = std::min(first, part.begin);
  }
  if (has_record && first > 0) covered.add(0, first);
  const std::vector<ByteRanges::Range> wanted = ranges_under(object, inside);
  return !wanted.empty() && std::all_of(wanted.begin(), wanted.end(), [&](const ByteRanges::Range& range) {
    return covered.covers(range.begin, range.end);
  });
}

}  // namespace

Result<std::uint64_t> Replacer::consolidate(OpenObject& object, std::uint64_t most_bytes, bool all) {
  if (!object.may_have_strips) return std::uint64_t{0};
  Consolidated consolidated;
  constexpr std::uint64_t kLastPage = UINT64_MAX / MDFS_STRIPS_PER_PAGE;
  for (std::uint64_t page = 0; page <= kLastPage && consolidated.bytes < most_bytes; ++page) {
    MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> next, pages_with_strips(core_, object, page, kLastPage, 1));
    if (next.empty()) break;
    page = next.front();
    MDFS_TRY(consolidate_page(object, page, all, consolidated));
  }
  if (consolidated.bytes == 0 && !consolidated.damage.ok()) return consolidated.damage.error();
  return consolidated.bytes;
}

// Row by row, since a row that is still being appended to is left alone.
Status Replacer::consolidate_page(OpenObject& object, std::uint64_t number, bool all, Consolidated& consolidated) {
  MDFS_TRY_ASSIGN(const KnownPage known, core_.extent_map.page(object, number, false));
  struct Row {
    std::vector<geometry::Coord> extents;
    bool complete = true;
  };
  std::map<std::uint64_t, Row> rows;
  for (unsigned place = 0; place < object.page_box.places; ++place) {
    std::vector<ByteRanges::Range> parts;
    for (const Strips::Entry& strip : *known.strips)
      if (strip.has(place)) parts.push_back({strip.begin, strip.end});
    if (parts.empty()) continue;
    const geometry::Coord extent = object.extent_of({number, place});
    Row& row = rows[extent[0]];
    row.extents.push_back(extent);
    row.complete = row.complete && (all || is_complete(object, extent, known.page->has(place), parts));
  }
  for (const auto& [row, of_row] : rows)
    if (of_row.complete) MDFS_TRY(consolidate_extents(object, of_row.extents, consolidated));
  return {};
}

Status Replacer::consolidate_extents(OpenObject& object, const std::vector<geometry::Coord>& extents,
                                     Consolidated& consolidated) {
  GridBox box{extents.front(), extents.front()};
  for (const geometry::Coord& coord : extents)
    for (unsigned axis = 0; axis < object.rank; ++axis) {
      box.first[axis] = std::min(box.first[axis], coord[axis]);
      box.last[axis] = std::max(box.last[axis], coord[axis] + 1);
    }
  for (unsigned axis = 0; axis < object.rank; ++axis) box.last[axis] = std::max(box.last[axis], box.first[axis] + 1);
  const RangeLock::Hold hold(object.range_lock, object.rank, box, RangeLock::Mode::kExclusive);
  {
    const WriteBackLocks locks(object, box);
    if (!locks.blocks().empty()) return {};
  }
  // Others may have written, cut off or consolidated some before we had them.
  std::vector<geometry::Coord> left;
  for (const geometry::Coord& coord : extents) {
    MDFS_TRY_ASSIGN(const MappedExtent extent, core_.extent_map.extent(object, coord, false));
    if (!extent.parts.empty()) left.push_back(coord);
  }
  std::vector<geometry::Coord> batch;
  for (std::size_t i = 0; i < left.size(); ++i) {
    batch.push_back(left[i]);
    if (i + 1 < left.size() && (batch.size() + 1) * object.capacity_bytes <= core_.batch_bytes()) continue;
    MDFS_TRY(consolidate_readable(object, batch, consolidated));
    batch.clear();
  }
  return {};
}

// Damage holds back its own extent alone.
Status Replacer::consolidate_readable(OpenObject& object, const std::vector<geometry::Coord>& extents,
                                      Consolidated& consolidated) {
  Status status = write_without_failed_disks([&] { return consolidate_batch(object, extents); });
  if (status.ok()) {
    consolidated.bytes += std::uint64_t{extents.size()} * object.extent_bytes;
    return {};
  }
  if (status.error().code != Errc::kCorrupt && status.error().code != Errc::kIo) return status;
  if (extents.size() == 1) {
    consolidated.damage = status;
    return ++consolidated.damaged < kMostDamaged ? Status{} : status;
  }
  for (const geometry::Coord& extent : extents) MDFS_TRY(consolidate_readable(object, {extent}, consolidated));
  return {};
}

// On a full volume extents that take as much in their strips can still be written: their blocks will be free again.
Result<store::Reservation> Replacer::room_to_consolidate(OpenObject& object,
                                                         const std::vector<geometry::Coord>& extents) {
  const store::SpaceAmount one = object.worst_case(0, false);
  const std::size_t count = extents.size();
  const store::SpaceAmount amount{count * one.blocks, count * one.items, count * one.bytes, count * one.pairs};
  Result<store::Reservation> reservation = core_.store.reserve(amount, store::Purpose::kNormal);
  if (reservation.ok() || reservation.error().code != Errc::kNoSpace) return reservation;
  for (const geometry::Coord& coord : extents) {
    MDFS_TRY_ASSIGN(const MappedExtent extent, core_.extent_map.extent(object, coord, false));
    if (extent.blocks() * object.block_size < object.whole_bytes()) return reservation;
  }
  return core_.store.reserve(amount, store::Purpose::kReserved);
}

Status Replacer::consolidate_batch(OpenObject& object, const std::vector<geometry::Coord>& extents) {
  MDFS_TRY_ASSIGN(store::Reservation reservation, room_to_consolidate(object, extents));
  std::vector<Staged> batch(extents.size());
  std::vector<Want> wants;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    batch[i].coord = extents[i];
    batch[i].index = object.extent_index(extents[i]);
    batch[i].block = core_.cache.find_or_create(object.key_of(batch[i].index));
    wants.push_back({batch[i].block, extents[i], {{0, object.extent_bytes}}});
  }
  // No thread changes them: the caller has this part of the grid alone.
  MDFS_TRY(loader_.load(object, std::move(wants),
                        [&](std::size_t want, const BufferRef& buffer) { batch[want].decoded = buffer; }));
  MDFS_TRY(stage(core_, object, batch, reservation));

  const ClosedBarrier closed(object.barrier);
  const std::lock_guard publishing(object.publishing);
  Publisher::Pages pages;
  const Status changed = core_.store.transact(
      store::Purpose::kReserved,
      [&](store::Transaction& transaction) -> Status {
        Publisher publisher(core_, object, transaction);
        MDFS_TRY(publisher.publish(batch));
        pages = publisher.pages();
        return publisher.update_inode();
      },
      &reservation);
  if (!changed.ok()) {
    abandon(core_, batch);
    return changed;
  }
  update_cached_pages(core_, object, pages);
  for (const Staged& staged : batch) {
    const std::lock_guard lock(staged.block->mutex);
    staged.block->known_on_disk = staged.extent.is_stored();
  }
  return {};
}

}  // namespace mdfs::engine
