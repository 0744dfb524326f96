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
#include "device/read_pace.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "geometry/plan.h"
#include "model/engine.h"
#include "model/machine.h"
#include "model/route.h"
#include "sim/image_layout.h"
#include "sim/parity_layout.h"
#include "sim/stored_image.h"

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

struct Setup {
  model::Machine machine;
  unsigned disks = 1;
  geometry::Geometry image;
  // Absent: the machine's row offset if it has one for this number of disks and the image is plane, else the
  // placement that a mount would choose.
  std::optional<unsigned> row_offset;
  std::optional<unsigned> plane_offset;
  bool uniform_seeks = false;  // draw each "seek t" from 0 .. 2t
  // Stored size of an extent as a share of its bytes, above 0 and at most kMaxCompressedShare: a compressed image,
  // whose extents are read whole. Absent: a raw image.
  std::optional<double> compressed_share;
  std::uint64_t cache_bytes = 0;      // of the mount, for windows of one run; 0: every window is read from the disks
  unsigned copies = 1;                // of each extent: 1, or 2 on a machine that reads as a mount
  unsigned width = 1;                 // extents that share a parity, with one copy, on such a machine: 2, 4 or 8
  std::optional<unsigned> lost_disk;  // with two copies or parities: what it held is read from the other disks
  // Places of extents, which replace those of the placement, with stored sizes. Requests are those of a mount.
  std::shared_ptr<const StoredImage> stored;
};

// An image of bytes_per_pixel bytes a sample, from texts like "8192x8192" and "128x128". An empty extent, or one of
// another rank that is only a default (`extent_given` false), becomes the mount's default extent.
Result<geometry::Geometry> make_image(const std::string& shape, const std::string& extent, bool extent_given,
                                      unsigned bytes_per_pixel);
// The machine with the disks and the image that its file names.
Result<Setup> default_setup(const model::Machine& machine);

// The requests of a window, in order of issue.
struct Split {
  // By extent. As a mount reads, each request counts as an extent, whose full and part are the request's own bytes.
  std::vector<Request> requests;
  std::uint32_t extents = 0;
  double full_bytes = 0;  // of all requests
  double part_bytes = 0;  // of the window
  // Units that several requests bring, as numbers among those that were split.
  struct Made {
    std::size_t unit = 0;
    std::vector<std::uint32_t> requests;
  };
  std::vector<Made> made;
};

// The least that a mount reads: a sub-block of a raw extent, or a whole compressed extent.
struct ReadUnit {
  std::uint64_t extent = 0;        // number
  std::uint32_t unit = 0;          // of the extent
  std::uint64_t memory_bytes = 0;  // decoded
  geometry::PlanPart place;
  // Read instead, because its disk is lost: the same bytes of the other extents of its group, and of the parity.
  std::vector<geometry::PlanPart> others;
  bool operator<(const ReadUnit& other) const {
    return extent != other.extent ? extent < other.extent : unit < other.unit;
  }
  bool operator==(const ReadUnit& other) const { return extent == other.extent && unit == other.unit; }
};

// What a request costs beside its bytes counts as so many of them where copies are chosen, as in a mount.
inline constexpr auto kBytesOfAnAccess = static_cast<double>(device::kRequestBytes);

// Immutable once made; any thread.
class System {
 public:
  // kInvalidArgument, kTooBig: disks that do not fit the layout, a bad image.
  static Result<System> make(Setup setup);

  const Setup& setup() const { return setup_; }
  const model::Topology& topology() const { return route_->topology(); }
  std::string placement_text() const;
  const ImageLayout& layout() const { return layout_; }         // of a machine that places extents
  const ImageLayout& second_copies() const { return second_; }  // with two copies
  // With parities: behind all extents of the image, as second copies are. Of the image with base 0.
  const ParityLayout& parities() const { return *parities_; }
  std::uint64_t offset_of_parity(const ParityLayout::Group& group) const;
  bool is_protected() const { return setup_.copies == 2 || setup_.width > 1; }
  std::uint64_t step_bytes() const;           // from one extent to the next on a disk
  std::uint64_t checksums_of_extent() const;  // in its record on a mount
  // A read or write of so many bytes at a place of the sequence of the disk's bytes (ImageLayout::offset_of()).
  Request request_of(unsigned disk, std::uint64_t offset_bytes, std::uint64_t length_bytes) const;

  // `base` tells images apart: it shifts the first disk, or picks the volume of a striped machine.
  // With copies the choice between them counts what disks have to do before: `queued`, in bytes, by disk; empty:
  // they are idle.
  Split split(const geometry::Window& window, std::uint64_t base) const;
  // Of several windows as one request: an extent under two of them is read once.
  Split split(std::span<const geometry::Window> windows, std::uint64_t base, std::span<const double> queued = {}) const;

  // split() in two steps, for a reader with a cache; only if reads_as_mount().
  bool reads_as_mount() const;
  // The units that a mount without a cache reads for the windows, each once, ascending; `part_bytes` gets the bytes of
  // the windows.
  std::vector<ReadUnit> units_under(std::span<const geometry::Window> windows, std::uint64_t base, double& part_bytes,
                                    std::span<const double> queued = {}) const;
  // The requests that read these units. `request_of_unit`, if not null, gets the index of the last request with bytes
  // of each unit; for those in Split::made, of any.
  Split split_units(std::span<const ReadUnit> units, double part_bytes,
                    std::vector<std::size_t>* request_of_unit = nullptr) const;

  const Route& route() const { return *route_; }
  std::uint64_t outstanding() const { return setup_.machine.outstanding; }

 private:
  System() = default;
  Status place();
  Status check_stored() const;
  Status check_copies() const;
  Status check_parity() const;
  // The copy of an extent, if it has one.
  std::optional<ExtentPlace> copy_of(std::uint64_t number, const geometry::Coord& extent, std::uint64_t base) const;
  // Moves units to the copies of their extents where that makes the window faster.
  void choose_copies(std::vector<ReadUnit>& units, std::uint64_t base, std::span<const double> queued) const;
  unsigned disk_of_group(const ParityLayout::Group& group, std::uint64_t base) const;
  // Finds the other pieces of the groups of units on the lost disk.
  void find_others(std::vector<ReadUnit>& units, std::uint64_t base) const;
  Status choose_rules();  // before place(), which needs step_bytes()
  std::uint64_t stored_extent_bytes() const;
  void split_extent(std::uint64_t index, const geometry::Coord& place, double part, std::uint64_t base,
                    Split& split) const;
  void split_striped(std::uint64_t index, double part_bytes, std::uint64_t base, Split& split) const;
  // The place of an extent on its disk, in the bytes of plan_requests().
  ExtentPlace place_of(std::uint64_t number, const geometry::Coord& extent, std::uint64_t base) const;

  Setup setup_;
  std::optional<Route> route_;  // there once made
  ReadRules rules_;
  ImageLayout layout_;  // of machines that place extents
  ImageLayout second_;  // of the second copies, if there are any
  std::shared_ptr<const ParityLayout> parities_;
};

}  // namespace mdfs::sim
