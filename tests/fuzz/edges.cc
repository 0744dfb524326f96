// Edges of the control flow: clang's -fsanitize-coverage=inline-bool-flag sets a flag for each one that is taken.
// SPDX-License-Identifier: Apache-2.0
#include "edges.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"

namespace {

constexpr std::size_t kMostParts = 16;  // of the program that have flags of their own: itself and its libraries

std::array<std::span<const bool>, kMostParts> parts;
std::size_t part_count = 0;

}  // namespace

// Called by each part before main(), once for each of its objects with the same flags.
extern "C" void __sanitizer_cov_bool_flag_init(bool* begin, bool* end);
extern "C" void __sanitizer_cov_bool_flag_init(bool* begin, bool* end) {
  for (std::size_t i = 0; i < part_count; ++i)
    if (parts[i].data() == begin) return;
  MDFS_CHECK(part_count < kMostParts);
  parts[part_count++] = {begin, end};
}

namespace mdfs::fuzz {

Edges count_edges() {
  Edges edges;
  for (const std::span<const bool> part : std::span(parts).first(part_count)) {
    edges.all += part.size();
    edges.reached += static_cast<std::uint64_t>(std::ranges::count(part, true));
  }
  return edges;
}

}  // namespace mdfs::fuzz
