// Chooses the object and the dirty cache blocks for the next write-back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace mdfs::engine {

// Cache blocks of full groups; full cache blocks; all; new pieces that a sync will soon wait for.
enum class WhichBlocks : std::uint8_t { kFullGroups, kFull, kAll, kPieces };

// The dirty bytes of one object.
struct DirtyFacts {
  std::uint64_t full_group_bytes = 0;
  std::uint64_t full_bytes = 0;      // with those of full groups
  std::int64_t last_dirtied_ns = 0;  // when a cache block last became dirty
  std::uint64_t early_bytes = 0;     // appended lately and about to be synced, if they are to be written now
};

struct WriteChoice {
  std::size_t object = 0;  // its index among the objects
  WhichBlocks which = WhichBlocks::kAll;
};

// Chooses what to write back, or nothing. Bytes that are about to be synced go first, because a program will wait for
// them. Full groups that make a good batch follow, those of the object with most of them first.
// `pressed` by too many dirty bytes, smaller full groups are written as well. Without full groups the choice is the
// object that has not been written to for longest: groups of an object in use may soon be full. Its full cache blocks
// go before the others, whose missing bytes must be read. Pure.
std::optional<WriteChoice> choose_to_write(std::span<const DirtyFacts> objects, std::uint64_t batch_bytes,
                                           bool pressed);

}  // namespace mdfs::engine
