// How long to look for an answer before sleeping. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace mdfs::channel {

// Adapts to the pace of the other side: found while spinning, the limit doubles; in vain, it halves. The least limit
// stays, so that a faster pace is noticed. One thread.
class SpinLimit {
 public:
  static constexpr std::int64_t kLeastNs = 2'000;
  static constexpr std::int64_t kMostNs = 50'000;

  std::int64_t ns() const { return ns_; }
  void found() { ns_ = std::min(2 * ns_, kMostNs); }
  void in_vain() { ns_ = std::max(ns_ / 2, kLeastNs); }

 private:
  std::int64_t ns_ = kMostNs;
};

}  // namespace mdfs::channel
