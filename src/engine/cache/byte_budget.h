// A bound on the bytes of work in progress: new work beyond the bound waits for its turn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "base/stop.h"

namespace mdfs::engine {

// Any thread. Demands are served in order of arrival and never pass a waiting one, so large demands get their turn as
// well. A demand larger than the limit is served when no other work is in progress.
// A holder that waits for a second share of the same budget may wait forever.
class ByteBudget {
 public:
  // A share of the budget. The destructor gives it back.
  class Share {
   public:
    Share() = default;
    Share(ByteBudget* budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}
    Share(Share&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (budget_ != nullptr) budget_->give_back(bytes_);
    }
    explicit operator bool() const { return budget_ != nullptr; }
    // Gives back what is more.
    void keep_at_most(std::size_t bytes) {
      if (budget_ == nullptr || bytes >= bytes_) return;
      budget_->give_back(std::exchange(bytes_, bytes) - bytes);
    }

   private:
    ByteBudget* budget_ = nullptr;
    std::size_t bytes_ = 0;
  };

  explicit ByteBudget(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  std::size_t limit_bytes() const { return limit_bytes_; }
  // For tests and statistics.
  std::size_t used_bytes() const {
    const std::lock_guard lock(mutex_);
    return used_bytes_;
  }
  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

  // As wait_or_stop(). An empty share: `stop` ended the wait.
  Share wait_for(std::size_t bytes, std::chrono::milliseconds between = {}, const std::function<bool()>& stop = {}) {
    std::unique_lock lock(mutex_);
    if (waiting_.empty() && fits(bytes)) {
      used_bytes_ += bytes;
      return {this, bytes};
    }
    Waiter self{bytes};
    waiting_.push_back(&self);
    if (wait_or_stop(self.admitted_now, lock, between, stop, [&] { return self.admitted; })) return {this, bytes};
    std::erase(waiting_, &self);
    admit_waiting();  // smaller demands may have waited behind this one
    return {};
  }
  // An empty share if there is no space now, or if other demands wait.
  Share try_for(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty() || !fits(bytes)) return {};
    used_bytes_ += bytes;
    return {this, bytes};
  }
  // Waits until no work is in progress.
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return used_bytes_ == 0; });
  }

 private:
  struct Waiter {
    explicit Waiter(std::size_t wanted) : bytes(wanted) {}
    const std::size_t bytes;
    bool admitted = false;
    std::condition_variable admitted_now;
  };

  bool fits(std::size_t bytes) const { return used_bytes_ == 0 || used_bytes_ + bytes <= limit_bytes_; }
  void give_back(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= bytes;
    admit_waiting();
    if (used_bytes_ == 0) idle_.notify_all();
  }
  void admit_waiting() {
    // Notified under the lock: an admitted waiter is destroyed soon.
    while (!waiting_.empty() && fits(waiting_.front()->bytes)) {
      Waiter& next = *waiting_.front();
      waiting_.pop_front();
      used_bytes_ += next.bytes;
      next.admitted = true;
      next.admitted_now.notify_one();
    }
  }

  const std::size_t limit_bytes_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable idle_;
  std::deque<Waiter*> waiting_;  // in order of arrival
  std::size_t used_bytes_ = 0;
};

}  // namespace mdfs::engine
