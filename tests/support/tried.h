// What a test has tried, for those who want to see it: `./dev prove` collects these lines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>

namespace mdfs::test {

// "tried: 14 subsets of labels wiped". When it has been tried, at the end of a test.
template <typename... Arguments>
void tried(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  fmt::print("tried: {}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
  std::fflush(stdout);
}

}  // namespace mdfs::test
