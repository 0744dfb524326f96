// Window writes: staged unseen by readers, published in one transaction, exchanged in the cache at once.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/checked.h"
#include "engine/map/written_extents.h"
#include "engine/write/replaced.h"
#include "engine/write/replacer.h"
#include "engine/write/window_rows.h"
#include "geometry/copy_box.h"

namespace mdfs::engine {

WriteBackLocks::WriteBackLocks(OpenObject& object, const GridBox& box) {
  std::vector<CacheBlockPtr> dirty;
  {
    const std::lock_guard lock(object.state_mutex);
    const auto first =
        object.dirty_cache_blocks.lower_bound(checked_mul(box.first[0], object.extents_in_row()).value_or(UINT64_MAX));
    for (auto block = first; block != object.dirty_cache_blocks.end(); ++block) {
      const geometry::Coord coord = object.extent_coord(block->first);
      if (coord[0] >= box.last[0]) break;
      if (box.contains(object.rank, coord)) dirty.push_back(block->second);
    }
  }
  for (CacheBlockPtr& block : dirty) {
    std::unique_lock lock(block->mutex);
    block->changed.wait(lock, [&] { return !block->write_locked; });
    if (!block->dirty) continue;
    block->write_locked = true;
    blocks_.push_back(std::move(block));
  }
}

WriteBackLocks::~WriteBackLocks() {
  for (const CacheBlockPtr& block : blocks_) {
    const std::lock_guard lock(block->mutex);
    block->write_locked = false;
    block->changed.notify_all();
  }
}

Result<BufferRef> Replacer::copy_of(OpenObject& object, const CacheBlockPtr& block) {
  BufferRef now;
  MDFS_TRY(loader_.load(object, {{block, object.extent_coord(block->key.index), {{0, object.extent_bytes}}}},
                        [&](std::size_t, const BufferRef& buffer) { now = buffer; }));
  if (!now) return now;
  BufferRef copy = core_.cache.acquire(now.size());
  std::memcpy(copy.data(), now.data(), now.size());
  return copy;
}

struct Replacer::WindowJob {
  const geometry::Window& window;
  const WindowSource& from;
  geometry::Box box;
  geometry::ByteGeometry shape{};  // with the size that the image will have
  std::uint64_t end = 0;           // one past the window's last byte in the canonical file
  bool keep = false;               // the new contents stay in the cache
  bool replaces = false;           // only extents that are stored, and the volume is full
  bool frees = false;              // extents become holes
  bool stores_zeros = false;       // extents of zeros are no holes
  store::Reservation reservation{};
  std::vector<Staged> batch{};   // built
  std::vector<Staged> staged{};  // written to the disks
};

namespace {

std::uint64_t canonical_end(const geometry::ByteGeometry& shape, const geometry::Box& box) {
  std::uint64_t last = 0;
  for (unsigned axis = 0; axis < shape.rank; ++axis)
    last = (axis == 0 ? 0 : last * shape.shape[axis]) + box.start[axis] + box.length[axis] - 1;
  return last + 1;
}

// A piece of a band, as a box of the image.
geometry::Box box_of(const geometry::Box& band, const geometry::Piece& piece) {
  geometry::Box box{band.start, piece.in_extent.length};
  for (unsigned axis = 0; axis < geometry::kMaxRank; ++axis) box.start[axis] += piece.in_box[axis];
  return box;
}

bool is_of(const ReadyExtent& ready, const OpenObject& object, const BufferRef& extent) {
  return !object.is_raw() && ready.decoded.size() == object.extent_bytes &&
         std::memcmp(ready.decoded.data(), extent.data(), object.extent_bytes) == 0;
}

constexpr std::uint64_t kBandExtents = 4096;  // whose pieces are planned at once

// The window's box in bands of at most `band_bytes` (of one row of extents, and at least one extent), in order.
template <typename Visit>
Status each_band(const OpenObject& object, const geometry::Box& box, std::uint64_t band_bytes, Visit&& visit) {
  const geometry::ByteGeometry& array = object.array();
  const unsigned fast = object.rank - 1;
  std::uint64_t thickness = 1;  // samples of a band across the fastest axis
  for (unsigned axis = 0; axis < fast; ++axis) thickness *= std::min(array.extent[axis], box.length[axis]);
  const std::uint64_t extents_long =
      std::clamp<std::uint64_t>(band_bytes / (thickness * array.extent[fast]), 1, kBandExtents);

  const GridBox grid = extents_under(object, box);
  geometry::Coord at = grid.first;
  while (true) {
    geometry::Box band;
    for (unsigned axis = 0; axis <= fast; ++axis) {
      const std::uint64_t count = axis == fast ? extents_long : 1;
      const std::uint64_t begin = std::max(at[axis] * array.extent[axis], box.start[axis]);
      const std::uint64_t end = std::min((at[axis] + count) * array.extent[axis], box.start[axis] + box.length[axis]);
      band.start[axis] = begin;
      band.length[axis] = end - begin;
    }
    MDFS_TRY(visit(band));
    unsigned axis = fast;
    at[axis] += extents_long;
    while (at[axis] >= grid.last[axis]) {
      if (axis == 0) return {};
      at[axis] = grid.first[axis];
      ++at[--axis];
    }
  }
}

}  // namespace

// Windows are published with all that their extents hold. If something had been written elsewhere, all is published
// before, with the size: what one write has brought to some extents under the window and to others stays together.
Status Replacer::write_others(OpenObject& object, const WindowJob& job) {
  if (canonical_end(object.array(), job.box) > object.size.load(std::memory_order_acquire))
    MDFS_TRY(clear_beyond_end(object));
  const GridBox grid = extents_under(object, job.box);
  bool others = false;
  {
    const std::lock_guard lock(object.state_mutex);
    others = object.published_size < object.size.load(std::memory_order_acquire) ||
             std::any_of(object.dirty_cache_blocks.begin(), object.dirty_cache_blocks.end(), [&](const auto& dirty) {
               return !grid.contains(object.rank, object.extent_coord(dirty.first));
             });
  }
  return others ? write_back_.write_back(object) : Status{};
}

// Extents that the source writes to.
Result<std::uint64_t> Replacer::extents_written(const OpenObject& object, const WindowJob& job, const Stop& stop) {
  if (job.from.is_whole()) return geometry::piece_count(object.array(), job.box);
  std::uint64_t extents = 0;
  const auto count = [&](const geometry::Box& band) -> Status {
    MDFS_TRY(stopped(stop));
    if (WindowRows(object, job.window, job.box, band).written_bytes(job.from) == 0) return {};
    for (const geometry::Piece& piece : geometry::decompose(object.array(), band))
      if (WindowRows(object, job.window, job.box, box_of(band, piece)).written_bytes(job.from) > 0) ++extents;
    return {};
  };
  MDFS_TRY(each_band(object, job.box, kBandBytes, count));
  return extents;
}

// Is there a record of every extent under the box?
Result<bool> Replacer::replaces_stored(OpenObject& object, const geometry::Box& box) {
  bool all = true;
  const auto look = [&](const geometry::Box& band) -> Status {
    if (!all) return {};
    for (const geometry::Piece& piece : geometry::decompose(object.array(), band)) {
      MDFS_TRY_ASSIGN(const MappedExtent extent, core_.extent_map.extent(object, piece.extent, false));
      all = all && extent.has_record();
    }
    return {};
  };
  MDFS_TRY(each_band(object, box, kBandBytes, look));
  return all;
}

// Staged extents stay in memory until they are published: a quarter of the budget for each change.
std::uint64_t Replacer::most_extents_at_once() const {
  return std::clamp<std::uint64_t>(core_.options.cache_bytes / 4 / kStagedBytes, kLeastExtents, kMostExtents);
}

Status Replacer::write_window(OpenObject& object, const geometry::Window& window, const WindowSource& from,
                              const Stop& stop, bool stores_zeros) {
  if (!object.is_image()) return {Errc::kNotImage, "window of an ordinary file"};
  return write_without_failed_disks([&] { return write_at_once(object, window, from, stop, stores_zeros); });
}

Status Replacer::write_at_once(OpenObject& object, const geometry::Window& window, const WindowSource& from,
                               const Stop& stop, bool stores_zeros) {
  WindowJob job{
      .window = window, .from = from, .box = geometry::byte_box(*object.image, window), .stores_zeros = stores_zeros};
  if (geometry::piece_count(object.array(), job.box) > most_extents_at_once())
    return {Errc::kTooBig, fmt::format("a window of more than {} extents cannot be written at once: the option cache "
                                       "decides how many",
                                       most_extents_at_once())};
  MDFS_TRY_ASSIGN(const std::uint64_t coords, extents_written(object, job, stop));
  if (coords == 0) return {};
  MDFS_TRY(write_others(object, job));
  MDFS_TRY(write_back_.wait_for_room(stop));
  const store::SpaceAmount amount = object.worst_case_data(coords);
  Result<store::Reservation> reservation = core_.store.reserve(amount, store::Purpose::kNormal);
  if (!reservation.ok() && reservation.error().code == Errc::kNoSpace && write_back_.write_back_all(0).ok())
    reservation = core_.store.reserve(amount, store::Purpose::kNormal);
  if (!reservation.ok() && reservation.error().code == Errc::kNoSpace) {
    // A window that only replaces stored extents frees as many blocks as it takes.
    MDFS_TRY_ASSIGN(const bool replaces, replaces_stored(object, job.box));
    if (replaces) reservation = core_.store.reserve(amount, store::Purpose::kReserved);
    job.replaces = replaces;
  }
  MDFS_TRY_ASSIGN(job.reservation, std::move(reservation));

  const GridBox grid = extents_under(object, job.box);
  const RangeLock::Hold hold(object.range_lock, object.rank, grid, RangeLock::Mode::kExclusive);
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  job.end = canonical_end(object.array(), job.box);
  job.shape = object.shape_for(std::max(size, job.end));
  if (job.box.start[0] + job.box.length[0] > object.shape_for(size).shape[0])
    return {Errc::kOutOfRange, "the image has become smaller than the window"};
  job.keep = coords * object.capacity_bytes <= core_.options.cache_bytes / 8;

  const WriteBackLocks locks(object, grid);
  Status status = each_band(object, job.box, kBandBytes, [&](const geometry::Box& band) -> Status {
    MDFS_TRY(stopped(stop));
    return build_band(object, job, band, stop);
  });
  if (status.ok()) status = stage_batch(object, job, job.keep, stop);
  if (status.ok()) status = publish_window(object, job);
  if (!status.ok()) abandon(core_, job.staged);
  return status;
}

Status Replacer::build_band(OpenObject& object, WindowJob& job, const geometry::Box& band, const Stop& stop) {
  const WindowRows rows(object, job.window, job.box, band);
  if (rows.written_bytes(job.from) == 0) return {};
  const BufferRef source = core_.cache.acquire(rows.bytes());
  const MutableBytes source_bytes = source.bytes().first(rows.bytes());
  MDFS_TRY(read_band(job, rows, source_bytes));

  std::vector<geometry::Piece> pieces = geometry::decompose(object.array(), band);
  std::erase_if(pieces, [&](const geometry::Piece& piece) {
    return WindowRows(object, job.window, job.box, box_of(band, piece)).written_bytes(job.from) == 0;
  });
  // So many at once as a batch may hold.
  const std::size_t at_once = std::clamp<std::size_t>(core_.batch_bytes() / object.capacity_bytes, 1, kLoadedAtOnce);
  for (std::size_t done = 0; done < pieces.size(); done += at_once) {
    MDFS_TRY(stopped(stop));
    const auto some = std::span<const geometry::Piece>(pieces).subspan(done, std::min(at_once, pieces.size() - done));
    MDFS_TRY(build_pieces(object, job, band, source_bytes, some));
    if (job.batch.size() * object.capacity_bytes >= core_.batch_bytes())
      MDFS_TRY(stage_batch(object, job, job.keep, stop));
  }
  return {};
}

Status Replacer::build_pieces(OpenObject& object, WindowJob& job, const geometry::Box& band, ConstBytes source,
                              std::span<const geometry::Piece> pieces) {
  std::vector<CacheBlockPtr> partial(pieces.size());
  std::vector<std::pair<CacheBlockPtr, geometry::Coord>> to_load;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (replaces_extent(object, job, band, pieces[i])) continue;
    partial[i] = core_.cache.find_or_create(object.key_of(object.extent_index(pieces[i].extent)));
    to_load.emplace_back(partial[i], pieces[i].extent);
  }
  MDFS_TRY(loader_.load_whole(object, to_load));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Staged staged;
    staged.index = object.extent_index(pieces[i].extent);
    staged.coord = pieces[i].extent;
    staged.stores_zeros = job.stores_zeros;
    if (partial[i] != nullptr) {
      MDFS_TRY_ASSIGN(staged.decoded, copy_of(object, partial[i]));
    }
    if (!staged.decoded) {
      staged.decoded = core_.cache.acquire(object.capacity_bytes);
      std::memset(staged.decoded.data(), 0, staged.decoded.size());
    }
    overlay(object, job, band, source, pieces[i], staged.decoded);
    if (const auto& ready = job.from.offered(); ready && is_of(*ready, object, staged.decoded))
      staged.frame = ready->frame;
    job.batch.push_back(std::move(staged));
  }
  return {};
}

