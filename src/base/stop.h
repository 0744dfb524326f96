// Calls whose caller has stopped waiting.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "base/error.h"

namespace mdfs {

// The error of a call that was stopped.
inline Error interrupted() { return {Errc::kCancelled, "the caller was interrupted"}; }

// How often a wait asks whether it is still wanted.
inline constexpr std::chrono::milliseconds kStopPoll{100};

// While the scope lasts, `stop` returns true once the caller has stopped waiting for the calls that this thread makes.
// Their waits for tree nodes then end with kCancelled. Only around calls that change nothing. The innermost counts.
class StopScope {
 public:
  explicit StopScope(std::function<bool()> stop);
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();

 private:
  friend bool is_stopped();
  std::function<bool()> stop_;
  StopScope* outer_;
};

// Asks the innermost scope of this thread. False outside of scopes.
bool is_stopped();

// Waits until done(), which is called with the lock. False: `stop`, which is asked without the lock at these intervals,
// has ended the wait. An empty `stop` never does.
template <typename Done>
bool wait_or_stop(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                  std::chrono::milliseconds between, const std::function<bool()>& stop, const Done& done) {
  if (!stop) {
    changed.wait(lock, done);
    return true;
  }
  while (!changed.wait_for(lock, between, done)) {
    lock.unlock();
    const bool ends = stop();
    lock.lock();
    if (ends && !done()) return false;
  }
  return true;
}

}  // namespace mdfs
