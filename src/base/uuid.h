// UUIDs of volumes, disks and commits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mdfs {

// A value, ordered by its octets. All zero: nil, which names nothing.
struct Uuid {
  std::array<std::uint8_t, 16> octets{};

  auto operator<=>(const Uuid&) const = default;
  bool is_nil() const { return *this == Uuid{}; }
  // 8-4-4-4-12 lower-case hexadecimal digits.
  std::string to_string() const;
  // Parses that form, with digits of either case; absent for any other text.
  static std::optional<Uuid> parse(std::string_view text);
};

}  // namespace mdfs
