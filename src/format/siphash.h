// SipHash-2-4: a keyed hash of short texts, after Aumasson and Bernstein (2012).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace mdfs::format {

// Two words, as 16 bytes little endian.
using SipKey = std::array<std::uint64_t, 2>;

// The hash of a text, of any length. Without the key it is infeasible to predict the hash of a text or to make texts of
// equal hash.
std::uint64_t siphash(const SipKey& key, ConstBytes text);

}  // namespace mdfs::format
