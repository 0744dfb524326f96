// Runs windows through a system: arrival, requests, completion and statistics.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/extent_cache.h"
#include "sim/system.h"

namespace mdfs::sim {

// The result of one request for windows.
struct WindowRecord {
  double arrival_s = 0;
  double done_s = -1;  // below 0: not done
  unsigned client = 0;
  std::uint32_t extents = 0;
  double window_bytes = 0;
  double read_bytes = 0;  // by its own requests
  double delay_s() const { return done_s - arrival_s; }
};

// Use of one instance of a resource.
struct InstanceUse {
  double utilization = 0;  // of all its servers
  double busy_s = 0;
  double mean_queue = 0;  // waiting, not in service
  std::uint64_t max_queue = 0;
  std::uint64_t served = 0;
  bool lost = false;  // of a lost disk: it serves nothing, and counts in no mean
};
// Use of all instances of a resource, by index.
struct ResourceUse {
  std::string name;
  std::vector<InstanceUse> instances;
  double mean_utilization() const;
  double max_utilization() const;
};
// Of the stations of a system on an engine, since its statistics were cleared.
std::vector<ResourceUse> use_of(const Engine& engine, const System& system);
// The name of the resource with the highest mean utilization.
std::string bottleneck(const std::vector<ResourceUse>& use);
// The mean utilization, 0..1, of the resource with this name.
double utilization_of(const std::vector<ResourceUse>& use, const std::string& name);

class Simulation;
// Decides about requests: called from Simulation::run(), it may submit windows and set alarms.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual void window_done(Simulation& simulation, std::size_t record) = 0;
  virtual void alarm(Simulation& simulation, std::uint64_t token) = 0;
};

// One run of windows through a system, which outlives it. The cache of the mount is empty at first. Times are in
// seconds from the start of the run. One thread.
class Simulation final : private Listener {
 public:
  Simulation(const System& system, std::uint64_t seed, TieOrder ties = TieOrder::kInsertion);

  double now_s() const { return engine_.now_s(); }
  // Requests a window at that time, not before now. Returns the index of its record. `base` as of System::split().
  std::size_t submit_at(double time_s, const geometry::Window& window, unsigned client = 0, std::uint64_t base = 0);
  // Several windows of an image as one request. `image` is a system of the same machine and disks with another image on
  // it; it outlives the simulation. A write goes to the disks, whatever the cache holds.
  std::size_t submit_at(double time_s, std::vector<geometry::Window> windows, unsigned client, std::uint64_t base,
                        const System& image, bool write = false);
  // Requests that are no window's, such as those of work in the background: all at once, without the stages of windows.
  // The record has no bytes of a window.
  std::size_t submit_requests_at(double time_s, std::vector<Request> requests, unsigned client);
  void alarm_at(double time_s, std::uint64_t token) { engine_.alarm(time_s, token); }
  void run(Workload* workload = nullptr);

  const std::vector<WindowRecord>& records() const { return records_; }  // in order of submission
  std::uint64_t events() const { return engine_.events(); }
  // Use since clear_use() or the start, up to now.
  void clear_use() { engine_.clear_statistics(); }
  std::vector<ResourceUse> use() const { return use_of(engine_, system_); }

 private:
  static constexpr std::uint64_t kArrival = std::uint64_t{1} << 62;
  static constexpr std::uint32_t kBefore = UINT32_MAX;
  static constexpr std::uint32_t kAfter = UINT32_MAX - 1;
  struct Live {  // a window that is under way, or will be
    const System* image = nullptr;
    std::vector<geometry::Window> windows;
    std::uint64_t base = 0;
    bool write = false;
    bool given = false;  // the split was given, and is no window's
    std::size_t record = 0;
    Split split;
    std::vector<std::uint32_t> left;  // requests of each extent
    std::size_t next_request = 0;
    LoadId first_load = 0;                 // of its extents, for the cache; 0: without one. Those of split.made follow.
    std::vector<std::uint32_t> made_left;  // requests of each of split.made
    std::vector<std::pair<std::uint32_t, std::uint32_t>> made_of_requests;  // request, number in split.made; sorted
    // Extents, its own and those that other windows read for it; and one for the stages before them.
    std::uint32_t parts_left = 0;
  };

  void job_done(Engine& engine, std::uint64_t token) override;
  void alarm(Engine& engine, std::uint64_t token) override;
  void arrive(std::uint32_t slot);
  bool counts_queues() const { return system_.is_protected(); }
  // The extents that must be read. The cache gets them; the window also waits for extents that are on their way.
  Split split_past_cache(std::uint32_t slot, std::uint32_t& awaited);
  // The bytes of an extent have come: for this window, and for those that wait for them.
  void extent_done(std::uint32_t slot, std::uint32_t extent);
  // Moves those that wait for a load to `waiting`.
  void end_load(LoadId load, std::vector<std::uint32_t>& waiting);
  void begin(std::uint32_t slot);  // after the stages before the extents
  void issue(std::uint32_t slot, std::uint64_t extents);
  void part_done(std::uint32_t slot);
  bool whole_window(Route::Phase phase, std::uint32_t slot);
  void finish(std::uint32_t slot);
  void complete(std::uint32_t slot);

  const System& system_;
  Engine engine_;
  Workload* workload_ = nullptr;
  std::vector<WindowRecord> records_;
  std::vector<Live> live_;
  std::vector<std::uint32_t> free_;
  std::vector<Step> steps_;
  std::vector<double> queued_;  // with copies: bytes that disks have to do, with kBytesOfAnAccess for each request
  ExtentCache cache_;
  LoadId next_load_ = 1;
  std::unordered_map<LoadId, std::vector<std::uint32_t>> under_way_;  // requests for the cache; who else waits for each
};

}  // namespace mdfs::sim
