// A clock that a test moves, for the thread of modelled disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "device/waiter.h"

namespace mdfs::device {

class FakeWaiter final : public Waiter {
 public:
  // Every sleep ends so much later than it should.
  explicit FakeWaiter(std::int64_t late_ns = 0) : late_ns_(late_ns) {}

  std::int64_t now_ns() override {
    const std::lock_guard lock(mutex_);
    return now_ns_;
  }
  void wait_until(std::int64_t deadline_ns) override {
    std::unique_lock lock(mutex_);
    deadline_ns_ = deadline_ns;
    waits_ = true;
    ++sleeps_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return woken_ || now_ns_ >= deadline_ns_; });
    woken_ = waits_ = false;
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

  // Lets the clock run up to then, stopping at each deadline until the thread has done what was due, and sleeps again.
  void advance_to(std::int64_t ns) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return waits_ && !woken_ && now_ns_ < deadline_ns_; });
      if (deadline_ns_ > ns) break;
      now_ns_ = deadline_ns_ + late_ns_;
      changed_.notify_all();
    }
    now_ns_ = now_ns_ > ns ? now_ns_ : ns;
  }
  std::uint64_t sleeps() {
    const std::lock_guard lock(mutex_);
    return sleeps_;
  }

 private:
  const std::int64_t late_ns_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::int64_t now_ns_ = 1'000'000'000'000;
  std::int64_t deadline_ns_ = 0;
  std::uint64_t sleeps_ = 0;
  bool waits_ = false;
  bool woken_ = false;
};

}  // namespace mdfs::device
