// What the TOML library must not be given.
// SPDX-License-Identifier: Apache-2.0
#include "model/toml_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace mdfs::model {

namespace {

constexpr unsigned kMostParts = 16;
constexpr std::string_view kBeforeQuotes = " \t\r\n=,.[{";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_beyond_ascii(char c) { return static_cast<unsigned char>(c) > 0x7f; }

// Behind the quoted text that begins at `at`; what is not closed ends with the line or the file, and the library says
// so.
// Nothing: a backslash stands before a character that is not ASCII, blanks and line breaks between them not counted.
std::optional<std::size_t> skip_quoted(std::string_view text, std::size_t at) {
  const std::string_view three = text.substr(at, 3);
  const bool is_long = three == R"(""")" || three == "'''";
  const std::string_view mark = is_long ? three : text.substr(at, 1);
  for (at += mark.size(); at < text.size() && text.substr(at, mark.size()) != mark; ++at) {
    if (!is_long && text[at] == '\n') return at;
    if (text[at] != '\\' || mark[0] != '"') continue;
    ++at;
    const std::size_t next = is_long ? text.find_first_not_of(" \t\r\n", at) : at;
    if (next < text.size() && is_beyond_ascii(text[next])) return std::nullopt;
  }
  at = std::min(text.size(), at + mark.size());
  for (unsigned more = is_long ? 2 : 0; more > 0 && at < text.size() && text[at] == mark[0]; --more)
    ++at;  // of the text
  return at;
}

}  // namespace

Status check_toml(std::string_view text, const std::string& where) {
  unsigned dots = 0;
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const auto bad = [&](const std::string& what) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return Status(Errc::kInvalidArgument, fmt::format("{}:{}: {}", where, line, what));
  };
  for (char before = '\n'; at < text.size(); before = text[at - 1]) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      // The library goes over it as over any character of the word.
      if (kBeforeQuotes.find(before) == std::string::npos) return bad("a quote stands within a word");
      const auto behind = skip_quoted(text, at);
      if (!behind) return bad("behind a backslash stands a character that is not ASCII");
      at = *behind;
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (is_beyond_ascii(c)) return bad("characters that are not ASCII belong in quotes");
    if (c == '.')
      ++dots;
    else if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::string_view("_- \t").find(c) == std::string::npos)
      dots = 0;
    if (dots >= kMostParts) return bad(fmt::format("a name has more than {} parts", kMostParts));
    ++at;
  }
  return {};
}

}  // namespace mdfs::model