// Nothing of what the extent holds now is kept.
bool Replacer::replaces_extent(const OpenObject& object, const WindowJob& job, const geometry::Box& band,
                               const geometry::Piece& piece) {
  if (job.window.channel || !is_whole(object, job.shape, {object.extent_index(piece.extent), 0, piece})) return false;
  const WindowRows rows(object, job.window, job.box, box_of(band, piece));
  return rows.written_bytes(job.from) == rows.bytes();
}

// The band's written bytes, from the window's canonical layout, in as few calls as its runs allow.
Status Replacer::read_band(const WindowJob& job, const WindowRows& rows, MutableBytes into) {
  const std::uint64_t at_once = rows.joined_rows();
  const std::uint64_t run = at_once * rows.row_bytes();
  std::uint64_t done = 0;
  for (std::uint64_t row = 0; row < rows.rows(); row += at_once) {
    const std::uint64_t offset = rows.offset(row);
    MDFS_TRY(job.from.each_written(offset, offset + run, [&](std::uint64_t begin, std::uint64_t end) {
      return job.from.read(begin, into.subspan(done + begin - offset, end - begin));
    }));
    done += run;
  }
  return {};
}

void Replacer::overlay(const OpenObject& object, const WindowJob& job, const geometry::Box& band, ConstBytes bytes,
                       const geometry::Piece& piece, const BufferRef& buffer) {
  const geometry::Coord& extent = object.array().extent;
  const geometry::Coord& length = piece.in_extent.length;
  const WindowRows rows(object, job.window, job.box, box_of(band, piece));
  if (!job.window.channel)
    return copy_written(object.rank, job.from, rows, bytes, band.length, piece.in_box, buffer.bytes(), extent,
                        piece.in_extent.start);
  // The samples of the piece are taken out, get their channel, and go back.
  const unsigned fast = object.rank - 1;
  const unsigned channels = object.image->channels;
  const unsigned element = geometry::element_bytes(object.image->type);
  geometry::Coord plane_shape = band.length, plane_start = piece.in_box, plane_length = length;
  for (geometry::Coord* coord : {&plane_shape, &plane_start, &plane_length}) (*coord)[fast] /= channels;
  const std::uint64_t count = rows.bytes() * channels;
  ByteVector samples(count), plane(count / channels);
  geometry::copy_box(object.rank, length, buffer.bytes(), extent, piece.in_extent.start, samples, length, {});
  geometry::take_channel(samples, channels, *job.window.channel, element, plane);
  copy_written(object.rank, job.from, rows, bytes, plane_shape, plane_start, plane, plane_length, {});
  geometry::put_channel(plane, channels, *job.window.channel, element, samples);
  geometry::copy_box(object.rank, length, samples, length, {}, buffer.bytes(), extent, piece.in_extent.start);
}

