// The extent engine: its parts put together.
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "engine/core.h"
#include "engine/map/survey.h"
#include "engine/map/written_extents.h"
#include "engine/open_object.h"
#include "engine/read/frames.h"
#include "engine/read/loader.h"
#include "engine/read/reader.h"
#include "engine/read/window_version.h"
#include "engine/relocate/home_relocator.h"
#include "engine/write/replacer.h"
#include "engine/write/write_back.h"
#include "engine/write/writer.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

constexpr std::uint64_t kStripBytes = 8u << 20;  // consolidated at a time
constexpr std::size_t kLeastCacheBytes = 1u << 20;
constexpr unsigned kMostThreads = 64;

}  // namespace

struct Engine::Parts {
  Parts(store::Store& store, const EngineOptions& options, Environment& environment, unsigned threads)
      : core(store, options, environment, threads) {}
  ~Parts() {
    core.background.drain();
    core.loads.wait_until_idle();
    core.reserved_loads.wait_until_idle();
    core.late_bytes.wait_until_idle();
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  Core core;
  Loader loader{core};
  WriteBack write_back{core, loader};
  Reader reader{core, loader};
  Frames frames{core, loader};
  Writer writer{core, loader, write_back};
  Replacer replacer{core, loader, write_back, writer};
  Survey survey{core};
  Mover mover{core};
  HomeRelocator home_relocator{core, mover};
  Protector protector{core};
};

Engine::Engine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(store::Store& store, const EngineOptions& options,
                                               Environment& environment) {
  if (options.cache_bytes < kLeastCacheBytes) return {Errc::kOutOfRange, "cache of less than 1 MiB"};
  if (options.largest_request_bytes < device::kAlignment)
    return {Errc::kOutOfRange, "largest request below 4096 bytes"};
  const unsigned asked = options.decode_threads > 0 ? options.decode_threads : std::thread::hardware_concurrency();
  const unsigned threads = std::clamp(asked, 1u, kMostThreads);
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Parts>(store, options, environment, threads)));
}

Result<std::shared_ptr<OpenObject>> Engine::open(const ObjectSpec& spec, InodeUpdate update) {
  if (spec.geometry) MDFS_TRY(geometry::check(*spec.geometry));
  if (spec.placement == nullptr && parts_->core.store.disk_count() > 1)
    return {Errc::kInvalidArgument, "object without placement"};
  if (spec.placement != nullptr) MDFS_TRY(geometry::check(*spec.placement, parts_->core.store.disk_count()));
  const bool strips = (parts_->core.store.features_incompat() & MDFS_INCOMPAT_STRIPS) != 0;
  auto object = std::make_shared<OpenObject>(spec, std::move(update), parts_->core.store.block_size(), strips);
  if (object->is_image() && object->group_members.load(std::memory_order_relaxed) > 1)
    parts_->core.relocations.note_opened(object->number);
  if (!object->may_have_strips || parts_->core.store.read_only()) return object;
  MDFS_TRY_ASSIGN(const auto any, parts_->core.store.scan({object->number, MDFS_KIND_STRIP, 0},
                                                          {object->number, MDFS_KIND_STRIP, UINT64_MAX}, 1));
  if (!any.empty()) parts_->core.relocations.note_strips(object->number);
  return object;
}

Status Engine::close(const std::shared_ptr<OpenObject>& object) {
  parts_->core.relocations.forget({object->number, RelocationReason::kInStrips});
  Status status = parts_->write_back.write_back(*object);
  // It may be an earlier error that was not reported, and whose cause is gone.
  if (!status.ok()) status = parts_->write_back.write_back(*object);
  if (!status.ok()) drop_dirty(*object);
  return status;
}

void Engine::discard(const std::shared_ptr<OpenObject>& object) {
  drop_dirty(*object);
  parts_->core.relocations.forget(object->number);  // no thread publishes, and notes it, any more
  parts_->core.cache.erase_object(object->number);
  parts_->core.extent_map.forget_all(*object);
  parts_->core.store.release_preallocations(object->number);
  if (object->wants_copies) parts_->core.store.release_preallocations(object->number | kCopyOwner);
}

std::uint64_t Engine::size_bytes(const OpenObject& object) const { return object.size.load(std::memory_order_acquire); }

bool Engine::is_dirty(const OpenObject& object) const {
  const std::lock_guard lock(object.state_mutex);
  return !object.dirty_cache_blocks.empty() || object.published_size != object.size.load(std::memory_order_acquire) ||
         object.error.has_value();
}

