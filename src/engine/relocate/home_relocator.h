// Rewritten extents relocate home, beside their neighbours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/core.h"
#include "engine/relocate/mover.h"

namespace mdfs::engine {

// Copy-on-write takes a rewritten extent out of its group. Once the place that it left is free it goes back there, as a
// move, if more extents of its image touch their neighbours afterwards; extents that follow one another on their disk
// are judged together. Where there is too little room for moves they stay where they are. Nothing is committed. Any
// thread; an object at a time.
class HomeRelocator {
 public:
  HomeRelocator(Core& core, Mover& mover) : core_(core), mover_(mover) {}

  // Some of those that may return by now. `pace` as in MoveRequest, and with 0 bytes between steps: after an error of
  // it, kBusy, what is left waits for the next call.
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
