// The processors of the machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace mdfs::fuse {

// Numbers in a list as the kernel writes it, "0-3,8", ascending. kInvalidArgument for other text, and for numbers from
// kMaxProcessors on.
inline constexpr unsigned kMaxProcessors = 8192;
Result<std::vector<unsigned>> parse_processors(std::string_view list);

// All that the machine may have, also those that are absent now.
Result<std::vector<unsigned>> possible_processors();
// The processors that the calling thread may run on.
std::vector<unsigned> own_processors();

// The calling thread then runs on these only, if the system lets it. False: it does not.
bool run_on(const std::vector<unsigned>& processors);

}  // namespace mdfs::fuse
