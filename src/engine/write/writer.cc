// Writes of byte ranges.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "base/checked.h"
#include "engine/read/window_version.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

std::uint32_t block_mask(const Content& content, std::uint64_t begin, std::uint64_t end) {
  if (content.is_image() || begin >= end) return 0;
  const std::uint64_t first = begin / content.block_size;
  const std::uint64_t last = ceil_div(end, content.block_size);
  return static_cast<std::uint32_t>(((std::uint64_t{1} << last) - 1) & ~((std::uint64_t{1} << first) - 1));
}

namespace {

// Its bytes may lie in the tree after a write that ends here.
bool is_small(const Content& content, std::uint64_t end) {
  return !content.is_image() && std::max(end, content.size.load(std::memory_order_acquire)) <= MDFS_MAX_INLINE;
}

GridBox rows_under(const Content& content, std::uint64_t offset, std::uint64_t length) {
  GridBox rows;
  rows.last.fill(UINT64_MAX);
  rows.first[0] = offset / content.grid_row_bytes();
  rows.last[0] = ceil_div(offset + length, content.grid_row_bytes());
  return rows;
}

// With the padding that follows it in its unit: what lies outside the image is zero and known.
geometry::Box with_padding(const Content& content, const Transfer::Part& part) {
  geometry::Box box = part.piece.in_extent;
  if (!content.is_image()) return box;
  for (unsigned axis = 1; axis < content.rank; ++axis) {
    const std::uint64_t extent = content.array().extent[axis];
    const std::uint64_t left = content.array().shape[axis] - part.piece.extent[axis] * extent;
    if (left < extent && box.start[axis] + box.length[axis] == left) box.length[axis] = extent - box.start[axis];
  }
  return box;
}

// From the first to the last byte of a box inside a unit.
ChangedBytes changed_by(const Content& content, const geometry::Box& box) {
  std::uint64_t first = 0, last = 0;
  for (unsigned axis = 0; axis < content.rank; ++axis) {
    first = first * content.array().extent[axis] + box.start[axis];
    last = last * content.array().extent[axis] + box.start[axis] + box.length[axis] - 1;
  }
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last + 1)};
}

std::uint64_t part_bytes(const Content& content, const Transfer::Part& part) {
  std::uint64_t bytes = 1;
  for (unsigned axis = 0; axis < content.rank; ++axis) bytes *= part.piece.in_extent.length[axis];
  return bytes;
}

}  // namespace

std::uint64_t Writer::pass_bytes(const Content& content) {
  if (!content.is_image()) return kPassBytes;
  return std::min(kPassBytes, kPassParts * content.array().extent[content.rank - 1]);
}

Status Writer::write(Content& content, std::uint64_t offset, ConstBytes from, const Stop& stop) {
  if (from.empty()) return {};
  const std::optional<std::uint64_t> end = checked_add(offset, from.size());
  if (!end || *end > content.max_bytes)
    return {Errc::kTooBig,
            fmt::format("a write up to byte {}: must end at {} or before", offset + from.size(), content.max_bytes)};
  MDFS_TRY_ASSIGN(store::Reservation promised, promise(content, offset, from.size(), store::Purpose::kNormal));
  store::Reservation outgrown;
  if (WriteBack::outgrows_tree(content, *end)) {
    MDFS_TRY_ASSIGN(outgrown, core_.store.reserve(content.worst_case(1, false), store::Purpose::kNormal));
  }
  const GridLock::Hold hold(content.writers, content.rank, rows_under(content, offset, from.size()),
                            GridLock::Mode::kShared);
  MDFS_TRY(write_parts(content, offset, from, *end, promised, stop));
  return outgrown.blocks() > 0 ? write_back_.note_outgrown(content, std::move(outgrown)) : Status{};
}

