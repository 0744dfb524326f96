// Sleeping by the monotonic clock.
// SPDX-License-Identifier: Apache-2.0
#include "device/waiter.h"

#include <chrono>

namespace mdfs::device {

using Clock = std::chrono::steady_clock;

std::int64_t SystemWaiter::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

void SystemWaiter::wait_until(std::int64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  const auto woken = [this] { return woken_; };
  if (deadline_ns == kNever) {
    changed_.wait(lock, woken);
  } else {
    changed_.wait_until(lock, Clock::time_point(std::chrono::nanoseconds(deadline_ns)), woken);
  }
  woken_ = false;
}

void SystemWaiter::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

}  // namespace mdfs::device
