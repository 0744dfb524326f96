// Upper bounds of counters on the disks, which only a damaged or hostile disk can reach.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "mdfs/ondisk.h"

namespace mdfs::format {

// Generation of a commit. Larger values are refused at decoding; a volume at the bound is read-only.
inline constexpr std::uint64_t kMaxGeneration = std::uint64_t{1} << 62;
// Largest `next_object`; numbers of objects are below. The daemon uses numbers with bit 63 internally.
inline constexpr std::uint64_t kMaxObject = std::uint64_t{1} << 62;
// Blocks of all disks together; also a bound for nodes of a tree.
inline constexpr std::uint64_t kMaxNodes = std::uint64_t{MDFS_MAX_DISKS} << 48;
// Number of changes of the member table.
inline constexpr std::uint32_t kMaxMembership = std::uint32_t{1} << 31;

}  // namespace mdfs::format
