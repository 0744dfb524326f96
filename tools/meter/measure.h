// A whole measurement: a fixed number of clients or a ramp, in one place or alternately in two.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "meter/profile.h"
#include "meter/reading.h"
#include "meter/requests.h"

namespace mdfs::tools {

struct Measurement {
  std::vector<std::string> paths;  // one or two
  meter::Profile profile;
  unsigned clients = 1;          // of a ramp: the most
  bool ramp = false;             // from one client on, until a limit of the profile breaks
  double duration_s = 5;         // of each number of clients, in each place and round
  unsigned rounds = 1;           // each measures all places again, in the other order, and adds to the last one
  std::uint64_t most_bytes = 0;  // of the files in one place
  std::uint64_t seed = 1;
  bool direct = false;
  bool drop_caches = false;
};

struct MeasuredStep {
  meter::Step step;
  std::string broken;  // the limit of the profile that the step breaks; empty: it holds all
};

struct MeasuredPlace {
  std::string path;
  std::string filesystem;  // empty: unknown
  bool is_file = false;
  meter::FileSet files;
  std::uint64_t bytes = 0;
  bool fits_memory = false;         // of the computer
  std::vector<MeasuredStep> steps;  // by clients
  unsigned held = 0;                // the most clients that hold all limits
};

// Everything that was made is gone afterwards, also after an error. kCancelled soon after `interrupted` has become
// true.
Result<std::vector<MeasuredPlace>> measure(const Measurement& wanted, const std::atomic<bool>& interrupted);

}  // namespace mdfs::tools
