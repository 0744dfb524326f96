// Splits the names, and makes those of objects.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/rados_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mdfs::device {
namespace {

constexpr std::size_t kMaxPartBytes = 100;
constexpr std::size_t kNumberDigits = 16;

bool is_allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool is_part(std::string_view part) {
  return !part.empty() && part.size() <= kMaxPartBytes && std::all_of(part.begin(), part.end(), is_allowed);
}

bool looks_like_data(std::string_view name) {
  if (name.size() <= kNumberDigits || name[name.size() - kNumberDigits - 1] != '.') return false;
  const std::string_view digits = name.substr(name.size() - kNumberDigits);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Result<RadosName> RadosName::parse(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return Error{Errc::kInvalidArgument, fmt::format("{}: {}", text, why)};
  };
  if (!is_rados_name(text)) return wrong("a disk of RADOS is named rados:POOL[/NAMESPACE]/NAME");
  std::vector<std::string_view> parts;
  for (std::string_view left = std::string_view(text).substr(kRadosPrefix.size());;) {
    const std::size_t end = std::min(left.find('/'), left.size());
    parts.push_back(left.substr(0, end));
    if (end == left.size()) break;
    left.remove_prefix(end + 1);
  }
  if (parts.size() < 2 || parts.size() > 3) return wrong("must be rados:POOL[/NAMESPACE]/NAME");
  if (!std::all_of(parts.begin(), parts.end(), is_part))
    return wrong("pool, namespace and name have 1 to 100 letters, digits, '.', '_' and '-'");
  if (looks_like_data(parts.back())) return wrong("the name ends like an object of data: choose another one");
  return RadosName{std::string(parts.front()), parts.size() == 3 ? std::string(parts[1]) : std::string(),
                   std::string(parts.back())};
}

std::string RadosName::data_object(std::uint64_t number) const { return fmt::format("{}.{:016x}", name, number); }

bool RadosName::is_data_object(std::string_view object) const {
  return object.size() == name.size() + 1 + kNumberDigits && object.starts_with(name) && looks_like_data(object);
}

bool is_rados_name(std::string_view text) { return text.starts_with(kRadosPrefix); }

}  // namespace mdfs::device
