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

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;     // that are read at once, or the fewest rows
constexpr unsigned kSharedLevels = 2;                             // whose extents threads share
constexpr std::uint64_t kSharedExtents = 8;                       // of the coarsest level, if that is one of these
constexpr std::uint64_t kMoreRoomBytes = std::uint64_t{4} << 20;  // before levels are tried again

// So many planes, or rows, of a size as a piece holds; whole steps, at least one.
std::uint64_t steps_in(std::uint64_t piece_bytes, std::uint64_t each_bytes, std::uint64_t step) {
  return std::max<std::uint64_t>(1, piece_bytes / (each_bytes * step)) * step;
}

// A transaction must not end in its middle because the reader that needs it has been killed.
StopScope not_stopped() {
  return StopScope([] { return false; });
}

}  // namespace

bool VolumeImpl::stores_levels() const { return whole_ && check_writable().ok(); }

Result<bool> VolumeImpl::attempt_level(Ino ino, const LevelBytes& bytes, unsigned most_attempts,
                                       const engine::Stop& stop, const LevelAttempt& attempt) {
  const Reading reading(readers_);
  const Pin pin = table_.pin(ino);
  for (unsigned number = 1;; ++number) {
    MDFS_TRY(engine::stopped(stop));
    if (number > most_attempts) return false;
    LevelJob job{.image = *pin, .stop = stop, .level = bytes.level, .window = bytes.window, .offset = bytes.offset};
    MDFS_TRY_ASSIGN(const bool found, look_up_levels(job));
    if (!found || job.level == 0 || job.level > job.set->objects.size()) return false;
    MDFS_TRY(geometry::check(job.levels[job.level], job.window));
    const std::uint64_t all = geometry::window_bytes(job.levels[job.level], job.window);
    job.length = bytes.length.value_or(all - std::min(all, job.offset));
    if (!inside(job.offset, job.length, all)) return Error{Errc::kInvalidArgument, "bytes outside the window"};
    const Result<LevelState> state = attempt(job);
    if (!state.ok()) {
      if (state.error().code != Errc::kNotFound) return state.error();
      MDFS_TRY_ASSIGN(const bool same, has_shape_of(job));  // else the object of a level has been freed meanwhile
      if (same) return state.error();
      continue;
    }
    if (*state == LevelState::kCannotBeStored) return false;
    if (*state == LevelState::kChanged) continue;
    if (keeps_atime()) open_objects_.was_read(*pin);
    return true;
  }
}

Result<bool> VolumeImpl::read_level(Ino ino, unsigned level, const geometry::Window& window, std::uint64_t offset,
                                    std::uint64_t length, const LevelSink& sink, unsigned most_attempts,
                                    const engine::Stop& stop) {
  return attempt_level(ino, {level, window, offset, length}, most_attempts, stop,
                       [&](LevelJob& job) { return read_level_once(job, sink); });
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

Result<VolumeImpl::LevelState> VolumeImpl::read_level_once(LevelJob& job, const LevelSink& sink,
                                                           const std::function<Status(LevelUse)>& at_end) {
  LevelGuard::Watch watch(job.image.level_guard, job.levels[job.level].rank,
                          job.droppers(job.level, job.part_of(job.offset, job.length)), job.stop);
  MDFS_TRY_ASSIGN(const bool same, has_shape_of(job));
  if (!same) return LevelState::kChanged;
  ByteVector piece;
  for (std::uint64_t done = 0; done < job.length;) {
    MDFS_TRY(engine::stopped(job.stop));
    piece.resize(std::min(job.length - done, kPieceBytes));
    const std::uint64_t offset = job.offset + done;
    MDFS_TRY_ASSIGN(const LevelState state, need_extents(job, job.level, job.part_of(offset, piece.size())));
    if (state != LevelState::kBuilt) return state;
    MDFS_TRY_ASSIGN(const std::optional<LevelUse> level, use_level(job, job.level));
    if (!level) return LevelState::kCannotBeStored;
    const Status read = engine_->read_window(**level, job.window, offset, piece, job.stop);
    if (watch.is_stale()) return LevelState::kChanged;
    if (!read.ok()) return forget_unreadable(job, job.level, job.part_of(offset, piece.size()), read.error());
    MDFS_TRY(sink(offset, piece));
    done += piece.size();
  }
  if (at_end) {
    MDFS_TRY_ASSIGN(std::optional<LevelUse> level, use_level(job, job.level));
    if (!level) return LevelState::kCannotBeStored;
    MDFS_TRY(at_end(std::move(*level)));
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
    MDFS_TRY_ASSIGN(const LevelState state,
                    need_extents(job, level - 1, geometry::box_of(below, geometry::source_window(below, window))));
    if (state != LevelState::kBuilt) return state;
  }
  if (job.begun.fetch_add(1) > 0) MDFS_TRY(engine::stopped(job.pause));
  return build_extent(job, level, extent);
}

// All extents that hold any of these samples. Near the image, where nearly all extents are, several threads share them:
// one reads and reduces while another one waits for its disks. Extents above are few, and each stands for a large part
// of the image, whose parts follow each other in this way.
Result<VolumeImpl::LevelState> VolumeImpl::need_extents(LevelJob& job, unsigned level, const geometry::SampleBox& box) {
  const geometry::Geometry& geometry = job.levels[level];
  if (level > kSharedLevels)
    return each_extent<LevelState>(geometry, box,
                                   [&](const geometry::Coord& extent) { return need_extent(job, level, extent); });
  const geometry::SampleBox extents = geometry::extents_of(geometry, box);
  geometry::Coord count{};
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    if (extents.first[axis] >= extents.last[axis]) return LevelState::kBuilt;
    count[axis] = extents.last[axis] - extents.first[axis];
  }
  const bool in_background = engine::BackgroundScope::in_background();
  std::atomic<bool> ended{false};
  std::mutex mutex;  // guards the next
  std::optional<Result<LevelState>> end;
  const auto need = [&](std::size_t number) {
    if (ended) return;
    std::optional<engine::BackgroundScope> background;
    if (in_background && !engine::BackgroundScope::in_background()) background.emplace();
    const StopScope scope([&] { return job.stop && job.stop(); });
    geometry::Coord extent = extents.first;
    for (unsigned axis = geometry.rank; axis-- > 0; number /= count[axis]) extent[axis] += number % count[axis];
    Result<LevelState> state = need_extent(job, level, extent);
    if (state.ok() && *state == LevelState::kBuilt) return;
    ended = true;
    const std::lock_guard lock(mutex);
    if (!end) end = std::move(state);
  };
  level_tasks().parallel_for(geometry::extent_count(geometry.rank, count), need);
  return end ? *std::move(end) : LevelState::kBuilt;
}