Status Writer::write_zeros(Content& content, std::uint64_t offset, std::uint64_t length, store::Purpose purpose,
                           std::uint64_t size) {
  if (length == 0) return {};
  // Not the size that the file has: that may be cut, behind the part of the grid that is held, while this writes.
  const std::uint64_t end = std::max(offset + length, size);
  const BufferRef zeros = core_.cache.acquire(std::min(length, kPassBytes));
  std::memset(zeros.data(), 0, zeros.size());
  std::uint64_t pass = kPassBytes;  // less on a full volume
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t bytes = std::min(length - done, pass);
    Result<store::Reservation> promised = promise(content, offset + done, bytes, purpose);
    if (!promised.ok() && promised.error().code == Errc::kNoSpace && bytes > 1) {
      pass = bytes / 2;
      continue;
    }
    if (!promised.ok()) return promised.error();
    MDFS_TRY(write_parts(content, offset + done, ConstBytes(zeros.bytes()).first(bytes), end, *promised, {}));
    done += bytes;
  }
  return {};
}

Status Writer::zero_unit(Content& content, const HeldUnit& held, std::uint64_t end, store::Purpose purpose) {
  Transfer transfer;
  std::uint64_t most = 0;
  for (const geometry::Piece& piece : held.pieces) {
    Transfer::Region region{piece.in_extent.length, 0, 1};
    for (unsigned axis = 0; axis < content.rank; ++axis) region.bytes *= region.shape[axis];
    most = std::max(most, region.bytes);
    transfer.parts.push_back({held.index, static_cast<std::uint32_t>(transfer.regions.size()), piece});
    transfer.parts.back().piece.in_box = {};
    transfer.regions.push_back(region);
  }
  if (most == 0) return {};
  const BufferRef zeros = core_.cache.acquire(most);
  std::memset(zeros.data(), 0, zeros.size());
  const store::Room room = content.worst_case(0, false);
  Result<store::Reservation> promised = core_.store.reserve(room, purpose);
  if (!promised.ok() && promised.error().code == Errc::kNoSpace && write_back_.write_back_all(0).ok())
    promised = core_.store.reserve(room, purpose);
  if (!promised.ok()) return promised.error();
  MDFS_TRY_ASSIGN(const ByteBudget::Share share, write_back_.admit(content.capacity_bytes, {}));
  for (const Transfer::Part& part : transfer.parts)
    MDFS_TRY(write_part(content, transfer, part, zeros.bytes(), end, *promised));
  return {};
}

store::Room Writer::missing(const Content& content, const Unit& unit, std::uint32_t dirty_blocks, std::uint64_t end) {
  return content.worst_case(static_cast<std::uint64_t>(std::popcount(dirty_blocks)), is_small(content, end))
      .less(unit.promised);
}

// Without a look at what is dirty already.
store::Room Writer::most_needed(const Content& content, std::uint64_t offset, std::uint64_t length) {
  std::uint64_t units = 0;
  if (content.is_image()) {
    units = count_parts(content, offset, length);
    const store::Room one = content.worst_case(0, false);
    return {units * one.blocks, units * one.puts, units * one.bytes};
  }
  units = ceil_div(offset + length, content.unit_bytes) - offset / content.unit_bytes;
  const std::uint64_t blocks = ceil_div(offset + length, content.block_size) - offset / content.block_size;
  store::Room room = content.worst_case(blocks, is_small(content, offset + length));
  const store::Room none = content.worst_case(0, false);
  room += {0, (units - 1) * none.puts, (units - 1) * none.bytes};
  return room;
}

// What writing the range back takes at most, less what its dirty units have been promised already.
store::Room Writer::needed(Content& content, std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = offset + length;
  store::Room sum;
  std::set<std::uint64_t> units;  // a range of an image may touch a unit in several parts
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t bytes = std::min(length - done, pass_bytes(content));
    for (const Transfer::Part& part : plan_range(content, offset + done, bytes).parts) {
      if (content.is_image() && !units.insert(part.unit).second) continue;
      const geometry::Box& box = part.piece.in_extent;
      const std::uint32_t mask = block_mask(content, box.start[0], box.start[0] + box.length[0]);
      store::Room room = content.worst_case(static_cast<std::uint64_t>(std::popcount(mask)), is_small(content, end));
      if (const UnitPtr unit = core_.cache.peek(content.key_of(part.unit)); unit != nullptr) {
        const std::lock_guard lock(unit->mutex);
        room = missing(content, *unit, mask | unit->dirty_blocks, end);
      }
      sum += room;
    }
    done += bytes;
  }
  return sum;
}

