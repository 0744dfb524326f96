// A bound on bytes at work: who wants to start more waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace mdfs::engine {

// Any thread. A demand larger than the limit is let through when nothing else is at work.
class ByteBudget {
 public:
  // A share of the budget, given back at the end.
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

   private:
    ByteBudget* budget_ = nullptr;
    std::size_t bytes_ = 0;
  };

  explicit ByteBudget(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  std::size_t limit_bytes() const { return limit_bytes_; }

  Share wait_for(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return fits(bytes); });
    used_bytes_ += bytes;
    return {this, bytes};
  }
  // An empty share if there is no room now.
  Share try_for(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!fits(bytes)) return {};
    used_bytes_ += bytes;
    return {this, bytes};
  }
  // Nothing is at work.
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return used_bytes_ == 0; });
  }

 private:
  bool fits(std::size_t bytes) const { return used_bytes_ == 0 || used_bytes_ + bytes <= limit_bytes_; }
  void give_back(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= bytes;
    changed_.notify_all();
  }

  const std::size_t limit_bytes_;
  std::mutex mutex_;  // guards used_bytes_
  std::condition_variable changed_;
  std::size_t used_bytes_ = 0;
};

}  // namespace mdfs::engine
