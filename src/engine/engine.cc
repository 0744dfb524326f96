// The extent engine: its parts put together.
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "engine/content.h"
#include "engine/core.h"
#include "engine/map/survey.h"
#include "engine/read/loader.h"
#include "engine/read/reader.h"
#include "engine/read/window_version.h"
#include "engine/relocate/returner.h"
#include "engine/relocate/settler.h"
#include "engine/write/replacer.h"
#include "engine/write/write_back.h"
#include "engine/write/writer.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

constexpr std::size_t kLeastCacheBytes = 1u << 20;
constexpr unsigned kMostThreads = 64;

class EngineImpl final : public Engine {
 public:
  EngineImpl(store::Store& store, const EngineOptions& options, Environment& environment, unsigned threads)
      : core_(store, options, environment, threads) {
    if (options.settle_when_idle && !store.read_only()) settler_.emplace(core_, replacer_);
  }

  ~EngineImpl() override {
    settler_.reset();
    core_.background.drain();
    core_.loads.wait_until_idle();
  }

  Result<std::shared_ptr<Content>> open(const ContentSpec& spec, InodeUpdate update) override {
    if (spec.geometry) MDFS_TRY(geometry::check(*spec.geometry));
    if (spec.placement == nullptr && core_.store.disk_count() > 1)
      return {Errc::kInvalidArgument, "content without placement"};
    if (spec.placement != nullptr) MDFS_TRY(geometry::check(*spec.placement, core_.store.disk_count()));
    const bool strips = (core_.store.features_incompat() & MDFS_INCOMPAT_STRIPS) != 0;
    auto content = std::make_shared<Content>(spec, std::move(update), core_.store.block_size(), strips);
    if (!content->may_have_strips || core_.store.read_only()) return content;
    MDFS_TRY_ASSIGN(const auto any, core_.store.scan({content->object, MDFS_KIND_STRIP, 0},
                                                     {content->object, MDFS_KIND_STRIP, UINT64_MAX}, 1));
    if (!any.empty()) core_.settle.note(content);
    return content;
  }

  Status close(const std::shared_ptr<Content>& content) override {
    core_.settle.forget(*content);
    Status status = write_back_.write_back(*content);
    if (!status.ok()) drop_dirty(*content);
    return status;
  }

  void discard(const std::shared_ptr<Content>& content) override {
    core_.settle.forget(*content);
    drop_dirty(*content);
    core_.cache.erase_object(content->object);
    core_.records.forget_all(*content);
    core_.left.forget(content->object);
    core_.store.close_owner(content->object);
  }

  std::uint64_t size_bytes(const Content& content) const override {
    return content.size.load(std::memory_order_acquire);
  }

  bool is_dirty(const Content& content) const override {
    const std::lock_guard lock(content.state_mutex);
    return !content.dirty_units.empty() || content.linked_size != content.size.load(std::memory_order_acquire) ||
           content.error.has_value();
  }

  Result<std::size_t> read(Content& content, std::uint64_t offset, MutableBytes into) override {
    core_.settle.note_activity(core_.environment);
    return reader_.read(content, offset, into);
  }
  Status write(Content& content, std::uint64_t offset, ConstBytes from) override {
    core_.settle.note_activity(core_.environment);
    const std::uint64_t size = content.size.load(std::memory_order_acquire);
    if (offset > size || from.size() > size - offset) MDFS_TRY(replacer_.clear_beyond_end(content));
    return writer_.write(content, offset, from);
  }
  Status read_window(Content& content, const geometry::Window& window, std::uint64_t offset,
                     MutableBytes into) override {
    core_.settle.note_activity(core_.environment);
    return reader_.read_window(content, window, offset, into);
  }
  Result<std::shared_ptr<WindowVersion>> pin_window(Content& content, const geometry::Window& window) override {
    if (!content.is_image()) return {Errc::kNotImage, "window of an ordinary file"};
    auto version = std::make_shared<WindowVersion>(core_, content.shared_from_this(), window);
    while (true) {
      {
        const std::lock_guard swapping(content.swapping);
        if (content.versions.add(version)) return version;
      }
      content.versions.wait_for_changes(version->box());
    }
  }
  Status read_version(WindowVersion& version, std::uint64_t offset, MutableBytes into) override {
    core_.settle.note_activity(core_.environment);
    return reader_.read_version(version, offset, into);
  }
  bool is_of(const WindowVersion& version, const Content& content) const override {
    return &version.content() == &content;
  }
  void start_window(Content& content, const geometry::Window& window) override {
    reader_.start_window(content, window);
  }
  Status write_window(Content& content, const geometry::Window& window, const WindowSource& from,
                      const Stop& stop) override {
    core_.settle.note_activity(core_.environment);
    return replacer_.write_window(content, window, from, stop);
  }
  Status truncate(Content& content, std::uint64_t size_bytes, const Stop& stop) override {
    return replacer_.truncate(content, size_bytes, stop);
  }
  Status grow(Content& content, std::uint64_t size_bytes) override { return replacer_.grow(content, size_bytes); }
  Status punch(Content& content, std::uint64_t offset, std::uint64_t length, const Stop& stop) override {
    return replacer_.punch(content, offset, length, stop);
  }
  Result<std::uint64_t> next_data(Content& content, std::uint64_t offset) override {
    return survey_.next_data(content, offset);
  }
  Result<std::uint64_t> next_hole(Content& content, std::uint64_t offset) override {
    return survey_.next_hole(content, offset);
  }
  Status write_back(Content& content) override {
    core_.settle.note_activity(core_.environment);
    WriteBack::note_sync(content);
    return write_back_.write_back(content);
  }
  Result<std::uint64_t> settle(Content& content, std::uint64_t most_bytes, bool all) override {
    return replacer_.settle(content, most_bytes, all);
  }
  Status write_back_all(std::int64_t at_least_age_ns) override { return write_back_.write_back_all(at_least_age_ns); }
  Result<LayoutRows> layout(Content& content, const LayoutRequest& request, const Stop& stop) override {
    return survey_.layout(content, request, stop);
  }
  Result<std::vector<layout::ExtentPlace>> places_of(Content& content,
                                                     const std::vector<geometry::Coord>& units) override {
    return survey_.places_of(content, units);
  }
  Result<WindowPlan> plan(Content& content, const geometry::Window& window, const Stop& stop) override {
    return survey_.plan(content, window, stop);
  }

