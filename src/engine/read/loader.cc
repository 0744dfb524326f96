// Loading: locks of cache blocks, and the calls that wait.
// SPDX-License-Identifier: Apache-2.0
#include "engine/read/loader.h"

#include <algorithm>
#include <chrono>

#include "base/stop.h"
#include "device/urgency.h"
#include "engine/read/load_operation.h"

namespace mdfs::engine {

namespace {

constexpr std::chrono::milliseconds kHurryAgain{5};
constexpr std::size_t kMostWaiting = 64;  // plans ahead of readers; readers start the others themselves

enum class LockOutcome : std::uint8_t { kCovered, kBusy, kLocked };

bool covers_all(const CacheBlock& block, const std::vector<ByteRanges::Range>& ranges) {
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](const ByteRanges::Range& range) { return block.covers(range.begin, range.end); });
}

// The numbers of the parts under the ranges that are not wholly valid.
std::vector<std::uint32_t> missing_parts(const OpenObject& object, const CacheBlock& block,
                                         const std::vector<ByteRanges::Range>& ranges) {
  std::vector<std::uint32_t> parts;
  for (const ByteRanges::Range& range : ranges)
    for (std::uint32_t part = range.begin / object.part_bytes; part * object.part_bytes < range.end; ++part) {
      const std::uint32_t begin = part * object.part_bytes;
      const std::uint32_t end = std::min(begin + object.part_bytes, object.extent_bytes);
      if (!block.covers(begin, end)) parts.push_back(part);
    }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts;
}

// `buffer` is set when all is there; `fetch` when this thread is to load it.
LockOutcome lock_missing(const OpenObject& object, const Want& want, std::size_t number, BufferRef& buffer,
                         std::unique_ptr<Fetch>& fetch) {
  CacheBlock& block = *want.block;
  const std::lock_guard lock(block.mutex);
  if (covers_all(block, want.ranges)) {
    buffer = block.buffer;
    return LockOutcome::kCovered;
  }
  if (block.loading) return LockOutcome::kBusy;
  block.loading = true;
  fetch = std::make_unique<Fetch>();
  fetch->block = want.block;
  fetch->coord = want.coord;
  fetch->want = number;
  fetch->kept = want.stored;
  fetch->as_frame = want.as_frame;
  fetch->parts = missing_parts(object, block, want.ranges);
  return LockOutcome::kLocked;
}

// The wants of a transfer, each cache block once.
std::vector<Want> wants_of(const OpenObject& object, Cache& cache, const Transfer& transfer) {
  std::vector<std::uint32_t> order(transfer.parts.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return transfer.parts[a].extent < transfer.parts[b].extent;
  });
  std::vector<Want> wants;
  wants.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Transfer::Part& part = transfer.parts[order[i]];
    if (i == 0 || transfer.parts[order[i - 1]].extent != part.extent)
      wants.push_back({cache.find_or_create(object.key_of(part.extent)), part.piece.extent, {}});
    const std::vector<ByteRanges::Range> touched = parts_under(object, part.piece.in_extent);
    wants.back().ranges.insert(wants.back().ranges.end(), touched.begin(), touched.end());
  }
  return wants;
}

// Memory that loading a cache block may need: the cache block, and its stored form.
std::size_t load_bytes(const Core& core, const OpenObject& object) {
  std::size_t beside = object.may_have_strips ? object.capacity_bytes : 0;
  // Of an absent disk extents are made from the other pieces of their groups.
  const std::size_t members = object.group_members.load(std::memory_order_relaxed);
  if (members > 1 && core.absent_disks.load(std::memory_order_relaxed) != 0) beside += members * object.capacity_bytes;
  return beside +
         (object.is_raw() || !object.is_image() ? object.capacity_bytes : 2 * std::size_t{object.capacity_bytes});
}

}  // namespace

ByteBudget& Loader::budget() const {
  return device::urgency().kind == device::Urgency::Kind::kReserved ? core_.reserved_loads : core_.loads;
}

