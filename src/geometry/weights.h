// Weights of unequal disks: small whole numbers in the ratio of measured figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mdfs::geometry {

// Of one disk. The slots of a placement are the sum of all weights: more of them make windows no better balanced.
inline constexpr unsigned kMaxWeight = 256;
inline constexpr double kWeightTolerance = 0.125;

// The smallest whole numbers that have the ratio of `figures` (rates, sizes), each within kWeightTolerance, or nearly
// so: the least disk weighs at most 4, and a disk more than 16 times the least counts as 16 times. Figures closer
// together than the tolerance are equal: what a short measurement says is not known better. All are positive, else
// kInvalidArgument.
Result<std::vector<unsigned>> whole_weights(std::span<const double> figures);

// "2,2,1,1": as many as there are disks, each 1..kMaxWeight. Errors name the value.
Result<std::vector<unsigned>> parse_weights(std::string_view text, std::size_t disks);

}  // namespace mdfs::geometry
