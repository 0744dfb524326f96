// What the TOML library must not be given.
// SPDX-License-Identifier: Apache-2.0
#include "model/toml_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace mdfs::model {

namespace {

constexpr unsigned kMostParts = 16;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Behind the quoted text that begins at `at`; what is not closed ends with the line or the file, and the library says
// so.
std::size_t skip_quoted(std::string_view text, std::size_t at) {
  const std::string_view three = text.substr(at, 3);
  const bool is_long = three == R"(""")" || three == "'''";
  const std::string_view mark = is_long ? three : text.substr(at, 1);
  for (at += mark.size(); at < text.size() && text.substr(at, mark.size()) != mark; ++at) {
    if (!is_long && text[at] == '\n') return at;
    if (text[at] == '\\' && mark[0] == '"') ++at;
  }
  return std::min(text.size(), at + mark.size());
}

}  // namespace

Status check_toml(std::string_view text, const std::string& where) {
  unsigned dots = 0;
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const auto bad = [&](const std::string& what) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return Status(Errc::kInvalidArgument, fmt::format("{}:{}: {}", where, line, what));
  };
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = skip_quoted(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (static_cast<unsigned char>(c) > 0x7f) return bad("characters that are not ASCII belong in quotes");
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