// Requests of other threads for the extent come as early as those of this thread would.
void Loader::hurry(const OpenObject& object, const geometry::Coord& extent) {
  const Result<MappedExtent> mapped = core_.extent_map.extent(object, extent, false);
  if (!mapped.ok()) return;  // the reader finds out
  std::vector<store::Run> runs;
  mapped->append_runs(runs);
  for (const store::Run& run : runs) core_.store.hurry(run, device::urgency());
}

// A reader with a deadline does not wait behind all that the disks have to do before an ordinary load. That may not
// have come to its requests yet: they are hurried again.
Status Loader::wait_for_loads(const OpenObject& object, const std::vector<Want>& wants,
                              const std::vector<std::size_t>& busy, const Stop& stop) {
  const bool hurries = object.is_image() && device::urgency().kind == device::Urgency::Kind::kReserved;
  for (const std::size_t number : busy) {
    CacheBlock& block = *wants[number].block;
    std::unique_lock lock(block.mutex);
    const auto is_over = [&] { return !block.loading; };
    while (hurries && !is_over()) {
      lock.unlock();
      hurry(object, wants[number].coord);
      lock.lock();
      if (block.changed.wait_for(lock, kHurryAgain, is_over)) break;
      if (stop && stop()) return interrupted();
    }
    if (!wait_or_stop(block.changed, lock, kStopPoll, stop, is_over)) return interrupted();
  }
  return {};
}

