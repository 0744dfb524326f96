// Whose dirty cache blocks are written back next, and which of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace mdfs::engine {

// Of groups that are full; that are full; dirty; new pieces that a sync will ask for soon.
enum class WhichBlocks : std::uint8_t { kFullGroups, kFull, kAll, kPieces };

// What is dirty of one object.
struct DirtyFacts {
  std::uint64_t full_group_bytes = 0;
  std::uint64_t full_bytes = 0;      // of full groups as well
  std::int64_t last_dirtied_ns = 0;  // when a cache block last became dirty
  std::uint64_t early_bytes = 0;     // appended lately and about to be synced, if that is to be written now
};

struct WriteChoice {
  std::size_t object = 0;  // of those that were given
  WhichBlocks which = WhichBlocks::kAll;
};

// Groups that are full make a good batch, the larger the better; `pressed` by too many dirty bytes also
// those that make none.
// If there are none, the object goes that nobody has added to for longest, its full cache blocks before the others,
// which have to be read: of one that is being written groups that are about to be full would be split. Nothing:
// there is nothing to do now. Pure.
//
// What is about to be synced goes before everything else: somebody will wait for it.
std::optional<WriteChoice> choose_to_write(std::span<const DirtyFacts> objects, std::uint64_t batch_bytes,
                                           bool pressed);

}  // namespace mdfs::engine
