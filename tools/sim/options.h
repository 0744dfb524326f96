// Options that the commands of mdfs-sim share, and the systems they describe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "geometry/geometry.h"
#include "sim/system.h"
#include "support/complete.h"
#include "support/parity_options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace mdfs::tools {

struct SimOptions {
  std::string machine;
  std::optional<unsigned> disks;
  std::optional<unsigned> row_offset;
  std::optional<unsigned> plane_offset;
  std::optional<unsigned> bytes_per_pixel;
  std::optional<double> filled;      // of each disk
  std::optional<double> compressed;  // stored size as a share of the image's bytes; absent: raw
  std::optional<std::string> cache;  // absent: that of the trace, else none
  unsigned copies = 1;
  ParityOptions parity;  // 1: in place of copies
  std::optional<unsigned> lost_disk;
  std::string shape;   // empty: the machine's
  std::string extent;  // empty: the machine's
  std::string seeks = "constant";
  std::uint64_t seed = 1;
  bool csv = false;
  bool json = false;
  std::string plot;
};

// The machine as the first operand, and --disks, --shape .. --plot.
void add_sim_options(CLI::App& command, SimOptions& options);
// --shape .. --seeks alone.
void add_image_options(CLI::App& command, SimOptions& options);
// The names of the shipped machines, for Tab.
std::vector<Choice> machine_choices();
// --json, --csv, --seed, and --plot where there is one figure.
void add_output_options(CLI::App& command, SimOptions& options, bool plot);

Result<sim::Setup> make_setup(const SimOptions& options);
Result<sim::System> make_system(const SimOptions& options);

// "512x512" or "4x512x512": lengths of windows, slowest axis first; fewer numbers than the image has axes set the
// slowest ones to 1.
Result<geometry::Coord> parse_window_size(const geometry::Geometry& image, const std::string& text);
// "32 /s", "6 MB/s" (of windows of this many bytes), "0.7" (of the maximum): windows a second.
Result<double> parse_rate(const std::string& text, double window_bytes, double maximum_bytes_per_s);

}  // namespace mdfs::tools
