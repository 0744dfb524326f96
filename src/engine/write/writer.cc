// Writes of byte ranges.
// SPDX-License-Identifier: Apache-2.0
#include "engine/write/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "base/checked.h"
#include "engine/cache/slab_classes.h"
#include "engine/read/window_version.h"
#include "geometry/copy_box.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

std::uint32_t block_mask(const OpenObject& object, std::uint64_t begin, std::uint64_t end) {
  if (object.is_image() || begin >= end) return 0;
  const std::uint64_t first = begin / object.block_size;
  const std::uint64_t last = ceil_div(end, object.block_size);
  return static_cast<std::uint32_t>(((std::uint64_t{1} << last) - 1) & ~((std::uint64_t{1} << first) - 1));
}

namespace {

// Its bytes may lie in the tree after a write that ends here.
bool is_small(const OpenObject& object, std::uint64_t end) {
  return !object.is_image() && std::max(end, object.size.load(std::memory_order_acquire)) <= MDFS_MAX_INLINE;
}

GridBox rows_under(const OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  GridBox rows;
  rows.last.fill(UINT64_MAX);
  rows.first[0] = offset / object.grid_row_bytes();
  rows.last[0] = ceil_div(offset + length, object.grid_row_bytes());
  return rows;
}

// With the padding that follows it in its cache block: what lies outside the image is zero and known.
geometry::Box with_padding(const OpenObject& object, const Transfer::Part& part) {
  geometry::Box box = part.piece.in_extent;
  if (!object.is_image()) return box;
  for (unsigned axis = 1; axis < object.rank; ++axis) {
    const std::uint64_t extent = object.array().extent[axis];
    const std::uint64_t left = object.array().shape[axis] - part.piece.extent[axis] * extent;
    if (left < extent && box.start[axis] + box.length[axis] == left) box.length[axis] = extent - box.start[axis];
  }
  return box;
}

// From the first to the last byte of a box inside a cache block.
ChangedBytes changed_by(const OpenObject& object, const geometry::Box& box) {
  geometry::Coord last = box.start;
  for (unsigned axis = 0; axis < object.rank; ++axis) last[axis] += box.length[axis] - 1;
  return {object.byte_at(box.start), object.byte_at(last) + 1};
}

// Bytes of the pages from the first to the last one of a range.
std::size_t page_bytes(const ChangedBytes& range) {
  return align_up(range.end, kPageBytes) - range.begin / kPageBytes * kPageBytes;
}

std::uint64_t part_bytes(const OpenObject& object, const Transfer::Part& part) {
  std::uint64_t bytes = 1;
  for (unsigned axis = 0; axis < object.rank; ++axis) bytes *= part.piece.in_extent.length[axis];
  return bytes;
}

}  // namespace

std::uint64_t Writer::pass_bytes(const OpenObject& object) {
  if (!object.is_image()) return kPassBytes;
  return std::min(kPassBytes, kPassParts * object.array().extent[object.rank - 1]);
}

Status Writer::write(OpenObject& object, std::uint64_t offset, ConstBytes from, const Stop& stop) {
  if (from.empty()) return {};
  const std::optional<std::uint64_t> end = checked_add(offset, from.size());
  if (!end || *end > object.max_bytes)
    return {Errc::kTooBig,
            fmt::format("a write up to byte {}: must end at {} or before", offset + from.size(), object.max_bytes)};
  MDFS_TRY_ASSIGN(store::Reservation reservation, reserve(object, offset, from.size(), store::Purpose::kNormal));
  store::Reservation outgrown;
  if (WriteBack::outgrows_tree(object, *end)) {
    MDFS_TRY_ASSIGN(outgrown, core_.store.reserve(object.worst_case(1, false), store::Purpose::kNormal));
  }
  const RangeLock::Hold hold(object.range_lock, object.rank, rows_under(object, offset, from.size()),
                             RangeLock::Mode::kShared);
  MDFS_TRY(write_parts(object, offset, from, *end, reservation, stop));
  return outgrown.blocks() > 0 ? write_back_.note_outgrown(object, std::move(outgrown)) : Status{};
}

