// Ranges of numeric options and operands.
// SPDX-License-Identifier: Apache-2.0
#include "support/ranges.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "base/text.h"

namespace mdfs::tools {
namespace {

constexpr const char* kMissing = "a number is missing";

// The whole text as a finite number.
std::optional<double> read_number(const std::string& text) {
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string refusal(const std::string& text, const std::string& allowed) {
  return text.empty() ? kMissing : fmt::format("{} must be {}", text, allowed);
}

}  // namespace

CLI::Validator not_empty() {
  return {[](const std::string& text) -> std::string { return text.empty() ? "a value is missing" : ""; }, ""};
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const std::string range =
      most == UINT64_MAX ? fmt::format("{} or more, below 2^64", least) : fmt::format("from {} to {}", least, most);
  return {[=](const std::string& text) -> std::string {
            const auto number = parse_number(text, "");
            return number.ok() && *number >= least && *number <= most ? "" : refusal(text, "a whole number " + range);
          },
          most == UINT64_MAX ? "" : fmt::format("{}..{}", least, most)};
}

CLI::Validator step_number(std::int64_t most) {
  return {[=](const std::string& text) -> std::string {
            const bool is_below = text.starts_with('-');
            const auto number = parse_number(is_below ? text.substr(1) : text, "");
            return number.ok() && *number >= 1 && *number <= static_cast<std::uint64_t>(most)
                       ? ""
                       : refusal(text, fmt::format("a whole number from {} to {}, other than 0", -most, most));
          },
          fmt::format("-{}..{}", most, most)};
}

CLI::Validator number_from(double least, double most) {
  return {[=](const std::string& text) -> std::string {
            const auto number = read_number(text);
            return number && *number >= least && *number <= most
                       ? ""
                       : refusal(text, fmt::format("a number from {:g} to {:g}", least, most));
          },
          fmt::format("{:g}..{:g}", least, most)};
}

CLI::Validator number_above_zero() {
  return {[](const std::string& text) -> std::string {
            const auto number = read_number(text);
            return number && *number > 0 ? "" : refusal(text, "a finite number above 0");
          },
          "above 0"};
}

}  // namespace mdfs::tools
