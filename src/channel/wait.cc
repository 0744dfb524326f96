// Waiting for a word of shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "channel/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <ctime>
#include <thread>

namespace mdfs::channel {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

bool may_spin() {
  static const bool several = std::thread::hardware_concurrency() > 1;
  return several;
}

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void yield() { ::sched_yield(); }

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns) {
  const timespec most{static_cast<time_t>(most_ns / kSecond), static_cast<long>(most_ns % kSecond)};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &most, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace mdfs::channel