Status Loader::load(OpenObject& object, std::vector<Want> wants, const Loaded& loaded, const Stop& stop) {
  Status first_error;
  start_planned_for(object, wants);
  const std::size_t each = load_bytes(core_, object);
  ByteBudget& memory = budget();
  const std::size_t at_once = most_at_once(memory, object);
  std::vector<std::size_t> open(wants.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
  while (!open.empty()) {
    std::vector<std::size_t> busy;
    for (std::size_t begin = 0; begin < open.size(); begin += at_once) {
      MDFS_TRY(stopped(stop));
      const std::size_t count = std::min(at_once, open.size() - begin);
      ByteBudget::Share share = memory.wait_for(count * each, kStopPoll, stop);
      if (!share) return interrupted();
      const InsideBarrier inside(object.barrier, stop);
      if (!inside) return interrupted();
      auto operation = std::make_shared<LoadOperation>(core_, object, &loaded);
      std::vector<std::pair<std::size_t, BufferRef>> covered;
      {
        // All of a thread's locks before any of another's: otherwise two threads share the blocks of one run, and
        // each merges its own alone.
        const std::lock_guard locking(object.planned_loads.locking);
        for (std::size_t i = begin; i < begin + count; ++i) {
          BufferRef buffer;
          std::unique_ptr<Fetch> fetch;
          const LockOutcome outcome = lock_missing(object, wants[open[i]], open[i], buffer, fetch);
          if (outcome == LockOutcome::kCovered) covered.emplace_back(open[i], std::move(buffer));
          if (outcome == LockOutcome::kLocked) operation->add(std::move(fetch));
          if (outcome == LockOutcome::kBusy)
            busy.push_back(open[i]);
          else
            wants[open[i]].block.reset();
        }
      }
      for (const auto& [number, buffer] : covered) loaded(number, buffer);
      covered.clear();
      Status status = operation->run(stop, share);
      if (!status.ok() && status.error().code == Errc::kCancelled) return status;
      if (!status.ok() && first_error.ok()) first_error = std::move(status);
    }
    if (!first_error.ok()) return first_error;
    MDFS_TRY(wait_for_loads(object, wants, busy, stop));
    open = std::move(busy);
  }
  return {};
}

std::size_t Loader::most_at_once(const ByteBudget& budget, const OpenObject& object) const {
  return std::max<std::size_t>(1, budget.limit_bytes() / 2 / load_bytes(core_, object));
}

void Loader::start_later(const std::shared_ptr<OpenObject>& object, PlannedLoad plan) {
  PlannedLoads& planned = object->planned_loads;
  {
    const std::lock_guard locking(planned.locking);
    if (planned.waiting.size() >= kMostWaiting) return;
    plan.number = ++planned.last_number;
    planned.waiting.push_back(plan);
    ++planned.count;
  }
  const std::uint64_t number = plan.number;
  if (core_.background.post_if_fewer(kMostWaiting, [this, object, number] { start_planned(object, number); })) return;
  const std::lock_guard locking(planned.locking);
  planned.count -= planned.waiting.remove_if([&](const PlannedLoad& one) { return one.number == number; });
}

void Loader::start_planned(const std::shared_ptr<OpenObject>& object, std::uint64_t number) {
  PlannedLoads& planned = object->planned_loads;
  Operations operations;
  {
    const InsideBarrier inside(object->barrier);
    const std::lock_guard locking(planned.locking);
    const auto found = std::find_if(planned.waiting.begin(), planned.waiting.end(),
                                    [&](const PlannedLoad& one) { return one.number == number; });
    if (found == planned.waiting.end()) return;  // a reader was faster
    lock_plan(object, *found, operations);
    planned.waiting.erase(found);
    --planned.count;
  }
  for (const std::shared_ptr<LoadOperation>& operation : operations) operation->start();
}

void Loader::start_planned_for(OpenObject& object, const std::vector<Want>& wants) {
  PlannedLoads& planned = object.planned_loads;
  if (planned.count.load(std::memory_order_acquire) == 0) return;
  Operations operations;
  {
    const InsideBarrier inside(object.barrier);
    const std::lock_guard locking(planned.locking);
    for (auto plan = planned.waiting.begin(); plan != planned.waiting.end();) {
      const bool needed = std::any_of(wants.begin(), wants.end(), [&](const Want& want) {
        return plan->extents.contains(object.rank, want.coord);
      });
      if (!needed) {
        ++plan;
        continue;
      }
      lock_plan(object.shared_from_this(), *plan, operations);
      plan = planned.waiting.erase(plan);
      --planned.count;
    }
  }
  for (const std::shared_ptr<LoadOperation>& operation : operations) operation->start();
}

void Loader::lock_plan(const std::shared_ptr<OpenObject>& object, const PlannedLoad& plan, Operations& operations) {
  static const Loaded nothing = [](std::size_t, const BufferRef&) {};
  const std::vector<Want> wants = wants_of(
      *object, core_.cache,
      plan.box ? plan_window(*object, *plan.box, 0, plan.bytes) : plan_range(*object, plan.offset, plan.bytes));
  const std::size_t each = load_bytes(core_, *object);
  const std::size_t at_once = most_at_once(core_.loads, *object);
  for (std::size_t begin = 0; begin < wants.size(); begin += at_once) {
    const std::size_t count = std::min(at_once, wants.size() - begin);
    ByteBudget::Share share = core_.loads.try_for(count * each);
    if (!share) return;
    auto operation = std::make_shared<LoadOperation>(core_, *object, &nothing);
    object->barrier.enter_again();
    operation->keep(object, std::move(share));
    for (std::size_t i = begin; i < begin + count; ++i) {
      BufferRef buffer;
      std::unique_ptr<Fetch> fetch;
      if (lock_missing(*object, wants[i], i, buffer, fetch) == LockOutcome::kLocked) operation->add(std::move(fetch));
    }
    operations.push_back(std::move(operation));
  }
}

Status Loader::load_whole(OpenObject& object, const std::vector<std::pair<CacheBlockPtr, geometry::Coord>>& blocks) {
  std::vector<Want> wants;
  wants.reserve(blocks.size());
  for (const auto& [block, coord] : blocks) wants.push_back({block, coord, {{0, object.extent_bytes}}});
  return load(object, std::move(wants), [](std::size_t, const BufferRef&) {});
}

}  // namespace mdfs::engine
