// Which disks suffice to write a volume: decisions about sets of disks, a bit each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace mdfs::store {

// More than half of the disks that count are present. Any two such sets have a disk in common, so two parts of a volume
// never both have a majority.
constexpr bool is_majority(std::uint64_t counted, std::uint64_t present) {
  return 2 * std::popcount(counted & present) > std::popcount(counted);
}

// May a mounted volume continue with the disks `rest`, and mark the disks that failed as out? `counted`: in the table
// of the last durable commit. `present`: the disks that take part in the commits of this mount, the failed ones
// included. Exactly half of the disks suffice if all are present. The other half then has no majority: in its newest
// table all of these disks count. Exactly half never suffices for a mount, so that the two halves cannot both be
// written.
constexpr bool may_continue(std::uint64_t counted, std::uint64_t present, std::uint64_t rest) {
  if (rest == 0 || (rest & ~(counted & present)) != 0) return false;
  if (is_majority(counted, rest)) return true;
  return (counted & ~present) == 0 && 2 * std::popcount(rest) == std::popcount(counted);
}

}  // namespace mdfs::store
