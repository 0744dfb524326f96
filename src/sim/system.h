// A machine with its disks and an image on them: which requests a window makes, and what each costs where.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "model/machine.h"
#include "sim/engine.h"

namespace mdfs::sim {

struct Setup {
  model::Machine machine;
  unsigned disks = 1;
  geometry::Geometry image;
  // Absent: the machine's row offset if it has one for this number of disks and the image is plane, else the
  // placement that a mount would choose.
  std::optional<unsigned> row_offset;
  std::optional<unsigned> plane_offset;
  bool uniform_seeks = false;  // draw each "seek t" from 0 .. 2t
};

// An image of bytes_per_pixel bytes a sample, from texts like "8192x8192" and "128x128". An empty extent, or one of
// another rank that is only a default (`extent_given` false), becomes the mount's default extent.
Result<geometry::Geometry> make_image(const std::string& shape, const std::string& extent, bool extent_given,
                                      unsigned bytes_per_pixel);
// The machine with the disks and the image that its file names.
Result<Setup> default_setup(const model::Machine& machine);

// A read of one disk on behalf of an extent (of all of it, or of a stripe unit's worth).
struct Request {
  unsigned disk = 0;
  std::uint32_t extent = 0;  // number within the window
  double full_bytes = 0;
  double part_bytes = 0;
  double address_bytes = 0;  // on the disk
};

// What a window asks for, in order of issue.
struct Split {
  std::vector<Request> requests;  // by extent
  std::uint32_t extents = 0;
  double full_bytes = 0;  // of all extents
  double part_bytes = 0;  // of the window
};

// Immutable once made; any thread.
class System {
 public:
  // kInvalidArgument, kTooBig: disks that do not fit the layout, a bad image.
  static Result<System> make(Setup setup);

  const Setup& setup() const { return setup_; }
  const model::Topology& topology() const { return topology_; }
  std::string placement_text() const;

  // `base` tells images apart: it shifts the first disk, or picks the volume of a striped machine.
  Split split(const geometry::Window& window, std::uint64_t base) const;

  // Stations in the order of resources and their instances.
  void add_stations(Engine& engine) const;
  std::uint32_t station(std::size_t resource, unsigned instance) const { return first_station_[resource] + instance; }
  unsigned max_steps() const { return static_cast<unsigned>(setup_.machine.stages.size()); }
  std::uint64_t outstanding() const { return setup_.machine.outstanding; }

  enum class Phase { kBefore, kExtent, kAfter };
  // The steps of one request; for phases of a whole window `request` holds the sums, on disk 0's components.
  void steps(Phase phase, const Request& request, Random& random, std::vector<Step>& steps) const;

  // Seconds of service that a request takes at each resource on average, without heads and queues.
  std::vector<double> mean_demand_s(const Request& request) const;

 private:
  struct Plan {  // a stage with its constant terms added up
    std::size_t resource = 0;
    Phase phase = Phase::kExtent;
    model::When when = model::When::kAlways;
    double fixed_s = 0;
    double full_s_per_byte = 0;
    double part_s_per_byte = 0;
    bool head = false;
    std::vector<model::Cost> drawn;
  };

  System() = default;
  void compile();
  Status place();
  void split_striped(std::uint64_t index, double part_bytes, std::uint64_t base, Split& split) const;
  void rank_extents();
  double address_of(std::uint64_t index, unsigned disk) const;
  double draw_s(const model::Cost& cost, Random& random) const;

  Setup setup_;
  model::Topology topology_;
  geometry::Placement placement_;
  std::vector<std::uint32_t> first_station_;
  std::vector<Plan> plans_;
  // By extent in row-major order: how many before it lie on the same disk. Only for machines with heads, and images of
  // at most kMaxRanked extents; else extents are taken to go round the disks.
  std::vector<std::uint32_t> rank_;
};

}  // namespace mdfs::sim
