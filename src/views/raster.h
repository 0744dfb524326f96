// The rows and columns of a window that is shown as a picture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mdfs::views {

struct Raster {
  std::uint64_t width = 0;   // samples
  std::uint64_t height = 0;  // rows
  unsigned channels = 1;
  unsigned sample_bytes = 1;  // of one channel: 1, 2 or 4
  std::uint64_t row_bytes() const { return width * channels * sample_bytes; }
};

}  // namespace mdfs::views