Status Replacer::stage_batch(OpenObject& object, WindowJob& job, bool keep, const Stop& stop) {
  MDFS_TRY(stage(core_, object, job.batch, job.reservation, stop));
  for (Staged& staged : job.batch) {
    if (!keep) staged.decoded = BufferRef();
    job.staged.push_back(std::move(staged));
  }
  job.batch.clear();
  return {};
}

Status Replacer::publish_window(OpenObject& object, WindowJob& job) {
  const ClosedBarrier closed(object.barrier);
  const std::lock_guard publishing(object.publishing);
  const Replaced replaced = note_replaced(core_, object, job.staged);
  Publisher::Pages pages;
  std::vector<Home> homes;
  std::uint64_t size = 0;
  std::uint64_t reached = 0;  // that extents may hold bytes up to
  for (const Staged& staged : job.staged) reached = std::max(reached, object.end_of(staged.index));
  const store::Purpose purpose = job.frees      ? store::Purpose::kFreeing
                                 : job.replaces ? store::Purpose::kReserved
                                                : store::Purpose::kNormal;
  Status changed = core_.store.transact(purpose, [&](store::Transaction& transaction) -> Status {
    Publisher publisher(core_, object, transaction);
    MDFS_TRY(publisher.publish(job.staged));
    {
      const std::lock_guard lock(object.state_mutex);
      size = std::max({object.published_size, job.end, std::min(object.size.load(std::memory_order_acquire), reached)});
    }
    MDFS_TRY(object.update(transaction, {size, publisher.stored_bytes_change(), false}));
    pages = publisher.pages();
    homes = publisher.homes();
    return {};
  });
  if (!changed.ok()) return changed;
  update_cached_pages(core_, object, pages);
  if (core_.options.grouping) core_.relocations.homes().note(object.number, homes);
  {
    const std::lock_guard lock(object.state_mutex);
    object.published_size = std::max(object.published_size, size);
  }
  exchange(object, job.staged, job.keep, [&] { keep_for_versions(core_, object, job.staged, replaced, job.box); });
  object.grow(job.end);
  write_back_.wake_waiters();
  return {};
}