engine::TaskPool& VolumeImpl::level_tasks() {
  std::call_once(level_tasks_begun_, [&] { level_tasks_ = std::make_unique<engine::TaskPool>(kLevelThreads); });
  return *level_tasks_;
}

// ---- in the background

void VolumeImpl::queue_levels(Inode& inode, std::uint64_t from) {
  inode.levels_built = false;
  const std::lock_guard lock(level_queue_mutex_);
  if (level_queue_.size() < kMostQueuedLevels) level_queue_.insert_or_assign(inode.ino, from);
}

// The image is queued again when the volume has room (queue_levels_with_room).
void VolumeImpl::note_levels_without_room(Ino ino, std::uint64_t from) {
  const std::uint64_t available = store_->space().available_blocks;
  const std::lock_guard lock(level_queue_mutex_);
  if (levels_without_room_.size() < kMostQueuedLevels) levels_without_room_.insert_or_assign(ino, from);
  level_room_blocks_ = available;
}

// Some room more than when the last build ended, or since: fewer blocks would end the next one at once.
void VolumeImpl::queue_levels_with_room() {
  const std::uint64_t available = store_->space().available_blocks;
  const std::lock_guard lock(level_queue_mutex_);
  level_room_blocks_ = std::min(level_room_blocks_, available);
  if (levels_without_room_.empty() || (available - level_room_blocks_) * store_->block_size() < kMoreRoomBytes) return;
  level_queue_.merge(levels_without_room_);
  levels_without_room_.clear();
}

bool VolumeImpl::build_levels(const engine::Stop& pause, const engine::Stop& stop) {
  const engine::BackgroundScope background;
  if (stores_levels()) queue_levels_with_room();
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
  if (reached == LevelState::kCannotBeStored) {  // meanwhile a reader computes them
    if (!stores_levels()) return std::optional(next);
    note_levels_without_room(ino, next);
  }
  return std::optional<std::uint64_t>();
}

// Divides the box, slowest axis first, until there is no data below a part, or it is one extent, or a few that threads
// share: what is not there costs nothing. Extents are numbered row by row, so that the numbers in each part follow each
// other.
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
  const geometry::SampleBox samples = geometry::samples_of(geometry, {box.first, box.last});
  if (!divided || (job.level <= kSharedLevels && count <= kSharedExtents)) return need_extents(job, job.level, samples);
  MDFS_TRY_ASSIGN(const bool data, has_data(job, job.below(job.level, samples)));
  if (!data) return LevelState::kBuilt;
  const std::uint64_t middle = (box.first[*divided] + box.last[*divided]) / 2;
  engine::GridBox before = box, behind = box;
  before.last[*divided] = behind.first[*divided] = middle;
  MDFS_TRY_ASSIGN(const LevelState state, build_box(job, before, from, next));
  if (state != LevelState::kBuilt) return state;
  return build_box(job, behind, from, next);
}

