// Signals that ask a command to end instead of ending it, so that it can undo what it has made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>

#include "base/error.h"

namespace mdfs::tools {

// While the object exists, SIGINT, SIGTERM and SIGHUP are only noted. One at a time, of the main thread; any thread may
// ask.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // True from the first signal on.
  static const std::atomic<bool>& asked();

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

// The error of a command that ends because it was asked to.
inline Error stopped_by_signal() { return {Errc::kCancelled, "stopped by a signal"}; }

// Returns false, at most 50 ms late, if `interrupted` became true before that time.
bool wait_until(std::chrono::steady_clock::time_point time, const std::atomic<bool>& interrupted);

}  // namespace mdfs::tools
