// Calls that nobody waits for any more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

namespace mdfs {

// How often a wait asks whether it is still wanted.
inline constexpr std::chrono::milliseconds kStopPoll{100};

// Says, for the calls that this thread makes while the scope lasts, when nobody waits for them any more. Their waits
// for tree nodes then end with kCancelled. Only around calls that change nothing. Scopes nest; the innermost counts.
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

}  // namespace mdfs