// Neighbours have different ones.
std::mutex& VolumeImpl::level_mutex(const LevelJob& job, unsigned level, const geometry::Coord& extent) {
  std::uint64_t number = job.image.ino + 7 * std::uint64_t{level};
  for (unsigned axis = 0; axis < job.levels[level].rank; ++axis) number = 3 * number + extent[axis];
  return level_mutexes_.at(number % level_mutexes_.size());
}

// Every extent below has been built.
Result<VolumeImpl::LevelState> VolumeImpl::build_extent(LevelJob& job, unsigned level, const geometry::Coord& extent) {
  const geometry::Geometry& geometry = job.levels[level];
  const std::lock_guard building(level_mutex(job, level, extent));
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
  std::unique_ptr<LevelBuffers> buffers = job.take_buffers();
  buffers->extent.resize(geometry::window_bytes(geometry, window));
  const Status reduced = reduce_extent(job, level, window, *buffers);
  if (watch.is_stale()) return LevelState::kChanged;
  if (!reduced.ok() && level > 1) {
    const geometry::Geometry& from = job.levels[level - 1];
    const geometry::SampleBox box = geometry::box_of(from, geometry::source_window(from, window));
    return forget_unreadable(job, level - 1, box, reduced.error());
  }
  MDFS_TRY(reduced);
  const Result<LevelState> stored = store_extent(job, level, window, buffers->extent, watch);
  job.give_back(std::move(buffers));
  return stored;
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

// In pieces of planes, or of rows of a plane, so that no more than the extent and one piece is in memory.
Status VolumeImpl::reduce_extent(LevelJob& job, unsigned level, const geometry::Window& window, LevelBuffers& buffers) {
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
  const std::uint64_t planes = steps_in(kPieceBytes, all.length[1] * row_bytes, all.step[0]);
  const std::uint64_t rows =
      planes > all.step[0] ? all.length[1] : steps_in(kPieceBytes, all.step[0] * row_bytes, all.step[1]);
  const std::uint64_t into_row = all.result(2) * below.sample_bytes();
  MDFS_TRY(start_below(job, level, source));
  std::uint64_t done = 0;  // bytes of the extent
  geometry::Coord index = source.start;
  do {
    geometry::Window part = source;
    for (unsigned axis = 0; axis < first; ++axis) {
      part.start[axis] = index[axis];
      part.length[axis] = 1;
    }
    for (std::uint64_t plane = 0; plane < all.length[0]; plane += planes) {
      for (std::uint64_t row = 0; row < all.length[1]; row += rows) {
        geometry::ReducedBox box = all;
        const std::array<std::uint64_t, 3> start = {plane, row, 0};
        box.length[0] = std::min(planes, all.length[0] - plane);
        box.length[1] = std::min(rows, all.length[1] - row);
        for (unsigned axis = first; axis < rank; ++axis) {
          part.start[axis] = source.start[axis] + start[geometry::place_in_box(rank, axis)];
          part.length[axis] = box.length[geometry::place_in_box(rank, axis)];
        }
        buffers.piece.resize(std::max<std::uint64_t>(buffers.piece.size(), geometry::window_bytes(below, part)));
        const MutableBytes piece = MutableBytes(buffers.piece).first(geometry::window_bytes(below, part));
        MDFS_TRY(read_below(job, level, part, piece));
        const std::uint64_t bytes = box.result(0) * box.result(1) * into_row;
        geometry::reduce(job.set->reduction, below.type, box, piece, MutableBytes(buffers.extent).subspan(done, bytes));
        done += bytes;
      }
    }
  } while (geometry::step_in(first, source.start, end, index));
  return {};
}

// All extents of the window are wanted: the disks get them at once, not piece by piece.
Status VolumeImpl::start_below(LevelJob& job, unsigned level, const geometry::Window& window) {
  if (level > 1 || geometry::window_bytes(job.levels[level - 1], window) <= kPieceBytes) return {};
  return with_window(job.image, window, [&](engine::OpenObject& object, const geometry::Geometry&) -> Status {
    engine_->start_window(object, window);
    return {};
  });
}

// A window of the image, or of the level below.
Status VolumeImpl::read_below(LevelJob& job, unsigned level, const geometry::Window& window, MutableBytes into) {
  if (level == 1)
    return with_window(job.image, window, [&](engine::OpenObject& object, const geometry::Geometry&) {
      return engine_->read_window(object, window, 0, into, job.stop);
    });
  MDFS_TRY_ASSIGN(const LevelUse use, LevelUse::begin(table_, open_objects_, job.set->objects[level - 2]));
  return engine_->read_window(*use, window, 0, into, job.stop);
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
