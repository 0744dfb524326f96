// Numbers for things that come and go.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace mdfs::sim {

// A slot that is free again, as it was left, or a new one at the end. A slot that is left is put into `free`.
template <typename Slots>
std::uint32_t take_slot(Slots& slots, std::vector<std::uint32_t>& free) {
  if (free.empty()) {
    slots.emplace_back();
    return static_cast<std::uint32_t>(slots.size() - 1);
  }
  const std::uint32_t slot = free.back();
  free.pop_back();
  return slot;
}

}  // namespace mdfs::sim
