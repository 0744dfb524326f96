// The urgency of a thread's requests.
// SPDX-License-Identifier: Apache-2.0
#include "device/urgency.h"

#include <utility>

namespace mdfs::device {
namespace {

thread_local const UrgencyScope* innermost_urgency = nullptr;

}  // namespace

UrgencyScope::UrgencyScope(Urgency urgency) : urgency_(std::move(urgency)), outer_(innermost_urgency) {
  innermost_urgency = this;
}

UrgencyScope::~UrgencyScope() { innermost_urgency = outer_; }

const Urgency& urgency() {
  static const Urgency ordinary;
  return innermost_urgency != nullptr ? innermost_urgency->urgency_ : ordinary;
}

}  // namespace mdfs::device
