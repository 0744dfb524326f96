// Judges for many extents whether their changed bytes are worth a strip.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "engine/core.h"
#include "engine/strips/strip_choice.h"

namespace mdfs::engine {

// For one batch, on one thread. The judge reads each page once, when it is first asked about the page.
class StripJudge {
 public:
  StripJudge(Core& core, OpenObject& object);

  // Are these changed bytes of an extent worth a strip?
  Result<bool> is_worth_a_strip(const geometry::Coord& extent, const ChangedBytes& changed);

 private:
  struct Page {
    KnownPage known;
    std::array<std::uint64_t, format::kMaxPlaces> strip_blocks{};
    ChangedBytes asked;            // empty: not asked yet
    std::uint64_t overlapped = 0;  // places where a strip holds some of these bytes
  };
  Status look_at(std::uint64_t number, Page& page);

  Core& core_;
  OpenObject& object_;
  std::uint64_t published_size_ = 0;
  std::unordered_map<std::uint64_t, Page> pages_;
};

}  // namespace mdfs::engine
