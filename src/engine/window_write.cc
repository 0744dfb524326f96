// Window writes: staged where nobody sees them, linked in one transaction, exchanged in the cache at once.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "engine/replacer.h"

namespace mdfs::engine {

Claims::Claims(Content& content, const GridBox& box) {
  std::vector<UnitPtr> dirty;
  {
    const std::lock_guard lock(content.state_mutex);
    const auto first =
        content.dirty_units.lower_bound(checked_mul(box.first[0], content.units_in_row()).value_or(UINT64_MAX));
    for (auto unit = first; unit != content.dirty_units.end(); ++unit) {
      const geometry::Coord coord = content.unit_coord(unit->first);
      if (coord[0] >= box.last[0]) break;
      bool inside = true;
      for (unsigned axis = 1; axis < content.rank; ++axis)
        inside = inside && coord[axis] >= box.first[axis] && coord[axis] < box.last[axis];
      if (inside) dirty.push_back(unit->second);
    }
  }
  for (UnitPtr& unit : dirty) {
    std::unique_lock lock(unit->mutex);
    unit->changed.wait(lock, [&] { return !unit->claimed; });
    if (!unit->dirty) continue;
    unit->claimed = true;
    units_.push_back(std::move(unit));
  }
}

Claims::~Claims() {
  for (const UnitPtr& unit : units_) {
    const std::lock_guard lock(unit->mutex);
    unit->claimed = false;
    unit->changed.notify_all();
  }
}

Result<BufferRef> Replacer::copy_of(Content& content, const UnitPtr& unit) {
  BufferRef now;
  MDFS_TRY(loader_.load(content, {{unit, content.unit_coord(unit->key.index), {{0, content.unit_bytes}}}},
                        [&](std::size_t, const BufferRef& buffer) { now = buffer; }));
  if (!now) return now;
  BufferRef copy = core_.cache.acquire(now.size());
  std::memcpy(copy.data(), now.data(), now.size());
  return copy;
}

struct Replacer::WindowJob {
  const geometry::Window& window;
  const Engine::WindowSource& from;
  geometry::Box box;
  geometry::ByteGeometry shape;  // with the size that the image will have
  std::uint64_t end = 0;         // one past the window's last byte in the canonical file
  bool keep = false;             // the new contents stay in the cache
  store::Reservation reservation;
  std::vector<Staged> batch;   // built
  std::vector<Staged> staged;  // written to the disks
};

namespace {

std::uint64_t canonical_end(const geometry::ByteGeometry& shape, const geometry::Box& box) {
  std::uint64_t last = 0;
  for (unsigned axis = 0; axis < shape.rank; ++axis)
    last = (axis == 0 ? 0 : last * shape.shape[axis]) + box.start[axis] + box.length[axis] - 1;
  return last + 1;
}

}  // namespace

Status Replacer::write_window(Content& content, const geometry::Window& window, const Engine::WindowSource& from) {
  if (!content.is_image()) return {Errc::kNotImage, "window of an ordinary file"};
  WindowJob job{window, from, geometry::byte_box(*content.image, window), {}, 0, false, {}, {}, {}};
  const std::uint64_t units = geometry::piece_count(content.array(), job.box);
  if (units == 0) return {};
  if (units > kMaxWindowUnits)
    return {Errc::kTooBig, "a window of more than 4194304 extents cannot be written at once"};
  MDFS_TRY(write_back_.wait_for_room());
  Result<store::Reservation> promised = core_.store.reserve(units * content.worst_case_blocks());
  if (!promised.ok() && promised.error().code == Errc::kNoSpace && write_back_.write_back_all(0).ok())
    promised = core_.store.reserve(units * content.worst_case_blocks());
  MDFS_TRY_ASSIGN(job.reservation, std::move(promised));

  const GridBox grid = units_under(content, job.box);
  const GridLock::Hold hold(content.writers, content.rank, grid, GridLock::Mode::kExclusive);
  const std::uint64_t size = content.size.load(std::memory_order_acquire);
  job.end = canonical_end(content.array(), job.box);
  job.shape = content.shape_for(std::max(size, job.end));
  if (job.box.start[0] + job.box.length[0] > content.shape_for(size).shape[0])
    return {Errc::kOutOfRange, "the image has become smaller than the window"};
  job.keep = units * content.capacity_bytes <= core_.options.cache_bytes / 8;

  const Claims claims(content, grid);
  Status status = build_window(content, job);
  if (status.ok()) status = link_window(content, job);
  if (!status.ok()) abandon(core_, job.staged);
  return status;
}

// Goes through the window in bands: one row of units, as long as a band of memory allows.
Status Replacer::build_window(Content& content, WindowJob& job) {
  const geometry::ByteGeometry& array = content.array();
  const unsigned fast = content.rank - 1;
  std::uint64_t thickness = 1;  // samples of a band across the fastest axis
  for (unsigned axis = 0; axis < fast; ++axis) thickness *= std::min(array.extent[axis], job.box.length[axis]);
  const std::uint64_t units_long = std::max<std::uint64_t>(1, kBandBytes / (thickness * array.extent[fast]));

  const GridBox grid = units_under(content, job.box);
  geometry::Coord at = grid.first;
  while (true) {
    geometry::Box band;
    for (unsigned axis = 0; axis <= fast; ++axis) {
      const std::uint64_t count = axis == fast ? units_long : 1;
      const std::uint64_t begin = std::max(at[axis] * array.extent[axis], job.box.start[axis]);
      const std::uint64_t end =
          std::min((at[axis] + count) * array.extent[axis], job.box.start[axis] + job.box.length[axis]);
      band.start[axis] = begin;
      band.length[axis] = end - begin;
    }
    MDFS_TRY(build_band(content, job, band));
    unsigned axis = fast;
    at[axis] += units_long;
    while (at[axis] >= grid.last[axis]) {
      if (axis == 0) return stage_batch(content, job, job.keep);
      at[axis] = grid.first[axis];
      ++at[--axis];
    }
  }
}

Status Replacer::build_band(Content& content, WindowJob& job, const geometry::Box& band) {
  const std::uint64_t divisor = job.window.channel ? content.image->channels : 1;
  std::uint64_t bytes = 1;
  for (unsigned axis = 0; axis < content.rank; ++axis) bytes *= band.length[axis];
  const BufferRef source = core_.cache.acquire(bytes / divisor);
  const MutableBytes source_bytes = source.bytes().first(bytes / divisor);
  MDFS_TRY(read_band(content, job, band, source_bytes));

  const std::vector<geometry::Piece> pieces = geometry::decompose(content.array(), band);
  std::vector<UnitPtr> partial(pieces.size());
  std::vector<std::pair<UnitPtr, geometry::Coord>> to_load;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::uint64_t index = content.unit_index(pieces[i].extent);
    if (!job.window.channel && is_whole(content, job.shape, {index, 0, pieces[i]})) continue;
    partial[i] = core_.cache.find_or_create(content.key_of(index));
    to_load.emplace_back(partial[i], pieces[i].extent);
  }
  MDFS_TRY(loader_.load_whole(content, to_load));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Staged staged;
    staged.index = content.unit_index(pieces[i].extent);
    staged.coord = pieces[i].extent;
    if (partial[i] != nullptr) {
      MDFS_TRY_ASSIGN(staged.content, copy_of(content, partial[i]));
    }
    if (!staged.content) {
      staged.content = core_.cache.acquire(content.capacity_bytes);
      std::memset(staged.content.data(), 0, staged.content.size());
    }
    overlay(content, job, band, source_bytes, pieces[i], staged.content);
    job.batch.push_back(std::move(staged));
  }
  return job.batch.size() * content.capacity_bytes < core_.batch_bytes() ? Status{}
                                                                         : stage_batch(content, job, job.keep);
}

