// How many edges of the control flow have been taken, in a build that counts them (`./dev drive`).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mdfs::fuzz {

struct Edges {
  std::uint64_t reached = 0;
  std::uint64_t all = 0;  // of the program; 0: the build does not count
};
Edges count_edges();

}  // namespace mdfs::fuzz
