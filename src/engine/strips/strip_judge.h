// What is worth a strip, asked for many extents at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "engine/core.h"
#include "engine/strips/strip_choice.h"

namespace mdfs::engine {

// For one batch, on one thread: pages are looked at once, as they are when they are first asked about.
class StripJudge {
 public:
  StripJudge(Core& core, OpenObject& object);

  // Are these bytes of an extent, which have changed, worth a strip?
  Result<bool> is_worth_a_strip(const geometry::Coord& extent, const ChangedBytes& changed);

 private:
  struct Page {
    KnownPage known;
    std::array<std::uint64_t, format::kMaxPlaces> strip_blocks{};
    ChangedBytes asked;            // empty: nothing was asked yet
    std::uint64_t overlapped = 0;  // places where a strip holds some of those bytes
  };
  Status look_at(std::uint64_t number, Page& page);

  Core& core_;
  OpenObject& object_;
  std::uint64_t published_size_ = 0;
  std::unordered_map<std::uint64_t, Page> pages_;
};

}  // namespace mdfs::engine
