// Repeats the published experiments on the GigaView, and compares every figure with the printed value.
// Sources: B. Gennart et al., "GigaView parallel image server performance analysis" (1994); B. Gennart and R. Hersch,
// "Comparing multimedia storage architectures" (1995); the InTENsity PowerWall SAN case study (2000).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace mdfs::sim {

struct Target {
  std::string section;
  std::string what;
  std::string unit;
  double paper = 0;
  double tolerance = 0;  // relative; 0 for a claim
  double simulated = 0;
  bool claim = false;  // true: `simulated` is a figure that goes with it, `holds` says whether the claim is true
  bool holds = false;

  bool met() const;
};

// A printed value that contradicts others of the same papers, and the value of this model.
struct Unreachable {
  std::string what;
  std::string paper;
  std::string simulated;
  std::string why;
};

struct PaperResult {
  std::vector<Target> targets;
  std::vector<Unreachable> unreachable;
};

// quick: fewer replications of the loads with queues; the same targets and tolerances. Seconds.
Result<PaperResult> repeat_papers(bool quick, std::uint64_t seed);

}  // namespace mdfs::sim
