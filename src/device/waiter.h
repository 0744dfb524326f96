// The clock of modelled disks, and how their thread sleeps by it; handed in so that tests decide what time it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>

namespace mdfs::device {

// Any thread may look at the clock and wake; one thread waits.
class Waiter {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  virtual ~Waiter() = default;
  virtual std::int64_t now_ns() = 0;  // never goes back
  // Sleeps until the clock has reached deadline_ns, or somebody has called wake() since the last wait ended. A deadline
  // is a point of time, so that being late once makes nobody else late.
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