// All that the range covers is stored: writing it gives as many blocks back as it takes. Blocks that are dirty have
// been promised theirs.
Result<bool> Writer::replaces_only(Content& content, std::uint64_t offset, std::uint64_t length) {
  if (offset + length > content.size.load(std::memory_order_acquire)) return false;
  {
    const std::lock_guard lock(content.state_mutex);
    if (content.linked_inline) return offset + length <= MDFS_MAX_INLINE;
  }
  const std::uint64_t pass = pass_bytes(content);
  for (std::uint64_t done = 0; done < length; done += pass)
    for (const Transfer::Part& part : plan_range(content, offset + done, std::min(length - done, pass)).parts) {
      if (content.is_image()) {
        MDFS_TRY_ASSIGN(const StoredExtent extent, core_.records.extent(content, part.piece.extent, false));
        // What lies in strips may take less room than it will.
        if (!extent.has_record() && extent.blocks() * content.block_size < content.capacity_bytes) return false;
        continue;
      }
      const geometry::Box& box = part.piece.in_extent;
      std::uint32_t mask = block_mask(content, box.start[0], box.start[0] + box.length[0]);
      if (const UnitPtr unit = core_.cache.peek(content.key_of(part.unit)); unit != nullptr) {
        const std::lock_guard lock(unit->mutex);
        mask &= ~unit->dirty_blocks;
      }
      MDFS_TRY_ASSIGN(const format::FileCell cell, core_.records.cell(content, part.unit));
      for (unsigned block = 0; block < 32; ++block)
        if ((mask >> block & 1) != 0 && !cell.find(block)) return false;
    }
  return true;
}

Result<store::Reservation> Writer::promise(Content& content, std::uint64_t offset, std::uint64_t length,
                                           store::Purpose purpose) {
  const auto refused = [](const Result<store::Reservation>& promised) {
    return !promised.ok() && promised.error().code == Errc::kNoSpace;
  };
  // What is not needed goes back after the write.
  Result<store::Reservation> promised = core_.store.reserve(most_needed(content, offset, length), purpose);
  if (!refused(promised)) return promised;
  promised = core_.store.reserve(needed(content, offset, length), purpose);
  if (!refused(promised)) return promised;
  // Dirty units take less once they have been written.
  if (!write_back_.write_back_all(0).ok()) return promised;
  promised = core_.store.reserve(needed(content, offset, length), purpose);
  if (!refused(promised) || purpose != store::Purpose::kNormal) return promised;
  MDFS_TRY_ASSIGN(const bool replaces, replaces_only(content, offset, length));
  return replaces ? core_.store.reserve(needed(content, offset, length), store::Purpose::kPromised)
                  : std::move(promised);
}

Status Writer::write_parts(Content& content, std::uint64_t offset, ConstBytes from, std::uint64_t end,
                           store::Reservation& promise, const Stop& stop) {
  for (std::uint64_t done = 0; done < from.size();) {
    const std::uint64_t bytes = std::min<std::uint64_t>(from.size() - done, pass_bytes(content));
    const Transfer transfer = plan_range(content, offset + done, bytes);
    // A byte may make a whole unit dirty.
    const std::size_t turn = std::min(kTurnBytes, core_.writes.limit_bytes());
    const std::size_t at_once = std::max<std::size_t>(1, turn / content.capacity_bytes);
    for (std::size_t next = 0; next < transfer.parts.size();) {
      const std::size_t last = std::min(next + at_once, transfer.parts.size());
      MDFS_TRY_ASSIGN(const ByteBudget::Share share, write_back_.admit((last - next) * content.capacity_bytes, stop));
      for (; next < last; ++next)
        MDFS_TRY(write_part(content, transfer, transfer.parts[next], from.subspan(done, bytes), end, promise));
    }
    done += bytes;
  }
  return {};
}

