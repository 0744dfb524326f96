// A window that is shown as a picture: its rows and columns, and where its samples come from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "base/result.h"

namespace mdfs::views {

struct Raster {
  std::uint64_t width = 0;   // samples
  std::uint64_t height = 0;  // rows
  unsigned channels = 1;
  unsigned sample_bytes = 1;  // of one channel: 1, 2 or 4
  std::uint64_t row_bytes() const { return width * channels * sample_bytes; }
};

// Source of the canonical bytes of a window.
using WindowBytes = std::function<Status(std::uint64_t offset, MutableBytes into)>;

}  // namespace mdfs::views