  Result<layout::Merit> merit(Content& content, const Stop& stop) override { return survey_.merit(content, stop); }

  Result<layout::DefragPlan> plan_defrag(Content& content, std::uint64_t from) override {
    return survey_.plan_defrag(content, from);
  }
  Result<MoveOutcome> move(Content& content, const MoveRequest& request) override {
    return mover_.move(content, request);
  }

  std::vector<std::uint64_t> objects_to_return() const override { return core_.left.objects(core_.store.generation()); }
  std::uint64_t extents_to_return() const override { return core_.left.count(); }
  Result<ReturnOutcome> return_extents(Content& content, const Pace& pace) override {
    return returner_.run(content, pace);
  }
  void forget_returns(std::uint64_t object) override { core_.left.forget(object); }
  void forget_all_returns() override { core_.left.forget_all(); }
  bool is_quiet() const override { return core_.is_quiet(); }

  bool zeroes_lost() const override { return core_.options.zeros_for_lost && core_.store.read_only(); }

  CacheStats cache_stats() const override {
    return {core_.cache.used_bytes(), core_.dirty_bytes.load(), core_.cache.hits(),
            core_.cache.misses(),     core_.cache.evictions(),  core_.options.cache_bytes};
  }

 private:
  // What has not been written is given up.
  void drop_dirty(Content& content) {
    GridBox all;
    all.last.fill(UINT64_MAX);
    const GridLock::Hold hold(content.writers, content.rank, all, GridLock::Mode::kExclusive);
    const Claims claims(content, all);
    const ClosedGate closed(content.gate);  // what is read ahead has its units until it has arrived
    for (const UnitPtr& unit : claims.units()) {
      {
        const std::lock_guard lock(unit->mutex);
        write_back_.note_clean(content, *unit);
        unit->buffer = BufferRef();
        unit->valid.clear();
        unit->complete = false;
      }
      core_.cache.erase(unit->key);
    }
    {
      // Who links at this moment has ended before this returns, and nobody links from here on: the inode may go.
      const std::lock_guard linking(content.linking);
      const std::lock_guard lock(content.state_mutex);
      content.linked_size = std::max(content.linked_size, content.size.load(std::memory_order_acquire));
    }
    write_back_.forget_if_clean(content);
    write_back_.wake_waiters();
  }

  Core core_;
  Loader loader_{core_};
  WriteBack write_back_{core_, loader_};
  Reader reader_{core_, loader_};
  Writer writer_{core_, loader_, write_back_};
  Replacer replacer_{core_, loader_, write_back_, writer_};
  Survey survey_{core_};
  Mover mover_{core_};
  Returner returner_{core_, mover_};
  std::optional<Settler> settler_;
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(store::Store& store, const EngineOptions& options,
                                               Environment& environment) {
  if (options.cache_bytes < kLeastCacheBytes) return {Errc::kOutOfRange, "cache of less than 1 MiB"};
  if (options.largest_request_bytes < device::kAlignment)
    return {Errc::kOutOfRange, "largest request below 4096 bytes"};
  const unsigned asked = options.decode_threads > 0 ? options.decode_threads : std::thread::hardware_concurrency();
  const unsigned threads = std::clamp(asked, 1u, kMostThreads);
  return std::unique_ptr<Engine>(std::make_unique<EngineImpl>(store, options, environment, threads));
}

}  // namespace mdfs::engine