// Is there nothing on the disks under this unit? Then all of it is known. The unit is locked before and after.
Status Writer::find_hole(Content& content, const UnitPtr& unit, const geometry::Coord& coord,
                         std::unique_lock<std::mutex>& lock) {
  unit->loading = true;
  lock.unlock();
  Result<bool> exists = [&]() -> Result<bool> {
    if (content.is_image()) {
      MDFS_TRY_ASSIGN(const StoredExtent extent, core_.records.extent(content, coord, false));
      return !extent.is_hole();
    }
    if (unit->key.index == 0) {
      const std::lock_guard state(content.state_mutex);
      if (content.linked_inline) return true;
    }
    MDFS_TRY_ASSIGN(const format::FileCell cell, core_.records.cell(content, unit->key.index));
    return !cell.empty();
  }();
  lock.lock();
  unit->loading = false;
  unit->changed.notify_all();
  MDFS_TRY(exists);
  unit->known_on_disk = *exists;
  if (*exists || unit->complete) return {};
  for (const ByteRanges::Range& gap : unit->valid.gaps(0, static_cast<std::uint32_t>(unit->buffer.size())))
    std::memset(unit->buffer.data() + gap.begin, 0, gap.end - gap.begin);
  unit->complete = true;
  unit->valid.clear();
  return {};
}

Status Writer::make_ready(Content& content, const UnitPtr& unit, const Transfer::Part& part, std::uint64_t end,
                          std::unique_lock<std::mutex>& lock, bool& whole) {
  while (true) {
    unit->changed.wait(lock, [&] { return !unit->loading; });
    // A small part is added to what is valid whether there is a hole under it or not, also where it is all that an
    // image that grows has of the unit so far: zeros for all of the unit would take longer than the part.
    const bool small = content.may_have_strips && 2 * part_bytes(content, part) <= content.unit_bytes;
    const std::uint64_t size = std::max(content.size.load(std::memory_order_acquire), end);
    const geometry::ByteGeometry shape =
        small ? content.planned_shape(size, part.piece.extent) : content.shape_for(size);
    whole = content.is_image() && is_whole(content, shape, part);
    if (part_bytes(content, part) == content.unit_bytes) whole = true;
    if (unit->complete || (whole && unit->valid.ranges().empty())) return {};
    whole = whole && part_bytes(content, part) == content.unit_bytes;
    if (whole) return {};
    if (!unit->known_on_disk && !small) {
      MDFS_TRY(find_hole(content, unit, part.piece.extent, lock));
      continue;
    }
    if (unit->valid.ranges().size() + ranges_under(content, with_padding(content, part)).size() <= kMaxRanges)
      return {};
    lock.unlock();
    MDFS_TRY(loader_.load_whole(content, {{unit, part.piece.extent}}));
    lock.lock();
  }
}

// The unit's own buffer, large enough, and nobody else's. Bytes that are not valid may be anything; they are zeros in
// new memory of cells, whose buffers grow, and where the unit is about to become `complete`.
void Writer::make_writable(const Content& content, Unit& unit, std::uint64_t bytes, bool complete) {
  std::size_t size = content.capacity_bytes;
  if (!content.is_image())
    size = std::min<std::size_t>(size, std::bit_ceil(std::max<std::uint64_t>(bytes, content.block_size)));
  size = std::max(size, unit.buffer.size());
  if (unit.buffer && unit.buffer.size() == size && unit.buffer.unique()) return;
  BufferRef own = core_.cache.acquire(size);
  const std::size_t old = unit.buffer.size();
  if (content.is_image() && !unit.complete && !complete) {
    for (const ByteRanges::Range& range : unit.valid.ranges())
      std::memcpy(own.data() + range.begin, unit.buffer.data() + range.begin, range.end - range.begin);
    std::memset(own.data() + content.unit_bytes, 0, size - content.unit_bytes);
    unit.buffer = std::move(own);
    return;
  }
  if (old > 0) std::memcpy(own.data(), unit.buffer.data(), old);
  std::memset(own.data() + old, 0, size - old);
  unit.buffer = std::move(own);
}

