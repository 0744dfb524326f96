// The life of a window: stages before, its extents (all at once or a few at a time), stages after.
// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/slots.h"

namespace mdfs::sim {

double ResourceUse::mean_utilization() const {
  double sum = 0;
  unsigned count = 0;
  for (const InstanceUse& instance : instances) {
    if (instance.lost) continue;
    sum += instance.utilization;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

double ResourceUse::max_utilization() const {
  double most = 0;
  for (const InstanceUse& instance : instances) most = std::max(most, instance.utilization);
  return most;
}

std::string bottleneck(const std::vector<ResourceUse>& use) {
  const auto most = std::max_element(use.begin(), use.end(), [](const ResourceUse& a, const ResourceUse& b) {
    return a.mean_utilization() < b.mean_utilization();
  });
  return most == use.end() ? "" : most->name;
}

double utilization_of(const std::vector<ResourceUse>& use, const std::string& name) {
  for (const ResourceUse& resource : use)
    if (resource.name == name) return resource.mean_utilization();
  return 0;
}

Simulation::Simulation(const System& system, std::uint64_t seed, TieOrder ties)
    : system_(system), engine_(system.route().max_steps(), seed, ties), cache_(system.setup().cache_bytes) {
  if (counts_queues()) queued_.resize(system.setup().disks);
  system_.route().add_stations(engine_);
}

std::size_t Simulation::submit_at(double time_s, const geometry::Window& window, unsigned client, std::uint64_t base) {
  return submit_at(time_s, std::vector{window}, client, base, system_);
}

std::size_t Simulation::submit_at(double time_s, std::vector<geometry::Window> windows, unsigned client,
                                  std::uint64_t base, const System& image, bool write) {
  const std::uint32_t slot = take_slot(live_, free_);
  const std::size_t record = records_.size();
  live_[slot].image = &image;
  live_[slot].windows = std::move(windows);
  live_[slot].base = base;
  live_[slot].write = write;
  live_[slot].given = false;
  live_[slot].first_load = 0;
  live_[slot].record = record;
  records_.push_back({.arrival_s = time_s, .client = client});
  engine_.alarm(time_s, kArrival | slot);
  return record;
}

std::size_t Simulation::submit_requests_at(double time_s, std::vector<Request> requests, unsigned client) {
  const std::uint32_t slot = take_slot(live_, free_);
  Live& live = live_[slot];
  live.image = &system_;
  live.windows.clear();
  live.write = false;
  live.given = true;
  live.first_load = 0;
  live.record = records_.size();
  live.split = {};
  live.split.requests = std::move(requests);
  for (Request& request : live.split.requests) {
    request.extent = live.split.extents++;
    live.split.full_bytes += request.full_bytes;
  }
  records_.push_back({.arrival_s = time_s, .client = client});
  engine_.alarm(time_s, kArrival | slot);
  return live.record;
}

void Simulation::run(Workload* workload) {
  workload_ = workload;
  engine_.run(*this);
}

void Simulation::alarm(Engine&, std::uint64_t token) {
  if ((token & kArrival) != 0) {
    arrive(static_cast<std::uint32_t>(token & ~kArrival));
  } else if (workload_ != nullptr) {
    workload_->alarm(*this, token);
  }
}

void Simulation::arrive(std::uint32_t slot) {
  Live& live = live_[slot];
  std::uint32_t awaited = 0;
  if (!live.given)
    live.split = cache_.enabled() && live.image->reads_as_mount() ? split_past_cache(slot, awaited)
                                                                  : live.image->split(live.windows, live.base, queued_);
  live.left.assign(live.split.extents, 0);
  for (const Request& request : live.split.requests) ++live.left[request.extent];
  live.next_request = 0;
  live.parts_left = live.split.extents + awaited + 1;
  WindowRecord& record = records_[live.record];
  record.extents = live.split.extents;
  record.window_bytes = live.split.part_bytes;
  record.read_bytes = live.split.full_bytes;
  if (live.given || !whole_window(Route::Phase::kBefore, slot)) begin(slot);
}

void Simulation::begin(std::uint32_t slot) {
  issue(slot, live_[slot].given ? 0 : system_.outstanding());
  part_done(slot);
}

Split Simulation::split_past_cache(std::uint32_t slot, std::uint32_t& awaited) {
  Live& live = live_[slot];
  const auto key = [&](const ReadUnit& unit) { return ExtentCache::Key{live.image, live.base, unit.extent}; };
  double part_bytes = 0;
  std::vector<ReadUnit> missing;
  std::vector<LoadId> loads;
  for (const ReadUnit& unit : live.image->units_under(live.windows, live.base, part_bytes, queued_)) {
    const LoadId load = live.write ? 0 : cache_.find(key(unit), unit.unit);
    if (load == 0)
      missing.push_back(unit);
    else if (under_way_.contains(load))
      loads.push_back(load);
  }
  std::sort(loads.begin(), loads.end());
  loads.erase(std::unique(loads.begin(), loads.end()), loads.end());
  for (const LoadId load : loads) under_way_[load].push_back(slot);
  awaited = static_cast<std::uint32_t>(loads.size());

  std::vector<std::size_t> request_of_unit;
  Split split = live.image->split_units(missing, part_bytes, &request_of_unit);
  live.first_load = next_load_;
  next_load_ += split.requests.size();
  for (LoadId load = live.first_load; load < next_load_; ++load) under_way_.try_emplace(load);
  // What is made from several requests is there after the last of them.
  std::vector<LoadId> load_of_unit(missing.size());
  for (std::size_t i = 0; i < missing.size(); ++i) load_of_unit[i] = live.first_load + request_of_unit[i];
  live.made_left.clear();
  live.made_of_requests.clear();
  for (const Split::Made& made : split.made) {
    const auto number = static_cast<std::uint32_t>(live.made_left.size());
    for (const std::uint32_t request : made.requests) live.made_of_requests.emplace_back(request, number);
    live.made_left.push_back(static_cast<std::uint32_t>(made.requests.size()));
    under_way_.try_emplace(next_load_);
    load_of_unit[made.unit] = next_load_++;
  }
  std::sort(live.made_of_requests.begin(), live.made_of_requests.end());
  for (std::size_t i = 0; i < missing.size(); ++i)
    cache_.put(key(missing[i]), missing[i].unit, missing[i].memory_bytes, load_of_unit[i]);
  return split;
}

// Starts the stages of the window as a whole; false if there are none in this phase.
bool Simulation::whole_window(Route::Phase phase, std::uint32_t slot) {
  const Split& split = live_[slot].split;
  const Request all{.disk = split.requests.empty() ? 0 : split.requests.front().disk,
                    .extent = 0,
                    .full_bytes = split.full_bytes,
                    .part_bytes = split.part_bytes,
                    .address_bytes = 0};
  system_.route().steps(phase, all, engine_.random(), steps_);
  if (steps_.empty()) return false;
  const std::uint32_t mark = phase == Route::Phase::kBefore ? kBefore : kAfter;
  engine_.start(steps_, (std::uint64_t{slot} << 32) | mark);
  return true;
}

// Starts the requests of the next `extents` extents; 0 means all. Requests that no stage holds up (cache hits of a
// machine that charges nothing for them) are over at once and make room for the next.
void Simulation::issue(std::uint32_t slot, std::uint64_t extents) {
  Live& live = live_[slot];
  const auto& requests = live.split.requests;
  const bool all = extents == 0;
  std::vector<std::uint32_t> at_once;  // extents that are over already
  while (live.next_request < requests.size()) {
    const Request& request = requests[live.next_request];
    const bool first_of_extent = live.next_request == 0 || request.extent != requests[live.next_request - 1].extent;
    if (first_of_extent && !all && extents-- == 0) break;
    ++live.next_request;
    system_.route().steps(Route::Phase::kExtent, request, engine_.random(), steps_);
    if (!steps_.empty()) {
      if (counts_queues()) queued_[request.disk] += request.full_bytes + kBytesOfAnAccess;
      engine_.start(steps_, (std::uint64_t{slot} << 32) | request.extent);
    } else if (--live.left[request.extent] == 0) {
      at_once.push_back(request.extent);
      ++extents;
    }
  }
  for (const std::uint32_t extent : at_once) extent_done(slot, extent);
}

// A window that ends may start others, which move what `live_` holds: no reference is kept over that.
void Simulation::extent_done(std::uint32_t slot, std::uint32_t extent) {
  std::vector<std::uint32_t> waiting;
  if (Live& live = live_[slot]; live.first_load != 0) {
    end_load(live.first_load + extent, waiting);
    const auto& all = live.made_of_requests;
    for (auto one = std::lower_bound(all.begin(), all.end(), std::pair(extent, 0u));
         one != all.end() && one->first == extent; ++one)
      if (--live.made_left[one->second] == 0)
        end_load(live.first_load + live.split.requests.size() + one->second, waiting);
  }
  part_done(slot);
  for (const std::uint32_t other : waiting) part_done(other);
}

void Simulation::end_load(LoadId load, std::vector<std::uint32_t>& waiting) {
  const auto found = under_way_.find(load);
  waiting.insert(waiting.end(), found->second.begin(), found->second.end());
  under_way_.erase(found);
}

void Simulation::part_done(std::uint32_t slot) {
  if (--live_[slot].parts_left == 0) finish(slot);
}

void Simulation::finish(std::uint32_t slot) {
  if (live_[slot].given || !whole_window(Route::Phase::kAfter, slot)) complete(slot);
}

void Simulation::job_done(Engine&, std::uint64_t token) {
  const auto slot = static_cast<std::uint32_t>(token >> 32);
  const auto extent = static_cast<std::uint32_t>(token);
  Live& live = live_[slot];
  if (extent == kBefore) {
    begin(slot);
    return;
  }
  if (extent == kAfter) {
    complete(slot);
    return;
  }
  if (counts_queues()) {  // each request counts as an extent
    const Request& request = live.split.requests[extent];
    queued_[request.disk] -= request.full_bytes + kBytesOfAnAccess;
  }
  if (--live.left[extent] > 0) return;
  const bool more = live.next_request < live.split.requests.size();  // then the window does not end here
  extent_done(slot, extent);
  if (more && !live.given && system_.outstanding() != 0) issue(slot, 1);
}

void Simulation::complete(std::uint32_t slot) {
  const std::size_t record = live_[slot].record;
  records_[record].done_s = engine_.now_s();
  free_.push_back(slot);
  if (workload_ != nullptr) workload_->window_done(*this, record);
}

std::vector<ResourceUse> use_of(const Engine& engine, const System& system) {
  const double span = engine.now_s() - engine.cleared_s();
  std::vector<ResourceUse> result;
  const auto& resources = system.setup().machine.resources;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    ResourceUse use{.name = resources[i].name, .instances = {}};
    for (unsigned instance = 0; instance < system.topology().count[i]; ++instance) {
      const StationStatistics statistics = engine.statistics(system.route().station(i, instance));
      InstanceUse one;
      one.busy_s = statistics.busy_s;
      one.utilization = span > 0 ? statistics.busy_s / (span * resources[i].servers) : 0;
      one.mean_queue = span > 0 ? statistics.queue_area_s / span : 0;
      one.max_queue = statistics.max_queue;
      one.served = statistics.served;
      one.lost = resources[i].per_disk && system.setup().lost_disk == instance;
      use.instances.push_back(one);
    }
    result.push_back(std::move(use));
  }
  return result;
}

}  // namespace mdfs::sim
