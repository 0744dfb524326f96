// Binary PGM and PPM: header, and samples in big-endian order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "geometry/geometry.h"

namespace mdfs::views {

// "P5\nWIDTH HEIGHT\n255\n" for example. channels: 1 (PGM) or 3 (PPM); sample_bytes: 1 or 2.
ByteVector pnm_header(std::uint64_t width, std::uint64_t height, unsigned channels, unsigned sample_bytes);

// Swaps the two bytes of every 16-bit sample, in place. An odd size aborts.
void swap_samples_16(MutableBytes bytes);

}  // namespace mdfs::views
