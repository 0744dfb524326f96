// The scopes of a thread.
// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"

#include <utility>

namespace mdfs {
namespace {

thread_local StopScope* innermost = nullptr;

}  // namespace

StopScope::StopScope(std::function<bool()> stop) : stop_(std::move(stop)), outer_(std::exchange(innermost, this)) {}

StopScope::~StopScope() { innermost = outer_; }

bool is_stopped() { return innermost != nullptr && innermost->stop_(); }

}  // namespace mdfs
