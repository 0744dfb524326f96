// Reads of levels. A reader builds the extents that it needs and stores them; each is the reduction of the level below
// at one state of the image.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/log.h"
#include "base/stop.h"
#include "engine/relocation_queue.h"
#include "volume/level_job.h"
#include "volume/level_use.h"

namespace mdfs::volume {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;  // that are read at once, or the fewest rows

// A transaction must not end in its middle because the reader that needs it has been killed.
StopScope not_stopped() {
  return StopScope([] { return false; });
}

}  // namespace

bool VolumeImpl::stores_levels() const { return whole_ && check_writable().ok(); }

Result<bool> VolumeImpl::read_level(Ino ino, unsigned level, const geometry::Window& window, std::uint64_t offset,
                                    std::uint64_t length, const LevelSink& sink, unsigned most_attempts,
                                    const engine::Stop& stop) {
  const Reading reading(readers_);
  const Pin pin = table_.pin(ino);
  for (unsigned attempt = 1;; ++attempt) {
    MDFS_TRY(engine::stopped(stop));
    if (attempt > most_attempts) return false;
    LevelJob job{.image = *pin, .stop = stop, .level = level, .window = window, .offset = offset, .length = length};
    MDFS_TRY_ASSIGN(const bool found, look_up_levels(job));
    if (!found || level == 0 || level > job.set->objects.size()) return false;
    MDFS_TRY(geometry::check(job.levels[level], window));
    if (!inside(offset, length, geometry::window_bytes(job.levels[level], window)))
      return Error{Errc::kInvalidArgument, "bytes outside the window"};
    MDFS_TRY_ASSIGN(const LevelState state, read_level_once(*pin, job, sink));
    if (state == LevelState::kCannotBeStored) return false;
    if (state == LevelState::kChanged) continue;
    if (keeps_atime()) open_objects_.was_read(*pin);
    return true;
  }
}

// Nothing stored: false.
Result<bool> VolumeImpl::look_up_levels(LevelJob& job) {
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(job.image));
  if (!use.levels()) return false;
  job.set = use.levels();
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, current_geometry(job.image.ino, use));
  job.levels.assign(1, geometry);
  for (std::size_t n = 0; n < job.set->objects.size(); ++n)
    job.levels.push_back(geometry::geometry_above(job.levels.back()));
  return true;
}

// True while the image has the shape that the job began with.
Result<bool> VolumeImpl::has_shape_of(LevelJob& job) {
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(job.image));
  if (use.levels() != job.set) return false;
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, current_geometry(job.image.ino, use));
  return geometry.shape[0] == job.levels[0].shape[0];
}

// The object of a level, as large as the level.
Result<std::optional<LevelUse>> VolumeImpl::use_level(LevelJob& job, unsigned level) {
  MDFS_TRY_ASSIGN(LevelUse use, LevelUse::begin(table_, open_objects_, job.set->objects[level - 1]));
  const std::uint64_t size_bytes = job.levels[level].size_bytes();
  if (engine_->size_bytes(*use) < size_bytes) {
    if (!stores_levels()) return std::optional<LevelUse>();
    const StopScope scope = not_stopped();
    const Status grown = engine_->grow(*use, size_bytes);
    if (!grown.ok() && grown.error().code == Errc::kNoSpace) return std::optional<LevelUse>();
    MDFS_TRY(grown);
  }
  return std::optional<LevelUse>(std::move(use));
}

Result<VolumeImpl::LevelState> VolumeImpl::read_level_once(Inode& inode, LevelJob& job, const LevelSink& sink) {
  const geometry::Geometry& geometry = job.levels[job.level];
  const std::uint64_t sample = job.window.channel ? geometry::element_bytes(geometry.type) : geometry.sample_bytes();
  const auto part_of = [&](std::uint64_t offset, std::uint64_t length) {
    geometry::SampleBox box = geometry::box_of_bytes(geometry.rank, job.window.length, sample, offset, length);
    for (unsigned axis = 0; axis < geometry.rank; ++axis) {
      box.first[axis] += job.window.start[axis];
      box.last[axis] += job.window.start[axis];
    }
    return box;
  };
  LevelGuard::Watch watch(inode.level_guard, geometry.rank, job.droppers(job.level, part_of(job.offset, job.length)),
                          job.stop);
  MDFS_TRY_ASSIGN(const bool same, has_shape_of(job));
  if (!same) return LevelState::kChanged;
  ByteVector piece;
  for (std::uint64_t done = 0; done < job.length;) {
    MDFS_TRY(engine::stopped(job.stop));
    piece.resize(std::min(job.length - done, kPieceBytes));
    const std::uint64_t offset = job.offset + done;
    MDFS_TRY_ASSIGN(const LevelState state, each_extent<LevelState>(geometry, part_of(offset, piece.size()),
                                                                    [&](const geometry::Coord& extent) {
                                                                      return need_extent(job, job.level, extent);
                                                                    }));
    if (state != LevelState::kBuilt) return state;
    MDFS_TRY_ASSIGN(const std::optional<LevelUse> level, use_level(job, job.level));
    if (!level) return LevelState::kCannotBeStored;
    const Status read = engine_->read_window(**level, job.window, offset, piece, job.stop);
    if (watch.is_stale()) return LevelState::kChanged;
    if (!read.ok()) return forget_unreadable(job, job.level, part_of(offset, piece.size()), read.error());
    MDFS_TRY(sink(offset, piece));
    done += piece.size();
  }
  return watch.is_stale() ? LevelState::kChanged : LevelState::kBuilt;
}

