// Relocates rewritten extents home, beside their neighbours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/core.h"
#include "engine/relocate/mover.h"

namespace mdfs::engine {

// Copy-on-write takes a rewritten extent out of its group. Once its home blocks are free, the relocator moves it back,
// if more extents of its image touch their neighbours afterwards. Extents that follow one another on their disk are
// judged together. Extents stay where they are while there is too little space for moves. Does not commit. Any thread,
// for one object at a time.
class HomeRelocator {
 public:
  HomeRelocator(Core& core, Mover& mover) : core_(core), mover_(mover) {}

  // Relocates some extents whose home blocks are over. `pace` is as in MoveRequest, and is called with 0 bytes between
  // steps. After its error kBusy the rest waits for the next call.
  Result<RelocationOutcome> run(OpenObject& object, const Pace& pace);

 private:
  static constexpr std::size_t kMostExtents = 1024;        // of a call
  static constexpr std::uint64_t kMostBytes = 512u << 10;  // of a move

  struct Rewritten;
  using Chain = std::vector<Rewritten>;
  Result<std::vector<Chain>> find_chains(OpenObject& object, const Pace& pace);
  enum class May : std::uint8_t { kReturn, kLater, kNot };
  Result<May> look_at(OpenObject& object, std::uint64_t committed, Rewritten& extent);
  std::optional<geometry::Coord> beside(const OpenObject& object, const geometry::Coord& extent, unsigned disk,
                                        int step) const;
  Result<bool> is_worth_it(const OpenObject& object, const Chain& chain);
  Result<std::optional<store::Run>> place_of(const OpenObject& object, const std::optional<geometry::Coord>& extent);
  Status move(OpenObject& object, const Chain& chain, const Pace& pace, RelocationOutcome& outcome, std::size_t& done);

  Core& core_;
  Mover& mover_;
};

}  // namespace mdfs::engine
