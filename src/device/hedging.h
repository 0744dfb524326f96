// When bytes that a disk takes long to read are read from another disk as well. Pure, but for two counters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/read_pace.h"
#include "mdfs/ondisk.h"

namespace mdfs::device {

// A request is late after six times the time that it usually takes, and not before kLeastLateNs: what a busy computer
// adds to the times of fast disks does not count.
inline constexpr std::int64_t kLeastLateNs = 60'000'000;
inline constexpr double kLateTimes = 6;
// Of a disk of which nothing is known: a magnetic one, by what a request counts for.
inline constexpr double kUnseenNsPerByte = 9e6 / static_cast<double>(kRequestBytes);

// The usual paces of disks, by what is seen of them now: of one that is slow that of the others (slowness()). No
// request of a disk that stops would otherwise be late for long.
inline std::vector<std::optional<double>> usual_paces(std::span<const std::optional<double>> ns_per_byte) {
  std::vector<std::optional<double>> usual(ns_per_byte.begin(), ns_per_byte.end());
  const std::vector<double> slow = slowness(ns_per_byte);
  for (std::size_t disk = 0; disk < usual.size(); ++disk)
    if (usual[disk]) *usual[disk] /= slow[disk];
  return usual;
}

// From its submission on. `queued_bytes`: what the disk has to move until the request has ended, requests counted as
// kRequestBytes each.
inline std::int64_t late_after_ns(double queued_bytes, std::optional<double> ns_per_byte) {
  constexpr double kMost = 3600e9;
  const double usual_ns = queued_bytes * ns_per_byte.value_or(kUnseenNsPerByte);
  return std::max(kLeastLateNs, static_cast<std::int64_t>(std::min(kMost, kLateTimes * usual_ns)));
}

// At most one request in twenty is made again, and kMostAtOnce after a rest: disks that are all busy do not become
// busier. Any thread.
class HedgeBudget {
 public:
  static constexpr std::int64_t kRequestsForEach = 20;
  static constexpr std::int64_t kMostAtOnce = 64;

  // Requests that could be made again have been made.
  void earn(std::size_t requests) {
    const auto gain = static_cast<std::int64_t>(std::min<std::size_t>(requests, kMost));
    std::int64_t now = saved_.load(std::memory_order_relaxed);
    while (now < kMost && !saved_.compare_exchange_weak(now, std::min(kMost, now + gain), std::memory_order_relaxed)) {
    }
  }
  bool has_any() const { return saved_.load(std::memory_order_relaxed) >= kRequestsForEach; }
  // False: too many have been made again.
  bool spend() {
    std::int64_t now = saved_.load(std::memory_order_relaxed);
    while (now >= kRequestsForEach)
      if (saved_.compare_exchange_weak(now, now - kRequestsForEach, std::memory_order_relaxed)) return true;
    return false;
  }

 private:
  static constexpr std::int64_t kMost = kMostAtOnce * kRequestsForEach;
  std::atomic<std::int64_t> saved_{kMost};
};

// The disks that have late requests: they are read only where no other disk has the bytes, until all of these have
// ended. A disk that does not answer at all therefore keeps the memory of few loads. Any thread.
class LateDisks {
 public:
  void begin(unsigned disk) { waiting_[disk % MDFS_MAX_DISKS].fetch_add(1, std::memory_order_relaxed); }
  void end(unsigned disk) { waiting_[disk % MDFS_MAX_DISKS].fetch_sub(1, std::memory_order_relaxed); }
  // A bit each.
  std::uint64_t mask() const {
    std::uint64_t late = 0;
    for (unsigned disk = 0; disk < MDFS_MAX_DISKS; ++disk)
      if (waiting_[disk].load(std::memory_order_relaxed) > 0) late |= std::uint64_t{1} << disk;
    return late;
  }

 private:
  std::array<std::atomic<std::uint32_t>, MDFS_MAX_DISKS> waiting_{};
};

}  // namespace mdfs::device