Result<std::size_t> Engine::read(OpenObject& object, std::uint64_t offset, MutableBytes into, const Stop& stop) {
  parts_->core.relocations.note_activity(parts_->core.environment);
  return parts_->reader.read(object, offset, into, stop);
}

Status Engine::write(OpenObject& object, std::uint64_t offset, ConstBytes from, const Stop& stop) {
  parts_->core.relocations.note_activity(parts_->core.environment);
  const std::uint64_t size = object.size.load(std::memory_order_acquire);
  if (offset > size || from.size() > size - offset) MDFS_TRY(parts_->replacer.clear_beyond_end(object));
  return parts_->writer.write(object, offset, from, stop);
}

Status Engine::read_window(OpenObject& object, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                           const Stop& stop) {
  parts_->core.relocations.note_activity(parts_->core.environment);
  return parts_->reader.read_window(object, window, offset, into, stop);
}

bool Engine::read_cached_window(OpenObject& object, const geometry::Window& window, MutableBytes into,
                                const ReadProgress& progress) {
  parts_->core.relocations.note_activity(parts_->core.environment);
  return parts_->reader.read_cached(object, window, into, progress);
}

Result<std::shared_ptr<WindowVersion>> Engine::pin_window(OpenObject& object, const geometry::Window& window) {
  if (!object.is_image()) return {Errc::kNotImage, "window of an ordinary file"};
  auto version = std::make_shared<WindowVersion>(parts_->core, object.shared_from_this(), window);
  while (true) {
    {
      const std::lock_guard swapping(object.swapping);
      if (object.versions.add(version)) return version;
    }
    object.versions.wait_for_changes(version->box());
  }
}

Status Engine::read_version(WindowVersion& version, std::uint64_t offset, MutableBytes into, const Stop& stop) {
  parts_->core.relocations.note_activity(parts_->core.environment);
  return parts_->reader.read_version(version, offset, into, stop);
}

Status Engine::read_version_parts(WindowVersion& version, std::span<const geometry::Window> parts, MutableBytes into,
                                  const Stop& stop) {
  parts_->core.relocations.note_activity(parts_->core.environment);
  return parts_->reader.read_version_parts(version, parts, into, stop);
}

Result<std::shared_ptr<StoredFrame>> Engine::stored_frame(OpenObject& object, const geometry::Coord& extent,
                                                          const Stop& stop) {
  return parts_->frames.find(object, extent, stop);
}

std::uint32_t Engine::size_bytes(const StoredFrame& frame) const { return frame.size_bytes(); }

Status Engine::read_frame(StoredFrame& frame, std::uint64_t offset, MutableBytes into, const Stop& stop) {
  parts_->core.relocations.note_activity(parts_->core.environment);
  return parts_->frames.read(frame, offset, into, stop);
}

bool Engine::is_of(const WindowVersion& version, const OpenObject& object) const {
  return &version.object() == &object;
}

void Engine::start_window(OpenObject& object, const geometry::Window& window) {
  parts_->reader.start_window(object, window);
}

Status Engine::write_window(OpenObject& object, const geometry::Window& window, const WindowSource& from,
                            const Stop& stop) {
  parts_->core.relocations.note_activity(parts_->core.environment);
  return parts_->replacer.write_window(object, window, from, stop);
}

Status Engine::truncate(OpenObject& object, std::uint64_t size_bytes, const Stop& stop) {
  return parts_->replacer.truncate(object, size_bytes, stop);
}

Status Engine::grow(OpenObject& object, std::uint64_t size_bytes) { return parts_->replacer.grow(object, size_bytes); }

Status Engine::punch(OpenObject& object, std::uint64_t offset, std::uint64_t length, const Stop& stop) {
  return parts_->replacer.punch(object, offset, length, stop);
}

Status Engine::store_window(OpenObject& object, const geometry::Window& window, const WindowSource& from,
                            const Stop& stop) {
  return parts_->replacer.write_window(object, window, from, stop, true);
}

Status Engine::drop_extents(OpenObject& object, const GridBox& box, const Stop& stop) {
  return parts_->replacer.drop_extents(object, box, stop);
}

Result<std::uint64_t> Engine::next_data(OpenObject& object, std::uint64_t offset) {
  return parts_->survey.next_data(object, offset);
}

Result<std::uint64_t> Engine::next_hole(OpenObject& object, std::uint64_t offset) {
  return parts_->survey.next_hole(object, offset);
}

