// Weights of unequal disks: small whole numbers in the ratio of measured values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mdfs::geometry {

// Largest weight of a disk. A placement has one slot for each unit of weight; more slots do not improve the balance.
inline constexpr unsigned kMaxWeight = 256;
inline constexpr double kWeightTolerance = 0.125;  // relative

// The smallest whole numbers that have the ratio of `figures` (rates, sizes), each within kWeightTolerance, or nearly
// so: the least disk has a weight of at most 4, and a disk above 16 times the least counts as 16 times. Figures closer
// together than the tolerance are equal, because a short measurement is not more accurate. All must be positive, else
// kInvalidArgument.
Result<std::vector<unsigned>> whole_weights(std::span<const double> figures);

// Parses "2,2,1,1": one for each disk, each 1..kMaxWeight. Else kUsage, which names the value.
Result<std::vector<unsigned>> parse_weights(std::string_view text, std::size_t disks);

}  // namespace mdfs::geometry
