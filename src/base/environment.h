// Clock, random numbers and UUIDs, handed in so that tests control them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>

#include "base/uuid.h"

namespace mdfs {

inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// The clock and the random numbers of a volume, its only inputs besides disks and calls. Any thread may call all
// functions. The caller of Volume::open owns it, and it outlives the volume.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual std::int64_t now_ns() = 0;        // wall clock, nanoseconds since 1970
  virtual std::int64_t monotonic_ns() = 0;  // nanoseconds since any fixed time; never goes back
  virtual std::uint64_t random() = 0;       // 64 uniform bits
  Uuid new_uuid();                          // version 4
};

// The real clock and getrandom(2).
class SystemEnvironment final : public Environment {
 public:
  std::int64_t now_ns() override;
  std::int64_t monotonic_ns() override;
  std::uint64_t random() override;
};

// A clock that advances by one microsecond at each call, and a seeded generator: equal calls give equal answers.
class SeededEnvironment final : public Environment {
 public:
  explicit SeededEnvironment(std::uint64_t seed) : generator_(seed) {}
  std::int64_t now_ns() override { return kEpochNs + monotonic_ns(); }
  std::int64_t monotonic_ns() override { return clock_ns_.fetch_add(kTickNs) + kTickNs; }
  std::uint64_t random() override;
  void advance_ns(std::int64_t ns) { clock_ns_ += ns; }

 private:
  static constexpr std::int64_t kEpochNs = 1'700'000'000'000'000'000;
  static constexpr std::int64_t kTickNs = 1000;
  std::atomic<std::int64_t> clock_ns_{0};
  std::mutex mutex_;  // guards generator_
  std::mt19937_64 generator_;
};

}  // namespace mdfs
