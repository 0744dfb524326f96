// Waiting for a word of shared memory: by looking, and by futex(2).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "channel/spin.h"

namespace mdfs::channel {

// True if this process may run on several processors: with one, looking keeps the other side from running.
bool may_spin();

std::int64_t steady_ns();
void relax();  // for the moment between two looks

// Looks until ready() or for the limit, which adapts. Returns the last ready().
template <typename Ready>
bool spin(SpinLimit& limit, const Ready& ready) {
  if (!may_spin()) return ready();
  constexpr int kLooksBetweenClocks = 16;
  for (const std::int64_t end = steady_ns() + limit.ns();;) {
    for (int i = 0; i < kLooksBetweenClocks; ++i) {
      if (ready()) {
        limit.found();
        return true;
      }
      relax();
    }
    if (steady_ns() < end) continue;
    limit.in_vain();
    return ready();
  }
}

// Sleeps while the word has this value, until futex_wake(), a signal, or for so long. Memory shared by processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns);
void futex_wake(std::atomic<std::uint32_t>& word);

}  // namespace mdfs::channel
