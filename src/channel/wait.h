// Waiting for a word of shared memory: by looking, and by futex(2).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace mdfs::channel {

// True if this process may run on several processors: with one, looking keeps the other side from running.
bool may_spin();

std::int64_t steady_ns();
void relax();  // for the moment between two looks
void yield();  // to a thread that waits for this processor: it can be the one that is looked for

// As long as it costs to sleep and to be woken, several times over: who answers within it saves that.
inline constexpr std::int64_t kSpinNs = 100'000;

// Looks until ready() or for so long. Returns the last ready().
template <typename Ready>
bool spin(const Ready& ready, std::int64_t most_ns = kSpinNs) {
  if (!may_spin()) return ready();
  constexpr int kLooksBetweenClocks = 64;
  for (const std::int64_t end = steady_ns() + most_ns;;) {
    for (int i = 0; i < kLooksBetweenClocks; ++i) {
      if (ready()) return true;
      relax();
    }
    if (steady_ns() >= end) return ready();
    yield();
  }
}

// Sleeps while the word has this value, until futex_wake(), a signal, or for so long. Memory shared by processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns);
void futex_wake(std::atomic<std::uint32_t>& word);

}  // namespace mdfs::channel
