// Runs of bits in an array of 64-bit words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace mdfs::alloc {

// The bits [first, end) that lie in word `index`.
constexpr std::uint64_t word_mask(std::uint64_t index, std::uint64_t first, std::uint64_t end) {
  const std::uint64_t base = index * 64;
  const std::uint64_t from = first > base ? first - base : 0;
  const std::uint64_t to = end < base + 64 ? end - base : 64;
  if (from >= to) return 0;
  const std::uint64_t high = to == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1;
  return high & (~std::uint64_t{0} << from);
}

inline void set_bits(std::span<std::uint64_t> words, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t i = first / 64; i * 64 < end; ++i) words[i] |= word_mask(i, first, end);
}

inline void clear_bits(std::span<std::uint64_t> words, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t i = first / 64; i * 64 < end; ++i) words[i] &= ~word_mask(i, first, end);
}

inline std::uint64_t count_set(std::span<const std::uint64_t> words, std::uint64_t first, std::uint64_t end) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = first / 64; i * 64 < end; ++i)
    sum += static_cast<std::uint64_t>(std::popcount(words[i] & word_mask(i, first, end)));
  return sum;
}

// The first bit of [first, end) that is set (`value` true) or clear; `end` if there is none.
inline std::uint64_t next_bit(std::span<const std::uint64_t> words, std::uint64_t first, std::uint64_t end,
                              bool value) {
  for (std::uint64_t i = first / 64; i * 64 < end; ++i) {
    const std::uint64_t word = (value ? words[i] : ~words[i]) & word_mask(i, first, end);
    if (word != 0) return i * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
  }
  return std::max(first, end);
}

}  // namespace mdfs::alloc
