// Reserved bytes of an on-disk structure. A newer version may use them, so a program that rewrites the structure
// keeps them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

namespace mdfs::format {

template <std::size_t kBytes>
using Kept = std::array<std::byte, kBytes>;

}  // namespace mdfs::format
