// The allocation policies: one table of ids, names and functions that choose the start of a new group on a disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "alloc/space_map.h"
#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::alloc {

using geometry::AllocationPolicy;

// SplitMix64 (Steele, Lea, Flood 2014).
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();

 private:
  std::uint64_t state_;
};

// The facts for the choice.
struct NewGroup {
  const SpaceMap& map;            // of the disk
  std::uint64_t blocks = 0;       // expected length of the group
  std::uint64_t near_block = 0;   // end of the object's last block on the disk; outside of the data: unknown
  std::uint64_t last_stored = 0;  // end of the last stored data of the disk; outside of the data: unknown
  SplitMix& random;
};

struct PolicyInfo {
  AllocationPolicy id;    // MDFS_POLICY_* of ondisk.h
  std::string_view name;  // in options, JSON and messages; never changes
  std::string_view help;  // one line
  bool offered;           // as a value of options; else an alias of another policy
  // If less than a quarter of the disk is free, a group begins in the smallest hole that holds it. True: it does so
  // only if the place of `begin` has no space for it.
  bool prefers_place_to_hole;
  // The block at which the search begins. A pure function of its argument.
  std::uint64_t (*begin)(const NewGroup& group);
};

// In the order of the ids, which are 0, 1, 2, ..
std::span<const PolicyInfo> policy_table();
// The id must be one of the table (abort).
const PolicyInfo& info(AllocationPolicy id);
std::string_view name(AllocationPolicy id);
// An offered policy. The message of kInvalidArgument lists them.
Result<AllocationPolicy> parse_policy(std::string_view name);
// For help texts and messages: "scatter, first or near".
std::string policy_names();
// For completion: "scatter,first,near".
std::string policy_list();

}  // namespace mdfs::alloc