void Replacer::exchange(OpenObject& object, const std::vector<Staged>& extents, bool keep,
                        const std::function<void()>& before) {
  const std::lock_guard swapping(object.swapping);
  before();
  object.swaps.fetch_add(1, std::memory_order_acq_rel);
  for (const Staged& staged : extents) {
    const CacheBlockKey key = object.key_of(staged.index);
    const CacheBlockPtr block = keep ? core_.cache.find_or_create(key) : core_.cache.peek(key);
    if (block == nullptr) continue;
    const std::lock_guard lock(block->mutex);
    block->buffer = keep ? staged.decoded : BufferRef();
    block->complete = keep;
    block->valid.clear();
    block->known_on_disk = staged.extent.is_stored();
    if (block->dirty) write_back_.note_clean(object, *block);
  }
  object.swaps.fetch_add(1, std::memory_order_acq_rel);
}

// ---- extents that become holes

Status Replacer::drop_some(OpenObject& object, const std::vector<geometry::Coord>& extents) {
  GridBox box{extents.front(), {}};
  std::vector<Staged> holes;
  for (const geometry::Coord& extent : extents) {
    Staged& hole = holes.emplace_back();
    hole.index = object.extent_index(extent);
    hole.coord = extent;
    for (unsigned axis = 0; axis < object.rank; ++axis) {
      box.first[axis] = std::min(box.first[axis], extent[axis]);
      box.last[axis] = std::max(box.last[axis], extent[axis] + 1);
    }
  }
  geometry::Box bytes;
  for (unsigned axis = 0; axis < object.rank; ++axis) {
    bytes.start[axis] = box.first[axis] * object.array().extent[axis];
    bytes.length[axis] = (box.last[axis] - box.first[axis]) * object.array().extent[axis];
  }
  const geometry::Window window;
  const WindowSource nothing([](std::uint64_t, MutableBytes) { return Status(); });
  const RangeLock::Hold hold(object.range_lock, object.rank, box, RangeLock::Mode::kExclusive);
  WindowJob job{.window = window, .from = nothing, .box = bytes, .frees = true, .staged = std::move(holes)};
  return publish_window(object, job);
}

Status Replacer::drop_extents(OpenObject& object, const GridBox& box, const Stop& stop) {
  std::vector<geometry::Coord> found;
  const auto take = [&](const geometry::Coord& extent) -> Result<bool> {
    found.push_back(extent);
    if (found.size() < kItemsInTransaction) return true;
    MDFS_TRY(drop_some(object, found));
    found.clear();
    return true;
  };
  MDFS_TRY(WrittenExtents(core_, object).each_in(box, stop, take));
  return found.empty() ? Status() : drop_some(object, found);
}

}  // namespace mdfs::engine
