// Writing figures to files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/figure.h"
#include "sim/simulation.h"

namespace mdfs::tools {

// By the ending: .svg is written here, .png is made from it by rsvg-convert, which must then be installed.
Status write_figure(const sim::Figure& figure, const std::string& path);

// Mean utilization of each resource as bars, in percent.
sim::Figure utilization_figure(const std::string& title, const std::vector<sim::ResourceUse>& use);
// Distribution and cumulative distribution.
sim::Figure delay_figure(const std::string& title, const std::vector<double>& delays_s);

}  // namespace mdfs::tools