// The band's bytes, from the window's canonical layout, in as few calls as its runs allow.
Status Replacer::read_band(const Content& content, const WindowJob& job, const geometry::Box& band, MutableBytes into) {
  const std::uint64_t divisor = job.window.channel ? content.image->channels : 1;
  const unsigned pad = geometry::kMaxRank - content.rank;
  geometry::Coord whole{1, 1, 1}, first{}, length{1, 1, 1};  // padded in front to three axes; the window's, the band's
  for (unsigned axis = 0; axis < content.rank; ++axis) {
    const std::uint64_t by = axis + 1 == content.rank ? divisor : 1;
    whole[axis + pad] = job.box.length[axis] / by;
    first[axis + pad] = (band.start[axis] - job.box.start[axis]) / by;
    length[axis + pad] = band.length[axis] / by;
  }
  const bool whole_rows = length[2] == whole[2];
  const std::uint64_t run = whole_rows ? length[1] * length[2] : length[2];
  std::uint64_t done = 0;
  for (std::uint64_t z = 0; z < length[0]; ++z)
    for (std::uint64_t y = 0; y < (whole_rows ? 1 : length[1]); ++y) {
      const std::uint64_t offset = ((first[0] + z) * whole[1] + first[1] + y) * whole[2] + first[2];
      MDFS_TRY(job.from(offset, into.subspan(done, run)));
      done += run;
    }
  return {};
}

