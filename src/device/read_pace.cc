// The pace of disks.
// SPDX-License-Identifier: Apache-2.0
#include "device/read_pace.h"

#include <algorithm>

#include "base/environment.h"

namespace mdfs::device {

std::int64_t ReadPace::now_ns() { return SystemEnvironment().monotonic_ns(); }

void ReadPace::begin(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (waiting_++ == 0) {
    fade(now_ns);
    since_ns_ = now_ns;
  }
}

void ReadPace::end(std::int64_t now_ns, std::uint64_t bytes, bool counts) {
  const std::lock_guard lock(mutex_);
  if (waiting_ == 0) return;
  --waiting_;
  busy_ns_ += static_cast<double>(std::max<std::int64_t>(0, now_ns - since_ns_));
  since_ns_ = now_ns;
  if (!counts) return;
  last_ns_ = now_ns;
  bytes_ += static_cast<double>(bytes + kRequestBytes);
  ++requests_;
  if (busy_ns_ < static_cast<double>(kWindowNs)) return;
  busy_ns_ /= 2;
  bytes_ /= 2;
}

// What is too old counts no more.
void ReadPace::fade(std::int64_t now_ns) {
  if (now_ns - last_ns_ < kMemoryNs) return;
  busy_ns_ = bytes_ = 0;
  requests_ = 0;
}

std::optional<double> ReadPace::ns_per_byte(std::int64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  // A read that has waited for long speaks before it ends.
  const double waited_ns = waiting_ > 0 ? static_cast<double>(std::max<std::int64_t>(0, now_ns - since_ns_)) : 0;
  if (waiting_ == 0 && now_ns - last_ns_ >= kMemoryNs) return std::nullopt;
  if (busy_ns_ + waited_ns < static_cast<double>(kLeastNs) || requests_ < kLeastRequests) return std::nullopt;
  return (busy_ns_ + waited_ns) / bytes_;
}

void ReadPace::reset() {
  const std::lock_guard lock(mutex_);
  busy_ns_ = bytes_ = 0;
  requests_ = 0;
}

std::vector<double> slowness(std::span<const std::optional<double>> ns_per_byte) {
  std::vector<double> all(ns_per_byte.size(), 1);
  std::vector<double> known;
  for (const std::optional<double>& pace : ns_per_byte)
    if (pace) known.push_back(*pace);
  if (known.size() < 3) return all;
  std::sort(known.begin(), known.end());
  const std::size_t middle = (known.size() - 1) / 2;  // of the others, whichever is left out
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!ns_per_byte[i]) continue;
    const double median = known[*ns_per_byte[i] <= known[middle] ? middle + 1 : middle];
    const double ratio = median > 0 ? *ns_per_byte[i] / median : 1;
    if (ratio >= kSlow) all[i] = std::min(ratio, kMostSlowness);
  }
  return all;
}

}  // namespace mdfs::device