Result<bool> Engine::is_written(OpenObject& object, const geometry::Coord& extent) {
  MDFS_TRY_ASSIGN(const bool written, WrittenExtents(parts_->core, object).contains(extent));
  // A record is in the tree before cached extents are exchanged: readers of the cache may still see the hole.
  if (written) const std::lock_guard published(object.publishing);
  return written;
}

Result<bool> Engine::any_written(OpenObject& object, const GridBox& box, const Stop& stop) {
  bool found = false;
  MDFS_TRY(WrittenExtents(parts_->core, object).each_in(box, stop, [&](const geometry::Coord&) -> Result<bool> {
    found = true;
    return false;
  }));
  return found;
}

Result<std::vector<std::uint64_t>> Engine::written_in_row(OpenObject& object, const geometry::Coord& from,
                                                          std::size_t most, const Stop& stop) {
  return WrittenExtents(parts_->core, object).in_row(from, most, stop);
}

Result<std::uint64_t> Engine::count_stored(OpenObject& object, const Stop& stop) {
  return WrittenExtents(parts_->core, object).count_stored(stop);
}

Status Engine::write_back(OpenObject& object) {
  parts_->core.relocations.note_activity(parts_->core.environment);
  WriteBack::note_sync(object);
  return parts_->write_back.write_back(object);
}

Result<std::uint64_t> Engine::consolidate(OpenObject& object, std::uint64_t most_bytes, bool all) {
  return parts_->replacer.consolidate(object, most_bytes, all);
}

Status Engine::write_back_all(std::int64_t at_least_age_ns) {
  return parts_->write_back.write_back_all(at_least_age_ns);
}

Result<LayoutRows> Engine::layout(OpenObject& object, const LayoutRequest& request, const Stop& stop) {
  return parts_->survey.layout(object, request, stop);
}

Result<WindowPlan> Engine::plan(OpenObject& object, const geometry::Window& window, const Stop& stop) {
  return parts_->survey.plan(object, window, stop);
}

Result<layout::Fragmentation> Engine::fragmentation(OpenObject& object, const Stop& stop) {
  return parts_->survey.fragmentation(object, stop);
}

Result<layout::DefragPlan> Engine::plan_defrag(OpenObject& object, std::uint64_t from) {
  return parts_->survey.plan_defrag(object, from);
}

Result<MoveOutcome> Engine::move(OpenObject& object, const MoveRequest& request) {
  return parts_->mover.move(object, request);
}

void Engine::set_protection(OpenObject& object, bool copies, unsigned group_members) {
  object.wants_copies.store(copies, std::memory_order_relaxed);
  object.group_members.store(group_members, std::memory_order_relaxed);
}

Result<ProtectOutcome> Engine::protect(OpenObject& object, const ProtectRequest& request) {
  return parts_->protector.run(object, request);
}

Result<ProtectionState> Engine::protection(OpenObject& object, std::uint64_t& page, const Stop& stop) {
  return parts_->protector.look(object, page, stop);
}

Result<std::uint64_t> Engine::strips_to_consolidate(const OpenObject& object, bool copies, const Stop& stop) {
  return parts_->protector.strips_to_consolidate(object, copies, stop);
}

Result<std::vector<geometry::Coord>> Engine::find_unprotected(OpenObject& object, const ProtectRequest& wanted,
                                                              std::uint64_t& page, std::size_t most) {
  return parts_->protector.find(object, wanted, page, most);
}

// What cannot be repaired now is found by its next reader.
Result<RelocationOutcome> Engine::repair_damaged(OpenObject& object, const Pace& pace) {
  ProtectRequest request = ProtectRequest::wanted_by(object);
  for (const std::uint64_t extent : parts_->core.relocations.take_damaged(object.number))
    request.extents.push_back(object.extent_coord(extent));
  request.verifies = true;
  request.pace = pace;
  MDFS_TRY_ASSIGN(const ProtectOutcome outcome, parts_->protector.run(object, request));
  std::uint64_t bytes = outcome.bytes;
  if (outcome.repaired < request.extents.size() && object.may_have_strips) {  // parts in strips, then
    MDFS_TRY(write_back(object));
    MDFS_TRY_ASSIGN(const std::uint64_t consolidated, parts_->replacer.consolidate(object, UINT64_MAX, true));
    bytes += consolidated;
  }
  return RelocationOutcome{outcome.repaired, bytes};
}

