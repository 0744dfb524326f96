// A machine as data: resources with servers, and the stages that every extent request runs through.
// Machines come from TOML files (man page mdfs-machine(5)); the shipped ones are built in by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/cost.h"

namespace mdfs::model {

inline constexpr unsigned kMaxDisks = 4096;
inline constexpr std::size_t kMaxResources = 32;
inline constexpr std::size_t kMaxStages = 64;
inline constexpr std::size_t kMaxCosts = 16;  // of one stage
inline constexpr unsigned kMaxServers = 4096;
inline constexpr std::size_t kMaxMachineFileBytes = 1u << 20;

// The head of a disk: a request at the address where the last one ended costs nothing; any other costs
// track_s + (stroke_s - track_s) * sqrt(distance / capacity), and a rotation drawn from 0 .. rotation_s.
struct Head {
  double track_s = 0;
  double stroke_s = 0;
  double rotation_s = 0;
  double capacity_bytes = 0;
  bool operator==(const Head&) const = default;
  double seek_s(double distance_bytes) const;  // without rotation
  // The position of an address on the disk, 0..1.
  double place_of(double address_bytes) const;
};

// One kind of component: `count` alike FIFO queues, each with `servers` identical servers.
struct Resource {
  std::string name;
  bool per_disk = false;  // one for each disk; else at most `count`, shared by neighbours
  unsigned count = 1;
  std::optional<std::size_t> shared_by;  // index of the resource whose neighbours share one of these; the disks if none
  unsigned servers = 1;
  std::optional<Head> head;
  bool operator==(const Resource&) const = default;
};

enum class When { kAlways, kHit, kMiss };  // of the cache

// One visit of a request to a resource.
struct Stage {
  std::string name;
  std::size_t resource = 0;
  bool per_window = false;  // once a window, before or after its extents; full and part then are sums over them
  When when = When::kAlways;
  std::vector<Cost> costs;
  bool operator==(const Stage&) const = default;
};

// Places of extents on disks.
struct Layout {
  enum class Kind {
    kExtents,  // an extent is on one disk: (base + x + row_offset * y + plane_offset * z) mod disks
    kStriped,  // the file of extents is cut into units that go round a volume of `width` disks
  };
  Kind kind = Kind::kExtents;
  enum class Requests {
    kMount,    // as a mount reads: parts of raw extents, neighbours on a disk in one request
    kExtents,  // each extent, or stripe unit, is a request of its own
  };
  Requests requests = Requests::kMount;  // striped: always kExtents
  std::vector<unsigned> row_offset;  // by number of disks, from 1; one entry: for all; none: the placement of a mount
  double unit_bytes = 0;             // of a stripe
  unsigned width = 0;                // disks of one volume, parity included
  bool parity = false;               // left-symmetric, one unit a stripe
  // Extents of a disk lie together in groups of this many bytes, and groups anywhere on the disk; 0: one after another.
  double group_bytes = 0;
  // Share of each disk that is taken before the image. Without groups the image lies behind that share.
  double filled = 0;
  bool operator==(const Layout&) const = default;
};

struct Machine {
  std::string name;
  std::string description;
  unsigned disks = 1;        // default
  unsigned outstanding = 0;  // extents of one window requested at a time; 0: all at once
  double hit_ratio = 0;      // of the cache
  Layout layout;
  std::string shape = "8192x8192";  // default of the image
  std::string extent = "128x128";
  unsigned bytes_per_pixel = 3;
  std::vector<Resource> resources;
  std::vector<Stage> stages;
  bool operator==(const Machine&) const = default;
};

// Parses the text of a machine file. `where` names the file in errors, which are kInvalidArgument: "where:line: field:
// problem".
Result<Machine> parse_machine(std::string_view text, const std::string& where);
Result<Machine> read_machine(const std::string& path);

// The machine as modelled disks run it: without stages of whole windows, which disks do not see, and the limit of
// `outstanding`.
Machine as_disks(Machine machine);

// Largest capacity of the heads of this machine, in bytes; 0 without heads.
double head_capacity(const Machine& machine);
// Bytes of the model for a byte of a real disk of this size, which stands for the modelled one. A whole factor, so that
// adjacent requests on the real disk are adjacent in the model.
double head_scale(const Machine& machine, double disk_bytes);

// The machine with the name of a preset, or of the file at a path. kNotFound: neither is there.
Result<Machine> find_machine(const std::string& name_or_path);

struct Preset {
  std::string_view name;
  std::string_view toml;
};
// The machines that are built in: their texts live as long as the program.
const std::vector<Preset>& presets();

// All properties in one canonical text, and its 64-bit hash: equal machines have equal hashes.
std::string canonical_text(const Machine& machine);
std::string hash_text(const Machine& machine);

// Number of instances of each resource, and the instance that serves each disk, in a machine of `disks` disks.
struct Topology {
  std::vector<unsigned> count;                 // by resource
  std::vector<std::vector<unsigned>> of_disk;  // [resource][disk]
};
Topology topology(const Machine& machine, unsigned disks);

// The preset's row offset for this number of disks, if it names one.
std::optional<unsigned> row_offset(const Machine& machine, unsigned disks);

}  // namespace mdfs::model
