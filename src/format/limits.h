// Upper bounds of counters on the disks, so far away that only a damaged or hostile disk comes near.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "mdfs/ondisk.h"

namespace mdfs::format {

// Of a commit. Refused at decoding above; a volume that has come so far is read-only.
inline constexpr std::uint64_t kMaxGeneration = std::uint64_t{1} << 62;
// `next_object` is at most this, numbers of objects are below. Numbers with bit 63 are the daemon's own.
inline constexpr std::uint64_t kMaxObject = std::uint64_t{1} << 62;
// Blocks of all disks together; a tree has no more nodes.
inline constexpr std::uint64_t kMaxNodes = std::uint64_t{MDFS_MAX_DISKS} << 48;
// Changes of the member table.
inline constexpr std::uint32_t kMaxMembership = std::uint32_t{1} << 31;

}  // namespace mdfs::format
