// Text form of UUIDs.
// SPDX-License-Identifier: Apache-2.0
#include "base/uuid.h"

#include <fmt/format.h>

#include <charconv>

namespace mdfs {
namespace {

constexpr bool dash_before(std::size_t octet) { return octet == 4 || octet == 6 || octet == 8 || octet == 10; }
constexpr std::size_t kTextLength = 36;

}  // namespace

std::string Uuid::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < octets.size(); ++i) {
    if (dash_before(i)) text += '-';
    text += fmt::format("{:02x}", octets[i]);
  }
  return text;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
  if (text.size() != kTextLength) return std::nullopt;
  Uuid uuid;
  const char* p = text.data();
  for (std::size_t i = 0; i < uuid.octets.size(); ++i) {
    if (dash_before(i) && *p++ != '-') return std::nullopt;
    const auto [end, error] = std::from_chars(p, p + 2, uuid.octets[i], 16);
    if (error != std::errc() || end != p + 2) return std::nullopt;
    p += 2;
  }
  return uuid;
}

}  // namespace mdfs
