// Parses times, sizes and rates of machine files, always with a unit. Errors are kInvalidArgument. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"

namespace mdfs::model {

// "20 ms", "0.5us", "1.5 s", "80 ns". Seconds; not negative, at most 1e7.
Result<double> parse_time_s(std::string_view text);

// "64 B", "48 KiB", "1.5 MB": kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB powers of 1024. Bytes;
// at most 1e18.
Result<double> parse_size_bytes(std::string_view text);

// "75 MiB/s", "2.93 MB/s", "10 Gbit/s". Bytes per second; 1 to 1e18.
Result<double> parse_rate_bytes_per_s(std::string_view text);

// Parses a number and its unit at the front of `text`, for parsers of more than one quantity. A number without a
// unit is an error that names the problem.
struct Quantity {
  enum class Kind { kTime, kSize, kRate };
  Kind kind = Kind::kTime;
  double value = 0;  // s, bytes, bytes/s
};
Result<Quantity> take_quantity(std::string_view& text);

// Parses a plain number at the front of `text`, or takes nothing and returns an error.
Result<double> take_number(std::string_view& text);
void skip_blanks(std::string_view& text);

}  // namespace mdfs::model
