// The real and the seeded environment.
// SPDX-License-Identifier: Apache-2.0
#include "base/environment.h"

#include <sys/random.h>
#include <time.h>

#include <cstring>

#include "base/check.h"

namespace mdfs {
namespace {

std::int64_t read_clock(clockid_t clock) {
  timespec now{};
  MDFS_CHECK(clock_gettime(clock, &now) == 0);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Uuid Environment::new_uuid() {
  const std::uint64_t words[2] = {random(), random()};
  Uuid uuid;
  std::memcpy(uuid.octets.data(), words, sizeof words);
  uuid.octets[6] = static_cast<std::uint8_t>((uuid.octets[6] & 0x0f) | 0x40);
  uuid.octets[8] = static_cast<std::uint8_t>((uuid.octets[8] & 0x3f) | 0x80);
  return uuid;
}

std::int64_t SystemEnvironment::now_ns() { return read_clock(CLOCK_REALTIME); }
std::int64_t SystemEnvironment::monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }

std::uint64_t SystemEnvironment::random() {
  std::uint64_t value = 0;
  MDFS_CHECK(getrandom(&value, sizeof value, 0) == sizeof value);
  return value;
}

std::uint64_t SeededEnvironment::random() {
  const std::lock_guard lock(mutex_);
  return generator_();
}

}  // namespace mdfs