Status Writer::write_zeros(OpenObject& object, std::uint64_t offset, std::uint64_t length, store::Purpose purpose,
                           std::uint64_t size) {
  if (length == 0) return {};
  // Not the size that the file has: that may be cut, behind the part of the grid that is held, while this writes.
  const std::uint64_t end = std::max(offset + length, size);
  const BufferRef zeros = core_.cache.acquire(std::min(length, kPassBytes));
  std::memset(zeros.data(), 0, zeros.size());
  std::uint64_t pass = kPassBytes;  // less on a full volume
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t bytes = std::min(length - done, pass);
    Result<store::Reservation> reservation = reserve(object, offset + done, bytes, purpose);
    if (!reservation.ok() && reservation.error().code == Errc::kNoSpace && bytes > 1) {
      pass = bytes / 2;
      continue;
    }
    if (!reservation.ok()) return reservation.error();
    MDFS_TRY(write_parts(object, offset + done, ConstBytes(zeros.bytes()).first(bytes), end, *reservation, {}));
    done += bytes;
  }
  return {};
}

Status Writer::zero_extent(OpenObject& object, const HeldExtent& held, std::uint64_t end, store::Purpose purpose) {
  Transfer transfer;
  std::uint64_t most = 0;
  for (const geometry::Piece& piece : held.pieces) {
    Transfer::Region region{piece.in_extent.length, 0, 1};
    for (unsigned axis = 0; axis < object.rank; ++axis) region.bytes *= region.shape[axis];
    most = std::max(most, region.bytes);
    transfer.parts.push_back({held.index, static_cast<std::uint32_t>(transfer.regions.size()), piece});
    transfer.parts.back().piece.in_box = {};
    transfer.regions.push_back(region);
  }
  if (most == 0) return {};
  const BufferRef zeros = core_.cache.acquire(most);
  std::memset(zeros.data(), 0, zeros.size());
  const store::SpaceAmount amount = object.worst_case(0, false);
  Result<store::Reservation> reservation = core_.store.reserve(amount, purpose);
  if (!reservation.ok() && reservation.error().code == Errc::kNoSpace && write_back_.write_back_all(0).ok())
    reservation = core_.store.reserve(amount, purpose);
  if (!reservation.ok()) return reservation.error();
  MDFS_TRY_ASSIGN(const ByteBudget::Share share, write_back_.admit(object.capacity_bytes, {}));
  for (const Transfer::Part& part : transfer.parts)
    MDFS_TRY(write_part(object, transfer, part, zeros.bytes(), end, *reservation));
  return {};
}

store::SpaceAmount Writer::missing(const OpenObject& object, const CacheBlock& block, std::uint32_t dirty_blocks,
                                   std::uint64_t end) {
  return object.worst_case(static_cast<std::uint64_t>(std::popcount(dirty_blocks)), is_small(object, end))
      .less(block.reserved);
}

// Without a look at what is dirty already.
store::SpaceAmount Writer::most_needed(const OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  std::uint64_t extents = 0;
  if (object.is_image()) {
    extents = count_parts(object, offset, length);
    const store::SpaceAmount one = object.worst_case(0, false);
    return {extents * one.blocks, extents * one.items, extents * one.bytes, extents * one.pairs};
  }
  extents = ceil_div(offset + length, object.extent_bytes) - offset / object.extent_bytes;
  const std::uint64_t blocks = ceil_div(offset + length, object.block_size) - offset / object.block_size;
  store::SpaceAmount amount = object.worst_case(blocks, is_small(object, offset + length));
  const store::SpaceAmount none = object.worst_case(0, false);
  amount += {0, (extents - 1) * none.items, (extents - 1) * none.bytes};
  return amount;
}

// An upper bound for the write-back of the range, less the reservations of its dirty cache blocks.
store::SpaceAmount Writer::needed(OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t end = offset + length;
  store::SpaceAmount sum;
  std::set<std::uint64_t> extents;  // a range of an image may touch a cache block in several parts
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t bytes = std::min(length - done, pass_bytes(object));
    for (const Transfer::Part& part : plan_range(object, offset + done, bytes).parts) {
      if (object.is_image() && !extents.insert(part.extent).second) continue;
      const geometry::Box& box = part.piece.in_extent;
      const std::uint32_t mask = block_mask(object, box.start[0], box.start[0] + box.length[0]);
      store::SpaceAmount amount =
          object.worst_case(static_cast<std::uint64_t>(std::popcount(mask)), is_small(object, end));
      if (const CacheBlockPtr block = core_.cache.peek(object.key_of(part.extent)); block != nullptr) {
        const std::lock_guard lock(block->mutex);
        amount = missing(object, *block, mask | block->dirty_blocks, end);
      }
      sum += amount;
    }
    done += bytes;
  }
  return sum;
}