// True if an extent under these samples of the image has been written. All others are zero, and so is what stands above
// them.
Result<bool> VolumeImpl::has_data(LevelJob& job, geometry::SampleBox box) {
  const geometry::Geometry& image = job.levels[0];
  for (unsigned axis = 0; axis < image.rank; ++axis) box.last[axis] = std::min(box.last[axis], image.shape[axis]);
  const auto [first, last] = geometry::extents_of(image, box);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(job.image));
  return engine_->any_written(*use, {first, last}, job.stop);
}

Result<VolumeImpl::LevelState> VolumeImpl::need_extent(LevelJob& job, unsigned level, const geometry::Coord& extent) {
  MDFS_TRY(engine::stopped(job.stop));
  const geometry::Geometry& geometry = job.levels[level];
  {
    MDFS_TRY_ASSIGN(const std::optional<LevelUse> use, use_level(job, level));
    if (!use) return LevelState::kCannotBeStored;
    MDFS_TRY_ASSIGN(const bool written, engine_->is_written(**use, extent));
    if (written) return LevelState::kBuilt;
  }
  const geometry::Window window = geometry::window_of_extent(geometry, extent);
  MDFS_TRY_ASSIGN(const bool data, has_data(job, job.below(level, geometry::box_of(geometry, window))));
  if (!data) return LevelState::kBuilt;
  if (!stores_levels()) return LevelState::kCannotBeStored;
  if (level > 1) {
    const geometry::Geometry& below = job.levels[level - 1];
    MDFS_TRY_ASSIGN(
        const LevelState state,
        each_extent<LevelState>(below, geometry::box_of(below, geometry::source_window(below, window)),
                                [&](const geometry::Coord& source) { return need_extent(job, level - 1, source); }));
    if (state != LevelState::kBuilt) return state;
  }
  if (job.built > 0) MDFS_TRY(engine::stopped(job.pause));
  ++job.built;
  return build_extent(job, level, extent);
}

// ---- in the background

void VolumeImpl::queue_levels(Inode& inode, std::uint64_t from) {
  inode.levels_built = false;
  const std::lock_guard lock(level_queue_mutex_);
  if (level_queue_.size() < kMostQueuedLevels) level_queue_.insert_or_assign(inode.ino, from);
}

bool VolumeImpl::build_levels(const engine::Stop& pause, const engine::Stop& stop) {
  const engine::BackgroundScope background;
  while (stores_levels()) {
    std::pair<Ino, std::uint64_t> next;
    {
      const std::lock_guard lock(level_queue_mutex_);
      if (level_queue_.empty()) return false;
      auto entry = level_queue_.upper_bound(level_queue_last_);
      if (entry == level_queue_.end()) entry = level_queue_.begin();
      next = *entry;
      level_queue_last_ = next.first;
      level_queue_.erase(entry);
    }
    const auto built = build_levels_of(next.first, next.second, pause, stop);
    if (!built.ok() && !is_passed_over(built.error()))
      spdlog::warn("levels of inode {} cannot be built: {}", next.first, built.error().message());
    if (!built.ok() || !*built) continue;
    const std::lock_guard lock(level_queue_mutex_);
    level_queue_.emplace(next.first, **built);  // unless a writer has queued it
    if ((pause && pause()) || (stop && stop())) return true;
  }
  return false;
}

Result<std::optional<std::uint64_t>> VolumeImpl::build_levels_of(Ino ino, std::uint64_t from, const engine::Stop& pause,
                                                                 const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  pin->levels_built = true;  // a writer that comes now makes it false
  LevelJob job{.image = *pin, .stop = stop, .pause = pause};
  MDFS_TRY_ASSIGN(const bool found, look_up_levels(job));
  if (!found) return std::optional<std::uint64_t>();
  job.level = std::min(static_cast<unsigned>(job.set->objects.size()), geometry::level_count(job.levels.front()));
  if (job.level == 0) return std::optional<std::uint64_t>();
  std::uint64_t next = from;
  const Result<LevelState> state = build_box(job, {{}, job.levels[job.level].grid()}, from, next);
  if (!state.ok() && state.error().code == Errc::kCancelled) return std::optional(next);
  MDFS_TRY_ASSIGN(const LevelState reached, state);
  if (reached == LevelState::kChanged) return std::optional(next);
  return std::optional<std::uint64_t>();  // all are built, or cannot be stored: a reader computes them
}

