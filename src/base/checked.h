// Arithmetic on numbers from outside: the functions report overflow and never wrap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

namespace mdfs {

// The sum or product; absent if it needs more than 64 bits.
constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// a / b, rounded up. b > 0. Never overflows.
constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

// The next multiple of `unit` from `a` on, and the last one up to `a`. unit > 0. The caller must know that the result
// fits.
constexpr std::uint64_t align_up(std::uint64_t a, std::uint64_t unit) { return ceil_div(a, unit) * unit; }
constexpr std::uint64_t align_down(std::uint64_t a, std::uint64_t unit) { return a / unit * unit; }

constexpr bool is_power_of_two(std::uint64_t a) { return std::has_single_bit(a); }

// True if [offset, offset + length) lies inside [0, size).
constexpr bool inside(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return offset <= size && length <= size - offset;
}

}  // namespace mdfs
