// Reading quantities: a number, a unit, and for rates "/s".
// SPDX-License-Identifier: Apache-2.0
#include "model/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace mdfs::model {
namespace {

struct Unit {
  std::string_view name;
  Quantity::Kind kind;
  double factor;
};

constexpr double kMaxSeconds = 1e7;
constexpr double kMaxBytes = 1e18;
constexpr double kMinRate = 1;
constexpr double kMaxRate = 1e18;
constexpr double kBit = 1.0 / 8;
constexpr std::array kUnits = {
    Unit{"s", Quantity::Kind::kTime, 1},
    Unit{"ms", Quantity::Kind::kTime, 1e-3},
    Unit{"us", Quantity::Kind::kTime, 1e-6},
    Unit{"ns", Quantity::Kind::kTime, 1e-9},
    Unit{"B", Quantity::Kind::kSize, 1},
    Unit{"kB", Quantity::Kind::kSize, 1e3},
    Unit{"MB", Quantity::Kind::kSize, 1e6},
    Unit{"GB", Quantity::Kind::kSize, 1e9},
    Unit{"TB", Quantity::Kind::kSize, 1e12},
    Unit{"KiB", Quantity::Kind::kSize, 1024},
    Unit{"MiB", Quantity::Kind::kSize, 1048576},
    Unit{"GiB", Quantity::Kind::kSize, 1073741824},
    Unit{"TiB", Quantity::Kind::kSize, 1099511627776},
    Unit{"bit", Quantity::Kind::kSize, kBit},
    Unit{"kbit", Quantity::Kind::kSize, 1e3 * kBit},
    Unit{"Mbit", Quantity::Kind::kSize, 1e6 * kBit},
    Unit{"Gbit", Quantity::Kind::kSize, 1e9 * kBit},
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Error bad_quantity(std::string why) { return {Errc::kInvalidArgument, std::move(why)}; }

Result<double> whole_text(std::string_view text, Quantity::Kind kind, std::string_view example) {
  std::string_view rest = text;
  MDFS_TRY_ASSIGN(const Quantity quantity, take_quantity(rest));
  skip_blanks(rest);
  if (!rest.empty()) return bad_quantity(fmt::format("\"{}\" is followed by \"{}\"", text, rest));
  if (quantity.kind != kind)
    return bad_quantity(fmt::format("\"{}\" has the wrong kind of unit; write it like {}", text, example));
  return quantity.value;
}

}  // namespace

void skip_blanks(std::string_view& text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
}

Result<double> take_number(std::string_view& text) {
  double number = 0;
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::general);
  if (failure == std::errc::result_out_of_range)
    return bad_quantity(fmt::format("\"{}\": the number is out of range; it is 0, or from 1e-307 to 1e308", text));
  if (failure != std::errc{}) return bad_quantity(fmt::format("a number is missing before \"{}\"", text));
  if (!std::isfinite(number)) return bad_quantity(fmt::format("\"{}\" must be a finite number", text));
  if (std::signbit(number) && number != 0)
    return bad_quantity(fmt::format("\"{}\" is negative; it must be at least 0", text));
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

Result<Quantity> take_quantity(std::string_view& text) {
  skip_blanks(text);
  const std::string_view start = text;
  MDFS_TRY_ASSIGN(const double number, take_number(text));
  skip_blanks(text);
  std::size_t letters = 0;
  while (letters < text.size() && is_letter(text[letters])) ++letters;
  const std::string_view name = text.substr(0, letters);
  if (name.empty()) return bad_quantity(fmt::format("\"{}\" has no unit (write 10 ms, 64 KiB or 75 MB/s)", start));
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    text.remove_prefix(letters);
    Quantity quantity{unit.kind, number * unit.factor};
    std::string_view ahead = text;
    skip_blanks(ahead);
    const bool is_rate =
        unit.kind == Quantity::Kind::kSize && ahead.starts_with("/s") && (ahead.size() == 2 || !is_letter(ahead[2]));
    if (!is_rate) {
      const double most = unit.kind == Quantity::Kind::kTime ? kMaxSeconds : kMaxBytes;
      if (quantity.value > most)
        return bad_quantity(
            fmt::format("\"{}\" is above {:g} {}", start, most, unit.kind == Quantity::Kind::kTime ? "s" : "B"));
      return quantity;
    }
    text = ahead.substr(2);
    if (quantity.value < kMinRate || quantity.value > kMaxRate)
      return bad_quantity(fmt::format("\"{}\": a rate is from {:g} to {:g} B/s", start, kMinRate, kMaxRate));
    return Quantity{Quantity::Kind::kRate, quantity.value};
  }
  if (name == "KB" || name == "K" || name == "M" || name == "G")
    return bad_quantity(
        fmt::format("unit \"{}\" is ambiguous: kB, MB, GB are powers of 1000, KiB, MiB, GiB powers of 1024", name));
  return bad_quantity(
      fmt::format("unit \"{}\" is none of ns us ms s, B kB MB GB TB, KiB MiB GiB TiB, bit kbit Mbit Gbit", name));
}

Result<double> parse_time_s(std::string_view text) { return whole_text(text, Quantity::Kind::kTime, "10 ms"); }
Result<double> parse_size_bytes(std::string_view text) { return whole_text(text, Quantity::Kind::kSize, "64 KiB"); }
Result<double> parse_rate_bytes_per_s(std::string_view text) {
  return whole_text(text, Quantity::Kind::kRate, "75 MB/s");
}

}  // namespace mdfs::model
