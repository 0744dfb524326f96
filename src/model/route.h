// The route of a request through a machine: its stations, and the service time at each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/engine.h"
#include "model/machine.h"

namespace mdfs::model {

// A read of one disk. full: bytes of the whole extent; part: requested bytes.
struct Request {
  unsigned disk = 0;
  std::uint32_t extent = 0;  // number within its window; for the caller
  double full_bytes = 0;
  double part_bytes = 0;
  double address_bytes = 0;  // on the disk, for its head
  double span_bytes = -1;    // over which the head moves; below 0: full_bytes
};

// A machine compiled for a number of disks. Simulated windows and modelled disks of a mount take the same routes.
// Immutable once made; any thread.
class Route {
 public:
  enum class Phase { kBefore, kExtent, kAfter };  // stages of whole windows lie before or after those of extents

  // disks in 1..kMaxDisks (abort). uniform_seeks draws each "seek t" from 0 .. 2 t.
  Route(Machine machine, unsigned disks, bool uniform_seeks);

  const Machine& machine() const { return machine_; }
  unsigned disks() const { return disks_; }
  const Topology& topology() const { return topology_; }
  // Adds the stations, in the order of resources and their instances, to an engine without stations (else abort).
  void add_stations(Engine& engine) const;
  // The engine's index of the station of an instance.
  std::uint32_t station(std::size_t resource, unsigned instance) const { return first_station_[resource] + instance; }
  unsigned max_steps() const { return static_cast<unsigned>(machine_.stages.size()); }
  bool has(Phase phase) const;
  // True if the times of requests depend on the seed.
  bool is_random() const;

  // The steps of one request, with random times drawn; for phases of a whole window `request` holds the sums, and
  // stations are those of its disk. Replaces the contents of `steps`.
  void steps(Phase phase, const Request& request, Random& random, std::vector<Step>& steps) const;

 private:
  struct Plan {  // a stage with its constant terms added up
    std::size_t resource = 0;
    Phase phase = Phase::kExtent;
    When when = When::kAlways;
    double fixed_s = 0;
    double full_s_per_byte = 0;
    double part_s_per_byte = 0;
    bool head = false;
    std::vector<Cost> drawn;
    std::vector<Cost> zoned;  // transfers whose rate depends on the place on the disk
  };

  static void add_cost(const Cost& cost, bool uniform_seeks, Plan& plan);

  Machine machine_;
  unsigned disks_;
  Topology topology_;
  std::vector<std::uint32_t> first_station_;
  std::vector<Plan> plans_;
};

}  // namespace mdfs::model
