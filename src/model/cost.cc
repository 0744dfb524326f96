// The small grammar of costs.
// SPDX-License-Identifier: Apache-2.0
#include "model/cost.h"

#include <fmt/format.h>

#include "model/quantity.h"

namespace mdfs::model {
namespace {

constexpr double kMaxFactor = 1e6;

Error bad(std::string why) { return {Errc::kInvalidArgument, std::move(why)}; }

bool take_word(std::string_view& text, std::string_view word) {
  skip_blanks(text);
  if (!text.starts_with(word)) return false;
  const std::string_view rest = text.substr(word.size());
  if (!rest.empty() && rest[0] >= 'a' && rest[0] <= 'z') return false;
  text = rest;
  return true;
}

bool take_symbol(std::string_view& text, std::string_view symbol) {
  skip_blanks(text);
  if (!text.starts_with(symbol)) return false;
  text.remove_prefix(symbol.size());
  return true;
}

Result<double> take_time(std::string_view& text) {
  MDFS_TRY_ASSIGN(const Quantity quantity, take_quantity(text));
  if (quantity.kind != Quantity::Kind::kTime) return bad("a time is missing here, such as 10 ms");
  return quantity.value;
}

// "full", "2 part", "64 B": one summand of the bytes of a transfer.
Status take_summand(std::string_view& text, Cost& cost) {
  skip_blanks(text);
  double factor = 1;
  const bool number_first = !text.empty() && ((text[0] >= '0' && text[0] <= '9') || text[0] == '.');
  if (number_first) {
    std::string_view ahead = text;
    MDFS_TRY_ASSIGN(factor, take_number(ahead));
    skip_blanks(ahead);
    const bool symbolic = ahead.starts_with("full") || ahead.starts_with("part");
    if (!symbolic) {
      MDFS_TRY_ASSIGN(const Quantity quantity, take_quantity(text));
      if (quantity.kind != Quantity::Kind::kSize) return bad("bytes are missing before the rate: full, part or 64 B");
      cost.bytes += quantity.value;
      return {};
    }
    text = ahead;
  }
  if (factor > kMaxFactor) return bad(fmt::format("the factor {} is above {}", factor, kMaxFactor));
  if (take_word(text, "full")) {
    cost.full += factor;
    return {};
  }
  if (take_word(text, "part")) {
    cost.part += factor;
    return {};
  }
  // A number that no cost can have, such as -1 or inf, has an error of its own.
  std::string_view ahead = text;
  if (ahead.starts_with('-') || ahead.starts_with("inf") || ahead.starts_with("nan"))
    if (const auto number = take_number(ahead); !number.ok()) return number.error();
  return bad(fmt::format("\"{}\" is not a cost: write a time (10 ms), full, part or a size (64 B)", text));
}

Result<Cost> transfer(std::string_view& text) {
  Cost cost{.kind = Cost::Kind::kTransfer};
  const bool group = take_symbol(text, "(");
  MDFS_TRY(take_summand(text, cost));
  while (group && take_symbol(text, "+")) MDFS_TRY(take_summand(text, cost));
  if (group && !take_symbol(text, ")")) return bad("a closing parenthesis is missing");
  if (!take_symbol(text, "/")) return bad("bytes are divided by a rate: full / 75 MiB/s");
  MDFS_TRY_ASSIGN(const Quantity rate, take_quantity(text));
  if (rate.kind != Quantity::Kind::kRate) return bad("a rate is missing after the slash, such as 75 MiB/s");
  cost.bytes_per_s = rate.value;
  if (!take_symbol(text, "..")) return cost;
  MDFS_TRY_ASSIGN(const Quantity last, take_quantity(text));
  if (last.kind != Quantity::Kind::kRate) return bad("a second rate is missing here, such as 250 MB/s .. 120 MB/s");
  if (last.value > rate.value) return bad("the rate at the end of a disk is above the one at its beginning");
  cost.last_bytes_per_s = last.value;
  return cost;
}

// A cost that starts with a number is a time ("20 ms"), or a transfer ("2 part / 8 MB/s", "64 B / 8 MB/s").
bool is_plain_time(std::string_view text) {
  const auto quantity = take_quantity(text);
  return quantity.ok() && quantity->kind == Quantity::Kind::kTime;
}

Result<Cost> take_cost(std::string_view& text) {
  if (take_word(text, "head")) return Cost{.kind = Cost::Kind::kHead};
  if (take_word(text, "seek")) {
    MDFS_TRY_ASSIGN(const double mean, take_time(text));
    return Cost{.kind = Cost::Kind::kSeek, .low_s = mean};
  }
  if (take_word(text, "exponential")) {
    MDFS_TRY_ASSIGN(const double mean, take_time(text));
    return Cost{.kind = Cost::Kind::kExponential, .low_s = mean};
  }
  if (take_word(text, "uniform")) {
    MDFS_TRY_ASSIGN(const double low, take_time(text));
    if (!take_symbol(text, "..")) return bad("a uniform time is written as uniform 1 ms .. 5 ms");
    MDFS_TRY_ASSIGN(const double high, take_time(text));
    if (high < low) return bad("the upper end of a uniform time lies below the lower one");
    return Cost{.kind = Cost::Kind::kUniform, .low_s = low, .high_s = high};
  }
  skip_blanks(text);
  if (is_plain_time(text)) {
    MDFS_TRY_ASSIGN(const double time, take_time(text));
    return Cost{.kind = Cost::Kind::kFixed, .low_s = time};
  }
  return transfer(text);
}

}  // namespace

double Cost::transfer_s(double full_bytes, double part_bytes, double place) const {
  const double rate = has_zones() ? bytes_per_s + (last_bytes_per_s - bytes_per_s) * place : bytes_per_s;
  return (bytes + full * full_bytes + part * part_bytes) / rate;
}

Result<Cost> parse_cost(std::string_view text) {
  std::string_view rest = text;
  // A bare number gets the message about units, before any other error.
  std::string_view ahead = text;
  skip_blanks(ahead);
  if (!ahead.empty() && ((ahead[0] >= '0' && ahead[0] <= '9') || ahead[0] == '.')) {
    MDFS_TRY_ASSIGN([[maybe_unused]] const double number, take_number(ahead));
    skip_blanks(ahead);
    if (ahead.empty() || ahead[0] == '/' || ahead[0] == '+')
      return bad(fmt::format("\"{}\": a number without a unit (write 10 ms, 64 B / 75 MB/s)", text));
  }
  MDFS_TRY_ASSIGN(const Cost cost, take_cost(rest));
  skip_blanks(rest);
  if (!rest.empty()) return bad(fmt::format("\"{}\": \"{}\" is left over", text, rest));
  return cost;
}

std::string cost_text(const Cost& cost) {
  switch (cost.kind) {
    case Cost::Kind::kFixed:
      return fmt::format("{} s", cost.low_s);
    case Cost::Kind::kSeek:
      return fmt::format("seek {} s", cost.low_s);
    case Cost::Kind::kExponential:
      return fmt::format("exponential {} s", cost.low_s);
    case Cost::Kind::kUniform:
      return fmt::format("uniform {} s .. {} s", cost.low_s, cost.high_s);
    case Cost::Kind::kHead:
      return "head";
    case Cost::Kind::kTransfer:
      return fmt::format("({} full + {} part + {} B) / {} B/s{}", cost.full, cost.part, cost.bytes, cost.bytes_per_s,
                         cost.has_zones() ? fmt::format(" .. {} B/s", cost.last_bytes_per_s) : "");
  }
  return {};
}

}  // namespace mdfs::model
