// Clients as threads: each makes its transfers in a place and takes their times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "meter/place.h"
#include "meter/profile.h"
#include "meter/reading.h"

namespace mdfs::tools {

inline constexpr unsigned kMostMeterClients = 256;
inline constexpr std::uint64_t kMostBufferBytes = 1u << 30;  // of all clients

struct ClientsRun {
  const meter::Profile& profile;
  const MeterPlace& place;
  unsigned clients = 1;
  double duration_s = 0;  // no transfer begins later
  std::uint64_t seed = 0;
  const std::atomic<bool>& interrupted;
};

// Bytes of the buffers of so many clients. kTooBig: more than kMostBufferBytes.
Status check_buffers(const meter::Profile& profile, unsigned clients);

// Starts all clients at once and waits for them; each makes one transfer or more. The first error of a client ends all
// of them. kCancelled soon after `interrupted` has become true.
Result<meter::Step> run_clients(const ClientsRun& run);

}  // namespace mdfs::tools