// All that the range covers is stored: writing it gives as many blocks back as it takes. Dirty blocks have reserved
// theirs already.
Result<bool> Writer::replaces_only(OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  if (offset + length > object.size.load(std::memory_order_acquire)) return false;
  {
    const std::lock_guard lock(object.state_mutex);
    if (object.published_inline) return offset + length <= MDFS_MAX_INLINE;
  }
  const std::uint64_t pass = pass_bytes(object);
  for (std::uint64_t done = 0; done < length; done += pass)
    for (const Transfer::Part& part : plan_range(object, offset + done, std::min(length - done, pass)).parts) {
      if (object.is_image()) {
        MDFS_TRY_ASSIGN(const MappedExtent extent, core_.extent_map.extent(object, part.piece.extent, false));
        // Bytes in strips may take fewer blocks than the whole extent will.
        if (!extent.has_record() && extent.blocks() * object.block_size < object.whole_bytes()) return false;
        continue;
      }
      const geometry::Box& box = part.piece.in_extent;
      std::uint32_t mask = block_mask(object, box.start[0], box.start[0] + box.length[0]);
      if (const CacheBlockPtr cached = core_.cache.peek(object.key_of(part.extent)); cached != nullptr) {
        const std::lock_guard lock(cached->mutex);
        mask &= ~cached->dirty_blocks;
      }
      MDFS_TRY_ASSIGN(const format::FileCell cell, core_.extent_map.cell(object, part.extent));
      for (unsigned block = 0; block < 32; ++block)
        if ((mask >> block & 1) != 0 && !cell.find(block)) return false;
    }
  return true;
}

Result<store::Reservation> Writer::reserve(OpenObject& object, std::uint64_t offset, std::uint64_t length,
                                           store::Purpose purpose) {
  const auto refused = [](const Result<store::Reservation>& reservation) {
    return !reservation.ok() && reservation.error().code == Errc::kNoSpace;
  };
  // The unneeded rest is released after the write.
  Result<store::Reservation> reservation = core_.store.reserve(most_needed(object, offset, length), purpose);
  if (!refused(reservation)) return reservation;
  reservation = core_.store.reserve(needed(object, offset, length), purpose);
  if (!refused(reservation)) return reservation;
  // Dirty cache blocks take less once they have been written.
  if (!write_back_.write_back_all(0).ok()) return reservation;
  reservation = core_.store.reserve(needed(object, offset, length), purpose);
  if (!refused(reservation) || purpose != store::Purpose::kNormal) return reservation;
  MDFS_TRY_ASSIGN(const bool replaces, replaces_only(object, offset, length));
  return replaces ? core_.store.reserve(needed(object, offset, length), store::Purpose::kReserved)
                  : std::move(reservation);
}

Status Writer::write_parts(OpenObject& object, std::uint64_t offset, ConstBytes from, std::uint64_t end,
                           store::Reservation& reservation, const Stop& stop) {
  for (std::uint64_t done = 0; done < from.size();) {
    const std::uint64_t bytes = std::min<std::uint64_t>(from.size() - done, pass_bytes(object));
    const Transfer transfer = plan_range(object, offset + done, bytes);
    // A byte may make a whole cache block dirty.
    const std::size_t turn = std::min(kTurnBytes, core_.writes.limit_bytes());
    const std::size_t at_once = std::max<std::size_t>(1, turn / object.capacity_bytes);
    for (std::size_t next = 0; next < transfer.parts.size();) {
      const std::size_t last = std::min(next + at_once, transfer.parts.size());
      MDFS_TRY_ASSIGN(const ByteBudget::Share share, write_back_.admit((last - next) * object.capacity_bytes, stop));
      for (; next < last; ++next)
        MDFS_TRY(write_part(object, transfer, transfer.parts[next], from.subspan(done, bytes), end, reservation));
    }
    done += bytes;
  }
  return {};
}

