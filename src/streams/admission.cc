// Loads of disks.
// SPDX-License-Identifier: Apache-2.0
#include "streams/admission.h"

#include <algorithm>
#include <limits>

#include "streams/course.h"

namespace mdfs::streams {
namespace {

// Sums of loads are rounded.
constexpr double kRounding = 1e-9;

}  // namespace

Admission admit(std::span<const double> reserved, const FrameCost& frame, double rate, double limit) {
  Admission answer;
  answer.rate_that_fits = std::numeric_limits<double>::infinity();
  for (unsigned disk = 0; disk < frame.size(); ++disk) {
    const double before = disk < reserved.size() ? reserved[disk] : 0;
    const double each = frame[disk] / kNsOfSecond;
    if (each <= 0) continue;
    const double rate_here = std::max(0.0, limit - before) / each;
    if (rate_here < answer.rate_that_fits) {
      answer.rate_that_fits = rate_here;
      answer.busiest = disk;
      answer.load = before + each * rate;
    }
  }
  answer.accepted = rate <= answer.rate_that_fits * (1 + kRounding);
  answer.rate_that_fits *= 1 - kTrialMargin;
  return answer;
}

void add_load(Loads& loads, const FrameCost& frame, double rate) {
  loads.resize(std::max(loads.size(), frame.size()));
  for (std::size_t disk = 0; disk < frame.size(); ++disk) loads[disk] += frame[disk] * rate / kNsOfSecond;
}

void take_load(Loads& loads, const FrameCost& frame, double rate) {
  for (std::size_t disk = 0; disk < std::min(loads.size(), frame.size()); ++disk)
    loads[disk] = std::max(0.0, loads[disk] - frame[disk] * rate / kNsOfSecond);
}

}  // namespace mdfs::streams
