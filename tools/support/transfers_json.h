// Sums over transfers as JSON, alike for traces and for measurements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "meter/transfers.h"

namespace mdfs::tools {

// Of one kind. Times in seconds.
inline nlohmann::ordered_json transfers_json(const meter::Transfers& transfers) {
  return {{"count", transfers.count},
          {"blocks", transfers.blocks},
          {"bytes", transfers.bytes},
          {"bytes_per_s", transfers.rate()},
          {"mean_latency_s", transfers.mean_latency_s()},
          {"max_latency_s", transfers.most_latency_s}};
}

}  // namespace mdfs::tools
