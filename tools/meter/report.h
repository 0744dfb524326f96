// Measurements as tables for people and as JSON. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "meter/measure.h"

namespace mdfs::tools {

// The table of each place; of two places also one that compares them where both have measured as many clients.
std::string meter_text(const Measurement& wanted, std::span<const MeasuredPlace> places);
nlohmann::ordered_json meter_json(const Measurement& wanted, std::span<const MeasuredPlace> places);

}  // namespace mdfs::tools
