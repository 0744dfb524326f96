// Reading and writing numbers and sizes.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/checked.h"

namespace mdfs {
namespace {

std::string quoted(std::string_view what, std::string_view text) { return fmt::format("{} '{}'", what, text); }

// The power of 1024 that a suffix stands for.
std::optional<unsigned> suffix_power(std::string_view suffix) {
  if (suffix.empty() || suffix == "B" || suffix == "b") return 0;
  constexpr std::string_view kLetters = "KMGTPE";
  const char letter = static_cast<char>(suffix[0] & ~0x20);
  const std::size_t index = kLetters.find(letter);
  const std::string_view rest = suffix.substr(1);
  if (index == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return std::nullopt;
  return static_cast<unsigned>(index + 1);
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

Result<std::uint64_t> parse_number(std::string_view text, std::string_view what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    return Error{Errc::kOverflow, quoted(what, text) + ": must be below 2^64"};
  if (error != std::errc{} || end != text.data() + text.size())
    return Error{Errc::kUsage, quoted(what, text) + ": must be a whole number"};
  return value;
}

std::optional<std::uint64_t> parse_index(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return {};
  const auto value = parse_number(text, "index");
  return value.ok() ? std::optional(*value) : std::nullopt;
}

Result<std::uint64_t> parse_size(std::string_view text, std::string_view what) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  const std::string_view whole_text = text.substr(0, digits);
  std::string_view rest = digits == std::string_view::npos ? std::string_view{} : text.substr(digits);
  std::string_view fraction;
  if (!rest.empty() && rest[0] == '.') {
    const std::size_t end = rest.find_first_not_of("0123456789", 1);
    fraction = rest.substr(1, end == std::string_view::npos ? end : end - 1);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end);
    if (fraction.empty() || fraction.size() > 9)
      return Error{Errc::kUsage, quoted(what, text) + ": must have 1 to 9 digits after the point"};
  }
  const auto power = suffix_power(rest);
  if (whole_text.empty() || !power)
    return Error{Errc::kUsage, quoted(what, text) + ": must be a size, such as 65536, 64K, 1.5G or 2T"};
  const Error too_large{Errc::kOverflow, quoted(what, text) + ": must be below 16E (2^64 bytes)"};
  const auto whole = parse_number(whole_text, what);
  if (!whole.ok()) return too_large;
  const std::uint64_t unit = std::uint64_t{1} << (10 * *power);
  std::uint64_t part = 0, scale = 1;
  for (const char digit : fraction) {
    part = part * 10 + static_cast<std::uint64_t>(digit - '0');
    scale *= 10;
  }
  __extension__ using Wide = unsigned __int128;
  const Wide scaled = Wide{part} * unit;
  if (scaled % scale != 0) return Error{Errc::kUsage, quoted(what, text) + ": not a whole number of bytes"};
  const auto base = checked_mul(*whole, unit);
  const auto sum = base ? checked_add(*base, static_cast<std::uint64_t>(scaled / scale)) : std::nullopt;
  if (!sum) return too_large;
  return *sum;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.3g} {}", value, kUnits[unit]);
}

std::string format_shape(const std::vector<std::uint64_t>& lengths) {
  return fmt::format("{}", fmt::join(lengths, "x"));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<char32_t> take_character(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const auto lead = static_cast<unsigned char>(text[0]);
  const unsigned more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0x80 ? 1 : 0;
  if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || text.size() <= more) return std::nullopt;
  char32_t code = more == 0 ? lead : lead & (0x3fu >> more);
  for (unsigned n = 1; n <= more; ++n) {
    const auto next = static_cast<unsigned char>(text[n]);
    if ((next & 0xc0) != 0x80) return std::nullopt;
    code = code << 6 | (next & 0x3f);
  }
  constexpr char32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  if (code < kLeast[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return std::nullopt;
  text.remove_prefix(more + 1);
  return code;
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||  // line separators
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);            // direction of writing
}

bool is_one_line(std::string_view text) {
  while (!text.empty()) {
    const auto code = take_character(text);
    if (!code || is_control(*code)) return false;
  }
  return true;
}

namespace {

std::string without_controls(std::string_view text, std::string_view kept) {
  std::string shown;
  while (!text.empty()) {
    const std::string_view before = text;
    const auto code = take_character(text);
    const std::size_t bytes = code ? before.size() - text.size() : 1;
    if (!code) text.remove_prefix(1);
    const std::string_view character = before.substr(0, bytes);
    if (kept.find(character) != std::string_view::npos || (code && !is_control(*code)))
      shown += character;
    else if (character == "\n")
      shown += "\\n";
    else
      for (const char c : character) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return without_controls(text, {}); }

std::string printable_lines(std::string_view text) { return without_controls(text, "\n\t"); }

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  const std::size_t kept = bytes - kEllipsis.size();
  std::size_t head = kept / 2;
  while (head > 0 && continues_character(text[head])) --head;
  return std::string(text.substr(0, head)) + shortened_start(text.substr(head), bytes - head);
}

std::string shortened_start(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  text.remove_prefix(text.size() - (bytes - kEllipsis.size()));
  while (!text.empty() && continues_character(text.front())) text.remove_prefix(1);
  return std::string(kEllipsis) + std::string(text);
}

std::string shell_word(std::string_view text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("/._-+,:@%=").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string word;
  if (is_one_line(text)) {
    for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string{c};
    return "'" + word + "'";
  }
  for (const char c : text) {
    if (plain(static_cast<unsigned char>(c)) || c == ' ')
      word += c;
    else
      word += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return "$'" + word + "'";
}

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace mdfs
