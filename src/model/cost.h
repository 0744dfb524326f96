// Costs of a request at a stage of a machine: fixed times, transfers and random times. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace mdfs::model {

// One term of a stage's service time; a stage takes the sum of its terms.
//   "20 ms"                          always
//   "seek 10 ms"                     always, but `--seeks uniform` draws it from 0 .. 20 ms
//   "uniform 1 ms .. 5 ms"           drawn for each request
//   "exponential 10 ms"              drawn, with this mean
//   "head"                           the seek and rotation of the resource's [head], by distance
//   "(full + 2 part) / 72 MiB/s"     bytes over a rate; full = the whole extent, part = the bytes that are covered
//   "64 B / 75 MiB/s"
//   "full / 250 MB/s .. 120 MB/s"   the rate falls from the first byte of the resource's disk to its last
struct Cost {
  enum class Kind { kFixed, kSeek, kUniform, kExponential, kHead, kTransfer };
  Kind kind = Kind::kFixed;
  double low_s = 0;   // fixed; mean of seek and exponential; lower end of uniform
  double high_s = 0;  // upper end of uniform
  double bytes = 0;   // of a transfer, independent of the extent
  double full = 0;    // times the extent's bytes
  double part = 0;    // times the bytes inside the window
  double bytes_per_s = 0;
  double last_bytes_per_s = 0;  // at the last byte of a disk with zones; 0: bytes_per_s everywhere

  bool operator==(const Cost&) const = default;
  bool has_zones() const { return last_bytes_per_s > 0; }
  // Seconds of a transfer that begins at this share of the disk, 0..1. full_bytes: bytes of the whole extent;
  // part_bytes: those inside the window.
  double transfer_s(double full_bytes, double part_bytes, double place) const;
};

// Parses one of the texts above; else kInvalidArgument.
Result<Cost> parse_cost(std::string_view text);
// The text that parse_cost() parses to the same cost.
std::string cost_text(const Cost& cost);

}  // namespace mdfs::model
