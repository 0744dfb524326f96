// The figures of the published papers, drawn from simulations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/figure.h"

namespace mdfs::sim {

struct NamedFigure {
  std::string name;  // of a file, without its ending: "1994-figure-06"
  Figure figure;
};

// Figures 6 to 9 and 11 to 14 of the 1994 paper, 3 to 6 of the 1995 one.
Result<std::vector<NamedFigure>> paper_figures(std::uint64_t seed);

}  // namespace mdfs::sim
