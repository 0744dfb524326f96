// mdfs-sim streams --rate: the streams of a mount.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace mdfs::tools {

class Report;

struct MountStreamOptions {
  std::vector<double> rates;         // frames a second, of each stream; empty: no streams of a mount
  std::vector<std::string> windows;  // first frames: of all streams, or one of each
  std::string axis;                  // empty: the slowest
  std::int64_t step = 1;
  unsigned lookahead = 0;
  bool drops = false;
  bool unchecked = false;
  double limit = 0.8;
  double seconds = 20;
  unsigned readers = 0;
  std::string reader_size = "512x512";
  unsigned writers = 0;
  bool scrub = false;
};

// All but --rate need --rate, and `others` do not go with it.
void add_mount_stream_options(CLI::App& command, MountStreamOptions& options, const std::vector<std::string>& others);
void mount_stream_parameters(const MountStreamOptions& options, Report& report);
// With rates.
Status run_streams_of_mount(const SimOptions& shared, const MountStreamOptions& options, Report& report,
                            const sim::System& system);

}  // namespace mdfs::tools