// Extents that were written since their parities were made, from the first page on that has some.
Result<RelocationOutcome> Engine::form_groups(OpenObject& object, const Pace& pace) {
  RelocationQueue& queue = parts_->core.relocations;
  ProtectRequest request = ProtectRequest::wanted_by(object);
  request.pace = pace;
  RelocationOutcome formed;
  while (const std::optional<UngroupedPage> first = queue.take_ungrouped(object.number)) {
    std::uint64_t page = first->page;
    MDFS_TRY_ASSIGN(request.extents, parts_->protector.find(object, request, page, 1));
    if (first->and_later && page != UINT64_MAX)
      queue.note_ungrouped_from(object.number, page);
    else if (first->and_later)
      queue.note_looked_through(object.number);
    if (request.extents.empty()) {
      if (pace && !pace(0).ok()) return formed;
      continue;
    }
    const Result<ProtectOutcome> outcome = parts_->protector.run(object, request);
    const bool turn_is_over = !outcome.ok() && outcome.error().code == Errc::kBusy;
    if (turn_is_over || (outcome.ok() && outcome->again)) {
      queue.note_ungrouped(object.number, object.page_of(request.extents.front()).page);
      return formed;
    }
    MDFS_TRY(outcome);
    formed.extents += outcome->made + outcome->repaired;
    formed.bytes += outcome->bytes;
  }
  return formed;
}

std::vector<RelocationCandidate> Engine::relocation_candidates() const {
  return parts_->core.relocations.candidates(parts_->core.store.generation());
}

std::uint64_t Engine::extents_away_from_home() const { return parts_->core.relocations.homes().count(); }

Result<RelocationOutcome> Engine::relocate(OpenObject& object, RelocationReason reason, const Pace& pace) {
  if (reason == RelocationReason::kDamaged) return repair_damaged(object, pace);
  if (reason == RelocationReason::kUngrouped) return form_groups(object, pace);
  if (reason == RelocationReason::kAwayFromHome) return parts_->home_relocator.run(object, pace);
  parts_->core.relocations.forget({object.number, reason});  // strips that come from here on are noted again
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, parts_->replacer.consolidate(object, kStripBytes, false));
  if (bytes > 0) parts_->core.relocations.note_strips(object.number);
  return RelocationOutcome{0, bytes};
}

void Engine::forget_relocation(const RelocationCandidate& candidate) { parts_->core.relocations.forget(candidate); }

void Engine::forget_relocations(std::uint64_t object) { parts_->core.relocations.forget(object); }

void Engine::forget_all_homes() { parts_->core.relocations.homes().forget_all(); }

bool Engine::is_quiet() const { return parts_->core.is_quiet(); }

bool Engine::zeroes_lost() const { return parts_->core.options.zeros_for_lost && parts_->core.store.read_only(); }

CacheStats Engine::cache_stats() const {
  return {parts_->core.cache.used_bytes(), parts_->core.dirty_bytes.load(), parts_->core.cache.hits(),
          parts_->core.cache.misses(),     parts_->core.cache.evictions(),  parts_->core.options.cache_bytes};
}

void Engine::set_cache_limit(std::uint64_t bytes) {
  parts_->core.cache.set_limit(std::min<std::uint64_t>(bytes, parts_->core.options.cache_bytes));
}

void Engine::trim_cache(std::uint64_t bytes) { parts_->core.cache.trim_to(bytes); }

void Engine::give_back_memory() { parts_->core.cache.give_back_idle(); }

std::int64_t Engine::idle_ns() const { return parts_->core.relocations.idle_ns(parts_->core.environment); }

void Engine::drop_dirty(OpenObject& object) {
  GridBox all;
  all.last.fill(UINT64_MAX);
  const RangeLock::Hold hold(object.range_lock, object.rank, all, RangeLock::Mode::kExclusive);
  const WriteBackLocks locks(object, all);
  const ClosedBarrier closed(object.barrier);  // what is read ahead has its extents until it has arrived
  for (const CacheBlockPtr& block : locks.blocks()) {
    {
      const std::lock_guard lock(block->mutex);
      parts_->write_back.note_clean(object, *block);
      block->buffer = BufferRef();
      block->valid.clear();
      block->complete = false;
    }
    parts_->core.cache.erase(block->key);
  }
  {
    // A thread that publishes now ends before this returns, and no thread publishes later: the inode may go.
    const std::lock_guard publishing(object.publishing);
    const std::lock_guard lock(object.state_mutex);
    object.published_size = std::max(object.published_size, object.size.load(std::memory_order_acquire));
  }
  parts_->write_back.forget_if_clean(object);
  parts_->write_back.wake_waiters();
}

}  // namespace mdfs::engine
