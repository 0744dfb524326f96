// Drawing the figures of the simulator: axes, ticks, series and a legend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/figure.h"

namespace mdfs::tools {

// A whole SVG document. Points that are not finite are left out.
std::string to_svg(const sim::Figure& figure);

}  // namespace mdfs::tools
