// A machine with its disks and an image on them: which requests a window makes, and what each costs where.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "model/engine.h"
#include "model/machine.h"
#include "model/route.h"

namespace mdfs::sim {

// The modelled disks of a mount run on the same engine and route.
using model::Engine;
using model::Listener;
using model::Random;
using model::Request;  // of an extent, all of it or a stripe unit's worth
using model::Route;
using model::StationStatistics;
using model::Step;
using model::TieOrder;

// An image as it lies on real disks: what a mount tells of it, to predict what reading a window from there takes.
struct StoredImage {
  struct Place {
    unsigned disk = 0;
    std::uint64_t address_bytes = 0;
    std::uint64_t stored_bytes = 0;  // 0: a hole, which costs nothing
  };
  std::vector<Place> places;            // by extent, row-major
  std::vector<double> disk_bytes;       // by disk: heads move as far as the address of this size, on their capacity
  std::uint64_t sub_block_bytes = 0;    // so much of an extent is read at least; 0: all of it
  std::uint64_t block_bytes = 4096;     // reads are multiples of it
  std::uint64_t max_request_bytes = 0;  // neighbours on a disk are read in one request, of at most this
};

struct Setup {
  model::Machine machine;
  unsigned disks = 1;
  geometry::Geometry image;
  // Absent: the machine's row offset if it has one for this number of disks and the image is plane, else the
  // placement that a mount would choose.
  std::optional<unsigned> row_offset;
  std::optional<unsigned> plane_offset;
  bool uniform_seeks = false;  // draw each "seek t" from 0 .. 2t
  // Where extents lie instead of where the placement says, and requests as a mount makes them; full and part of a
  // request are then its own bytes.
  std::shared_ptr<const StoredImage> stored;
};

// An image of bytes_per_pixel bytes a sample, from texts like "8192x8192" and "128x128". An empty extent, or one of
// another rank that is only a default (`extent_given` false), becomes the mount's default extent.
Result<geometry::Geometry> make_image(const std::string& shape, const std::string& extent, bool extent_given,
                                      unsigned bytes_per_pixel);
// The machine with the disks and the image that its file names.
Result<Setup> default_setup(const model::Machine& machine);

// Row-major number of an extent in the grid of its image.
std::uint64_t extent_number(unsigned rank, const geometry::Coord& grid, const geometry::Coord& extent);

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
  const model::Topology& topology() const { return route_->topology(); }
  std::string placement_text() const;

  // `base` tells images apart: it shifts the first disk, or picks the volume of a striped machine.
  Split split(const geometry::Window& window, std::uint64_t base) const;
  // Of several windows as one request: an extent under two of them is read once.
  Split split(std::span<const geometry::Window> windows, std::uint64_t base) const;

  const Route& route() const { return *route_; }
  std::uint64_t outstanding() const { return setup_.machine.outstanding; }

  // Seconds of service that a request takes at each resource on average, without heads and queues.
  std::vector<double> mean_demand_s(const Request& request) const;

 private:
  System() = default;
  Status place();
  Status check_stored() const;
  void split_extent(std::uint64_t index, const geometry::Coord& place, double part, std::uint64_t base,
                    Split& split) const;
  void split_striped(std::uint64_t index, double part_bytes, std::uint64_t base, Split& split) const;
  Split split_stored(std::span<const geometry::Window> windows) const;
  void rank_extents();
  double address_of(std::uint64_t index, unsigned disk) const;

  Setup setup_;
  std::optional<Route> route_;  // there once made
  geometry::Placement placement_;
  // By extent in row-major order: how many before it lie on the same disk. Only for machines with heads, and images of
  // at most kMaxRanked extents; else extents are taken to go round the disks.
  std::vector<std::uint32_t> rank_;
};

}  // namespace mdfs::sim