// Is there nothing on the disks under this cache block? Then all of it is known. The cache block is locked before and
// after.
Status Writer::find_hole(OpenObject& object, const CacheBlockPtr& block, const geometry::Coord& coord,
                         std::unique_lock<std::mutex>& lock) {
  block->loading = true;
  lock.unlock();
  Result<bool> exists = [&]() -> Result<bool> {
    if (object.is_image()) {
      MDFS_TRY_ASSIGN(const MappedExtent extent, core_.extent_map.extent(object, coord, false));
      return !extent.is_hole();
    }
    if (block->key.index == 0) {
      const std::lock_guard state(object.state_mutex);
      if (object.published_inline) return true;
    }
    MDFS_TRY_ASSIGN(const format::FileCell cell, core_.extent_map.cell(object, block->key.index));
    return !cell.empty();
  }();
  lock.lock();
  block->loading = false;
  block->changed.notify_all();
  MDFS_TRY(exists);
  block->known_on_disk = *exists;
  if (*exists || block->complete) return {};
  block->buffer.charge(block->buffer.size());
  for (const ByteRanges::Range& gap : block->valid.gaps(0, static_cast<std::uint32_t>(block->buffer.size())))
    std::memset(block->buffer.data() + gap.begin, 0, gap.end - gap.begin);
  block->complete = true;
  block->valid.clear();
  return {};
}

Status Writer::make_ready(OpenObject& object, const CacheBlockPtr& block, const Transfer::Part& part, std::uint64_t end,
                          std::unique_lock<std::mutex>& lock, bool& whole) {
  while (true) {
    block->changed.wait(lock, [&] { return !block->loading; });
    // A small part is added to what is valid whether there is a hole under it or not, also where it is all that an
    // image that grows has of the cache block so far: zeros for all of the cache block would take longer than the part.
    const bool small = object.may_have_strips && 2 * part_bytes(object, part) <= object.extent_bytes;
    const std::uint64_t size = std::max(object.size.load(std::memory_order_acquire), end);
    const geometry::ByteGeometry shape = small ? object.planned_shape(size, part.piece.extent) : object.shape_for(size);
    whole = object.is_image() && is_whole(object, shape, part);
    if (part_bytes(object, part) == object.extent_bytes) whole = true;
    if (block->complete || (whole && block->valid.ranges().empty())) return {};
    whole = whole && part_bytes(object, part) == object.extent_bytes;
    if (whole) return {};
    if (!block->known_on_disk && !small) {
      MDFS_TRY(find_hole(object, block, part.piece.extent, lock));
      continue;
    }
    if (block->valid.ranges().size() + ranges_under(object, with_padding(object, part)).size() <= kMaxRanges) return {};
    lock.unlock();
    MDFS_TRY(loader_.load_whole(object, {{block, part.piece.extent}}));
    lock.lock();
  }
}

// Gives the cache block of an extent that is filled in small parts a buffer whose memory grows with them: all of a slab
// of extents would otherwise need memory for its first frame. False: it is no such cache block.
bool Writer::make_sparse(const OpenObject& object, CacheBlock& block, const ChangedBytes& filled) {
  const std::size_t size = object.capacity_bytes;
  const std::size_t pages = page_bytes(filled);
  const bool has_plain = block.buffer && !block.buffer.is_sparse();
  if (!object.may_have_strips || block.complete || has_plain || pages > size / kSparseShare) return false;
  // Memory that others leave is faster as it is.
  if (!block.buffer && !core_.cache.has_room_for(size)) return false;
  if (block.buffer && block.buffer.unique()) {
    core_.cache.charge(block.buffer, pages);
    return true;
  }
  const std::size_t behind = size - object.extent_bytes;
  const std::size_t before = block.buffer ? block.buffer.charged_bytes() : behind > 0 ? kPageBytes : 0;
  BufferRef own = core_.cache.acquire_sparse(size, std::min(size, before + pages));
  block.copy_valid(own);
  if (behind > 0) std::memset(own.data() + object.extent_bytes, 0, behind);
  block.buffer = std::move(own);
  return true;
}

// Gives the cache block a buffer of its own that is large enough. Invalid bytes have any value. They are zeros in new
// memory of cells, whose buffers grow, and where the cache block is about to become `complete`.
void Writer::make_writable(const OpenObject& object, CacheBlock& block, std::uint64_t bytes, bool complete) {
  std::size_t size = object.capacity_bytes;
  if (!object.is_image())
    size = std::min<std::size_t>(size, std::bit_ceil(std::max<std::uint64_t>(bytes, object.block_size)));
  size = std::max(size, block.buffer.size());
  if (block.buffer && block.buffer.size() == size && block.buffer.unique() && !block.buffer.is_sparse()) return;
  BufferRef own = core_.cache.acquire(size);
  const std::size_t old = block.buffer.size();
  if (object.is_image() && !block.complete && !complete) {
    block.copy_valid(own);
    std::memset(own.data() + object.extent_bytes, 0, size - object.extent_bytes);
    block.buffer = std::move(own);
    return;
  }
  if (old > 0) std::memcpy(own.data(), block.buffer.data(), old);
  std::memset(own.data() + old, 0, size - old);
  block.buffer = std::move(own);
}