// Divides the box, slowest axis first, until there is no data below a part, or it is one extent: what is not there
// costs nothing. Extents are numbered row by row, so that the numbers in each part follow each other.
Result<VolumeImpl::LevelState> VolumeImpl::build_box(LevelJob& job, const engine::GridBox& box, std::uint64_t from,
                                                     std::uint64_t& next) {
  const geometry::Geometry& geometry = job.levels[job.level];
  const geometry::Coord grid = geometry.grid();
  std::uint64_t number = 0, count = 1;
  std::optional<unsigned> divided;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    if (box.first[axis] >= box.last[axis]) return LevelState::kBuilt;
    number = number * grid[axis] + box.first[axis];
    count *= box.last[axis] - box.first[axis];
    if (!divided && box.last[axis] - box.first[axis] > 1) divided = axis;
  }
  if (number + count <= from) return LevelState::kBuilt;
  next = std::max(number, from);
  if (!divided) return need_extent(job, job.level, box.first);
  const geometry::SampleBox samples = geometry::samples_of(geometry, {box.first, box.last});
  MDFS_TRY_ASSIGN(const bool data, has_data(job, job.below(job.level, samples)));
  if (!data) return LevelState::kBuilt;
  const std::uint64_t middle = (box.first[*divided] + box.last[*divided]) / 2;
  engine::GridBox before = box, behind = box;
  before.last[*divided] = behind.first[*divided] = middle;
  MDFS_TRY_ASSIGN(const LevelState state, build_box(job, before, from, next));
  if (state != LevelState::kBuilt) return state;
  return build_box(job, behind, from, next);
}

// Every extent below has been built.
Result<VolumeImpl::LevelState> VolumeImpl::build_extent(LevelJob& job, unsigned level, const geometry::Coord& extent) {
  const std::lock_guard building(job.image.level_mutex);
  const geometry::Geometry& geometry = job.levels[level];
  const geometry::Window window = geometry::window_of_extent(geometry, extent);
  const geometry::SampleBox source = geometry::box_below(job.levels[level - 1], geometry::box_of(geometry, window));
  LevelGuard::Watch watch(job.image.level_guard, geometry.rank, job.droppers(level - 1, source), job.stop);
  MDFS_TRY_ASSIGN(const bool same, has_shape_of(job));
  if (!same || watch.is_stale()) return LevelState::kChanged;
  {
    MDFS_TRY_ASSIGN(const std::optional<LevelUse> use, use_level(job, level));
    if (!use) return LevelState::kCannotBeStored;
    MDFS_TRY_ASSIGN(const bool written, engine_->is_written(**use, extent));
    if (written) return LevelState::kBuilt;
  }
  MDFS_TRY_ASSIGN(const LevelState below, level == 1 ? write_back_below(job) : is_built_below(job, level, window));
  if (below != LevelState::kBuilt) return below;
  job.extent.resize(geometry::window_bytes(geometry, window));
  const Status reduced = reduce_extent(job, level, window, job.extent);
  if (watch.is_stale()) return LevelState::kChanged;
  if (!reduced.ok() && level > 1) {
    const geometry::Geometry& from = job.levels[level - 1];
    const geometry::SampleBox box = geometry::box_of(from, geometry::source_window(from, window));
    return forget_unreadable(job, level - 1, box, reduced.error());
  }
  MDFS_TRY(reduced);
  return store_extent(job, level, window, job.extent, watch);
}

// Level 1 is made of the image. What it is made of is in the tree before it, so that every commit that has the extent
// has the samples below it.
Result<VolumeImpl::LevelState> VolumeImpl::write_back_below(LevelJob& job) {
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(job.image));
  if (!engine_->is_dirty(*use)) return LevelState::kBuilt;
  const StopScope scope = not_stopped();
  const Status written = engine_->write_back(*use);
  if (written.ok()) return LevelState::kBuilt;
  const std::lock_guard lock(job.image.error_mutex);  // for the next fsync
  job.image.write_error = written.error();
  job.image.write_error_kept = true;
  return LevelState::kCannotBeStored;
}

