// Noting signals.
// SPDX-License-Identifier: Apache-2.0
#include "support/interruption.h"

#include <algorithm>
#include <thread>

namespace mdfs::tools {
namespace {

constexpr auto kLookForSignals = std::chrono::milliseconds(50);

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

Interruption::Interruption() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

const std::atomic<bool>& Interruption::asked() { return interrupted; }

bool wait_until(std::chrono::steady_clock::time_point time, const std::atomic<bool>& asked) {
  using Clock = std::chrono::steady_clock;
  while (!asked && Clock::now() < time) std::this_thread::sleep_until(std::min(time, Clock::now() + kLookForSignals));
  return !asked;
}

}  // namespace mdfs::tools
