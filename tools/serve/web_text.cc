// Texts of HTTP.
// SPDX-License-Identifier: Apache-2.0
#include "serve/web_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace mdfs::serve {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 25> kTypes = {{
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"dpx", "image/x-dpx"},
    {"exr", "image/x-exr"},
    {"webp", "image/webp"},
    {"gif", "image/gif"},
    {"svg", "image/svg+xml"},
    {"pgm", "image/x-portable-graymap"},
    {"ppm", "image/x-portable-pixmap"},
    {"json", "application/json"},
    {"xml", "application/xml"},
    {"vrt", "application/xml"},
    {"dzi", "application/xml"},
    {"pdf", "application/pdf"},
    {"html", "text/html; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"txt", "text/plain; charset=utf-8"},
    {"md", "text/plain; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"nhdr", "text/plain; charset=utf-8"},
    {"mp4", "video/mp4"},
}};

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~@+,=").find(c) != std::string_view::npos;
}

// All of the text is a number.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || failure == std::errc::invalid_argument) return {};
  // A number that is too large lies behind the end of every file.
  return failure == std::errc{} ? value : std::numeric_limits<std::uint64_t>::max();
}

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return small(x) == small(y); });
}

std::string_view take_item(std::string_view& list) {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < list.size() && (quoted || list[end] != ','); ++end)
    if (list[end] == '"') quoted = !quoted;
  const std::string_view item = trimmed(list.substr(0, end));
  list.remove_prefix(std::min(list.size(), end + 1));
  return item;
}

std::string content_type(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot != std::string_view::npos && path.find('/', dot) == std::string_view::npos)
    for (const auto& [suffix, type] : kTypes)
      if (path.substr(dot + 1) == suffix) return std::string(type);
  return "application/octet-stream";
}

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string url_escaped(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    if (is_plain(c)) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

std::string http_date(std::time_t seconds) {
  std::tm parts{};
  std::array<char, 64> text{};
  ::gmtime_r(&seconds, &parts);
  return {text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

std::optional<std::time_t> parse_http_date(const std::string& text) {
  for (const char* form : {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"}) {
    std::tm parts{};
    const char* const end = ::strptime(text.c_str(), form, &parts);
    if (end != nullptr && *end == 0) return ::timegm(&parts);
  }
  return {};
}

std::string entity_tag(const timespec& changed, std::uint64_t size) {
  return fmt::format("\"{:x}.{:x}-{:x}\"", changed.tv_sec, changed.tv_nsec, size);
}

bool has_tag(std::string_view list, std::string_view tag, bool weak) {
  if (trimmed(list) == "*") return true;
  while (!list.empty()) {
    std::string_view one = take_item(list);
    if (weak && one.starts_with("W/")) one.remove_prefix(2);
    if (one == tag) return true;
  }
  return false;
}

ByteSpan parse_range(std::string_view header, std::uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  if (!same_letters(header.substr(0, kUnit.size()), kUnit)) return {};
  const std::string_view range = trimmed(header.substr(kUnit.size()));
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return {};
  const auto first = number(range.substr(0, dash)), last = number(range.substr(dash + 1));
  if (dash == 0) {  // the last bytes
    if (!last) return {};
    const std::uint64_t count = std::min(*last, size);
    if (count == 0) return {ByteSpan::Kind::kOutside, 0, 0};
    return {ByteSpan::Kind::kPart, size - count, count};
  }
  const bool open = dash + 1 == range.size();
  if (!first || (!open && (!last || *last < *first))) return {};
  if (*first >= size) return {ByteSpan::Kind::kOutside, 0, 0};
  const std::uint64_t end = open ? size - 1 : std::min(*last, size - 1);
  return {ByteSpan::Kind::kPart, *first, end - *first + 1};
}

}  // namespace mdfs::serve