namespace {

// Where the part lies in the array.
geometry::Box box_of(const OpenObject& object, const Transfer::Part& part) {
  geometry::Box box = part.piece.in_extent;
  for (unsigned axis = 0; axis < object.rank; ++axis)
    box.start[axis] += part.piece.extent[axis] * object.array().extent[axis];
  return box;
}

}  // namespace

bool Writer::is_wanted(const OpenObject& object, const Transfer::Part& part) {
  return object.versions.any() && !object.versions.wanting(part.extent, box_of(object, part)).empty();
}

// Versions of windows that are read at this moment keep the cache block as it is: all of it in memory. The cache block
// is locked before and after.
void Writer::keep_for_versions(OpenObject& object, const CacheBlockPtr& block, const Transfer::Part& part,
                               std::unique_lock<std::mutex>& lock) {
  constexpr unsigned kTries = 4;  // the cache block may leave memory while it is not locked
  for (unsigned i = 0; i <= kTries && object.versions.any(); ++i) {
    block->changed.wait(lock, [&] { return !block->loading; });
    const auto versions = object.versions.wanting(part.extent, box_of(object, part));
    if (versions.empty()) return;
    if (block->complete || i == kTries) {
      for (const std::shared_ptr<WindowVersion>& version : versions) version->keep(*block, nullptr, nullptr);
      return;
    }
    lock.unlock();
    const Status loaded = loader_.load_whole(object, {{block, part.piece.extent}});
    lock.lock();
    if (loaded.ok()) continue;
    for (const std::shared_ptr<WindowVersion>& version : versions) version->give_up();  // the writer needs none of it
  }
}

Status Writer::write_part(OpenObject& object, const Transfer& transfer, const Transfer::Part& part, ConstBytes from,
                          std::uint64_t end, store::Reservation& reservation) {
  const CacheBlockKey key = object.key_of(part.extent);
  CacheBlockPtr block = core_.cache.find(key);
  if (block == nullptr) block = core_.cache.find_or_create(key);
  const geometry::Box& box = part.piece.in_extent;
  const std::uint64_t last = box.start[0] + box.length[0];
  WriteBack::Change change;
  change.blocks = block_mask(object, box.start[0], last);
  change.bytes = part_bytes(object, part);
  if (object.is_image()) change.changed = changed_by(object, box);

  std::unique_lock lock(block->mutex);
  bool whole = false;
  const auto amount = [&] { return missing(object, *block, block->dirty_blocks | change.blocks, end); };
  do {
    keep_for_versions(object, block, part, lock);
    MDFS_TRY(make_ready(object, block, part, end, lock, whole));
    // The cache block has been written back since its space was counted.
    while (!amount().less(reservation.amount()).empty()) {
      const store::SpaceAmount more_needed = amount().less(reservation.amount());
      lock.unlock();
      MDFS_TRY_ASSIGN(store::Reservation more, core_.store.reserve(more_needed, store::Purpose::kReserved));
      reservation.absorb(std::move(more));
      lock.lock();
      MDFS_TRY(make_ready(object, block, part, end, lock, whole));
    }
  } while (is_wanted(object, part));  // by a version that has begun while the lock was given up
  change.reservation = reservation.split(amount());

  if (whole && !block->complete) block->buffer = BufferRef();  // what it held is not needed
  const geometry::Box known = with_padding(object, part);
  if (whole || !object.is_image() || !make_sparse(object, *block, changed_by(object, known)))
    make_writable(object, *block, last, whole);
  if (!block->complete && known.length != box.length)
    geometry::fill_box(object.rank, known.length, std::byte{0}, block->buffer.bytes(), object.array().extent,
                       known.start);
  copy_in(object, transfer, part, from, block->buffer);
  if (whole) {
    block->complete = true;
    block->valid.clear();
  } else if (!block->complete) {
    for (const ByteRanges::Range& range : ranges_under(object, known)) block->valid.add(range.begin, range.end);
    if (block->valid.covers(0, object.extent_bytes)) {
      block->complete = true;
      block->valid.clear();
    }
  }
  object.grow(end);
  write_back_.note_change(object, block, std::move(change));
  return {};
}

}  // namespace mdfs::engine