// A writer may have dropped some of it before the watch began.
Result<VolumeImpl::LevelState> VolumeImpl::is_built_below(LevelJob& job, unsigned level,
                                                          const geometry::Window& window) {
  const geometry::Geometry& below = job.levels[level - 1];
  MDFS_TRY_ASSIGN(const std::optional<LevelUse> use, use_level(job, level - 1));
  if (!use) return LevelState::kCannotBeStored;
  return each_extent<LevelState>(below, geometry::box_of(below, geometry::source_window(below, window)),
                                 [&](const geometry::Coord& source) -> Result<LevelState> {
                                   MDFS_TRY_ASSIGN(const bool written, engine_->is_written(**use, source));
                                   if (written) return LevelState::kBuilt;
                                   const geometry::SampleBox box = job.below(
                                       level - 1, geometry::box_of(below, geometry::window_of_extent(below, source)));
                                   MDFS_TRY_ASSIGN(const bool data, has_data(job, box));
                                   return data ? LevelState::kChanged : LevelState::kBuilt;
                                 });
}

// In pieces of rows, so that no more than the extent and one piece is in memory.
Status VolumeImpl::reduce_extent(LevelJob& job, unsigned level, const geometry::Window& window, MutableBytes into) {
  const geometry::Geometry& below = job.levels[level - 1];
  const geometry::Window source = geometry::source_window(below, window);
  const geometry::HalvedAxes halved = geometry::halved_axes(below);
  const unsigned rank = below.rank;
  geometry::ReducedBox all{{1, 1, 1}, {1, 1, 1}, below.channels};
  const unsigned first = geometry::first_axis_in_box(rank);
  geometry::Coord end{};  // along the axes before the planes
  for (unsigned axis = 0; axis < first; ++axis) end[axis] = source.start[axis] + source.length[axis];
  for (unsigned axis = first; axis < rank; ++axis) {
    all.length[geometry::place_in_box(rank, axis)] = source.length[axis];
    all.step[geometry::place_in_box(rank, axis)] = halved[axis] ? 2 : 1;
  }
  const std::uint64_t row_bytes = all.length[2] * below.sample_bytes();
  const std::uint64_t at_once = std::max<std::uint64_t>(1, kPieceBytes / (all.step[0] * all.step[1] * row_bytes));
  const std::uint64_t into_row = all.result(2) * below.sample_bytes();
  std::uint64_t done = 0;  // bytes of the extent
  geometry::Coord index = source.start;
  do {
    geometry::Window part = source;
    for (unsigned axis = 0; axis < first; ++axis) {
      part.start[axis] = index[axis];
      part.length[axis] = 1;
    }
    for (std::uint64_t plane = 0; plane < all.length[0]; plane += all.step[0]) {
      for (std::uint64_t row = 0; row < all.length[1]; row += at_once * all.step[1]) {
        geometry::ReducedBox box = all;
        const std::array<std::uint64_t, 3> start = {plane, row, 0};
        box.length[0] = std::min(all.step[0], all.length[0] - plane);
        box.length[1] = std::min(at_once * all.step[1], all.length[1] - row);
        for (unsigned axis = first; axis < rank; ++axis) {
          part.start[axis] = source.start[axis] + start[geometry::place_in_box(rank, axis)];
          part.length[axis] = box.length[geometry::place_in_box(rank, axis)];
        }
        MDFS_TRY(read_below(job, level, part));
        const std::uint64_t bytes = box.result(1) * into_row;
        geometry::reduce(job.set->reduction, below.type, box, job.piece, into.subspan(done, bytes));
        done += bytes;
      }
    }
  } while (geometry::step_in(first, source.start, end, index));
  return {};
}

// Into job.piece: a window of the image, or of the level below.
Status VolumeImpl::read_below(LevelJob& job, unsigned level, const geometry::Window& window) {
  job.piece.resize(geometry::window_bytes(job.levels[level - 1], window));
  if (level == 1)
    return with_window(job.image, window, [&](engine::OpenObject& object, const geometry::Geometry&) {
      return engine_->read_window(object, window, 0, job.piece, job.stop);
    });
  MDFS_TRY_ASSIGN(const LevelUse use, LevelUse::begin(table_, open_objects_, job.set->objects[level - 2]));
  return engine_->read_window(*use, window, 0, job.piece, job.stop);
}

Result<VolumeImpl::LevelState> VolumeImpl::store_extent(LevelJob& job, unsigned level, const geometry::Window& window,
                                                        ConstBytes samples, LevelGuard::Watch& watch) {
  const LevelGuard::Store storing(watch);
  if (!storing) return LevelState::kChanged;
  const StopScope scope = not_stopped();
  MDFS_TRY_ASSIGN(const LevelUse use, LevelUse::begin(table_, open_objects_, job.set->objects[level - 1]));
  const engine::WindowSource source([&](std::uint64_t offset, MutableBytes into) -> Status {
    std::copy_n(samples.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  });
  const Status stored = engine_->store_window(*use, window, source, {});
  if (!stored.ok() && stored.error().code == Errc::kNoSpace) return LevelState::kCannotBeStored;
  MDFS_TRY(stored);
  return LevelState::kBuilt;
}

}  // namespace mdfs::volume