void Replacer::overlay(const Content& content, const WindowJob& job, const geometry::Box& band, ConstBytes bytes,
                       const geometry::Piece& piece, const BufferRef& unit) {
  const geometry::Coord& extent = content.array().extent;
  const geometry::Coord& length = piece.in_extent.length;
  if (!job.window.channel) {
    geometry::copy_box(content.rank, length, bytes, band.length, piece.in_box, unit.bytes(), extent,
                       piece.in_extent.start);
    return;
  }
  // The samples of the piece are taken out, get their channel, and go back.
  const unsigned fast = content.rank - 1;
  const unsigned channels = content.image->channels;
  geometry::Coord plane_shape = band.length, plane_start = piece.in_box, plane_length = length;
  for (geometry::Coord* coord : {&plane_shape, &plane_start, &plane_length}) (*coord)[fast] /= channels;
  std::uint64_t count = 1;
  for (unsigned axis = 0; axis < content.rank; ++axis) count *= length[axis];
  ByteVector samples(count), plane(count / channels);
  geometry::copy_box(content.rank, length, unit.bytes(), extent, piece.in_extent.start, samples, length, {});
  geometry::copy_box(content.rank, plane_length, bytes, plane_shape, plane_start, plane, plane_length, {});
  geometry::put_channel(plane, channels, *job.window.channel, geometry::element_bytes(content.image->type), samples);
  geometry::copy_box(content.rank, length, samples, length, {}, unit.bytes(), extent, piece.in_extent.start);
}

Status Replacer::stage_batch(Content& content, WindowJob& job, bool keep) {
  MDFS_TRY(stage(core_, content, job.batch, job.reservation));
  for (Staged& staged : job.batch) {
    if (!keep) staged.content = BufferRef();
    job.staged.push_back(std::move(staged));
  }
  job.batch.clear();
  return {};
}

Status Replacer::link_window(Content& content, WindowJob& job) {
  const ClosedGate closed(content.gate);
  const std::lock_guard linking(content.linking);
  Linker::Pages pages;
  std::uint64_t size = 0;
  Status changed = core_.store.transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
    Linker linker(core_, content, transaction);
    MDFS_TRY(linker.link(job.staged));
    {
      const std::lock_guard lock(content.state_mutex);
      size = std::max(content.linked_size, job.end);
    }
    MDFS_TRY(content.update(transaction, {size, linker.stored_bytes_change(), false}));
    pages = linker.pages();
    return {};
  });
  if (!changed.ok()) return changed;
  publish_pages(core_, content, pages);
  {
    const std::lock_guard lock(content.state_mutex);
    content.linked_size = std::max(content.linked_size, size);
  }
  exchange(content, job.staged, job.keep);
  content.grow(job.end);
  write_back_.wake_waiters();
  return {};
}

void Replacer::exchange(Content& content, const std::vector<Staged>& units, bool keep) {
  const std::lock_guard swapping(content.swapping);
  content.swaps.fetch_add(1, std::memory_order_acq_rel);
  for (const Staged& staged : units) {
    const UnitKey key = content.key_of(staged.index);
    const UnitPtr unit = keep ? core_.cache.find_or_create(key) : core_.cache.peek(key);
    if (unit == nullptr) continue;
    const std::lock_guard lock(unit->mutex);
    unit->buffer = keep ? staged.content : BufferRef();
    unit->complete = keep;
    unit->valid.clear();
    unit->known_on_disk = !staged.runs.empty();
    if (unit->dirty) write_back_.note_clean(content, *unit);
  }
  content.swaps.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace mdfs::engine