namespace {

// Where the part lies in the array.
geometry::Box box_of(const Content& content, const Transfer::Part& part) {
  geometry::Box box = part.piece.in_extent;
  for (unsigned axis = 0; axis < content.rank; ++axis)
    box.start[axis] += part.piece.extent[axis] * content.array().extent[axis];
  return box;
}

}  // namespace

bool Writer::is_wanted(const Content& content, const Transfer::Part& part) {
  return content.versions.any() && !content.versions.wanting(part.unit, box_of(content, part)).empty();
}

// Versions of windows that are read at this moment keep the unit as it is: all of it in memory. The unit is locked
// before and after.
void Writer::keep_for_versions(Content& content, const UnitPtr& unit, const Transfer::Part& part,
                               std::unique_lock<std::mutex>& lock) {
  constexpr unsigned kTries = 4;  // the unit may leave memory while it is not locked
  for (unsigned i = 0; i <= kTries && content.versions.any(); ++i) {
    unit->changed.wait(lock, [&] { return !unit->loading; });
    const auto versions = content.versions.wanting(part.unit, box_of(content, part));
    if (versions.empty()) return;
    if (unit->complete || i == kTries) {
      for (const std::shared_ptr<WindowVersion>& version : versions) version->keep(*unit, nullptr, nullptr);
      return;
    }
    lock.unlock();
    const Status loaded = loader_.load_whole(content, {{unit, part.piece.extent}});
    lock.lock();
    if (loaded.ok()) continue;
    for (const std::shared_ptr<WindowVersion>& version : versions) version->give_up();  // the writer needs none of it
  }
}

Status Writer::write_part(Content& content, const Transfer& transfer, const Transfer::Part& part, ConstBytes from,
                          std::uint64_t end, store::Reservation& promise) {
  const UnitKey key = content.key_of(part.unit);
  UnitPtr unit = core_.cache.find(key);
  if (unit == nullptr) unit = core_.cache.find_or_create(key);
  const geometry::Box& box = part.piece.in_extent;
  const std::uint64_t last = box.start[0] + box.length[0];
  WriteBack::Change change;
  change.blocks = block_mask(content, box.start[0], last);
  change.bytes = part_bytes(content, part);
  if (content.is_image()) change.changed = changed_by(content, box);

  std::unique_lock lock(unit->mutex);
  bool whole = false;
  const auto room = [&] { return missing(content, *unit, unit->dirty_blocks | change.blocks, end); };
  do {
    keep_for_versions(content, unit, part, lock);
    MDFS_TRY(make_ready(content, unit, part, end, lock, whole));
    while (!room().less(promise.room()).empty()) {  // the unit has been written back since it was looked at
      const store::Room more_needed = room().less(promise.room());
      lock.unlock();
      MDFS_TRY_ASSIGN(store::Reservation more, core_.store.reserve(more_needed, store::Purpose::kPromised));
      promise.absorb(std::move(more));
      lock.lock();
      MDFS_TRY(make_ready(content, unit, part, end, lock, whole));
    }
  } while (is_wanted(content, part));  // by a version that has begun while the lock was given up
  change.promise = promise.split(room());

  if (whole && !unit->complete) unit->buffer = BufferRef();  // what it held is not needed
  make_writable(content, *unit, last, whole);
  const geometry::Box known = with_padding(content, part);
  if (!unit->complete && known.length != box.length)
    geometry::fill_box(content.rank, known.length, std::byte{0}, unit->buffer.bytes(), content.array().extent,
                       known.start);
  copy_in(content, transfer, part, from, unit->buffer);
  if (whole) {
    unit->complete = true;
    unit->valid.clear();
  } else if (!unit->complete) {
    for (const ByteRanges::Range& range : ranges_under(content, known)) unit->valid.add(range.begin, range.end);
    if (unit->valid.covers(0, content.unit_bytes)) {
      unit->complete = true;
      unit->valid.clear();
    }
  }
  content.grow(end);
  write_back_.note_change(content, unit, std::move(change));
  return {};
}

}  // namespace mdfs::engine
