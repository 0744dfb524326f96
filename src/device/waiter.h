// The clock of modelled disks, and the sleep of their thread; handed in so that tests control the time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>

namespace mdfs::device {

// Any thread may read the clock and call wake(); one thread waits.
class Waiter {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  virtual ~Waiter() = default;
  virtual std::int64_t now_ns() = 0;  // never goes back
  // Sleeps until the clock has reached deadline_ns, or wake() was called since the last wait ended. A deadline
  // is a point of time, so that one late wake-up delays no other.
  virtual void wait_until(std::int64_t deadline_ns) = 0;
  virtual void wake() = 0;
};

// CLOCK_MONOTONIC.
class SystemWaiter final : public Waiter {
 public:
  std::int64_t now_ns() override;
  void wait_until(std::int64_t deadline_ns) override;
  void wake() override;

 private:
  std::mutex mutex_;  // guards woken_
  std::condition_variable changed_;
  bool woken_ = false;
};

}  // namespace mdfs::device
