// The texts of HTTP that the server reads and writes; pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace mdfs::serve {

// By the ending of the name; bytes without a known one are application/octet-stream.
std::string content_type(std::string_view path);
// For text, and for attributes in double quotes.
std::string html_escaped(std::string_view text);
// One component of a path in a URL.
std::string url_escaped(std::string_view name);

// "Thu, 26 Nov 2026 00:00:00 GMT", and back, also from the two older forms (RFC 9110, 5.6.7).
std::string http_date(std::time_t seconds);
std::optional<std::time_t> parse_http_date(const std::string& text);
// Changes with the time and the size.
std::string entity_tag(const timespec& changed, std::uint64_t size);
// True if a list of tags has the tag, or is "*". Weak tags match where two versions may be equal for all purposes of
// the client (If-None-Match), and never where bytes are put together (If-Match).
bool has_tag(std::string_view list, std::string_view tag, bool weak = true);

// Without blanks and tabs at both ends.
std::string_view trimmed(std::string_view text);
// Capital or small: for names of fields, schemes and codings.
bool same_letters(std::string_view a, std::string_view b);
// Removes the first item of a list with commas; commas in double quotes are part of an item.
std::string_view take_item(std::string_view& list);

// The part of `size` bytes that a Range header asks for.
struct ByteSpan {
  enum class Kind : std::uint8_t { kWhole, kPart, kOutside } kind = Kind::kWhole;
  std::uint64_t first = 0, count = 0;  // kPart
};
// One range of bytes; several, and what is malformed, are answered with the whole (RFC 9110, 14.2).
ByteSpan parse_range(std::string_view header, std::uint64_t size);

}  // namespace mdfs::serve
