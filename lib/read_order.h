// The order in which a large window is read, so that each extent is decoded once. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace mdfs::client {

// A window of an image, slowest axis first, in samples.
struct CutWindow {
  std::span<const std::uint64_t> start, length;
  std::span<const std::uint32_t> extent;  // of the image
};

// Samples that lie between two visits to an extent, at most, where a window is read in the order of its samples; they
// must be in a cache, or extents are decoded again. 0: the order of the samples visits each extent once.
std::uint64_t samples_between_visits(const CutWindow& window);

// Calls `read(first, count)` for runs of samples of the window's order, which together are the window, row of extents
// by row of extents. Ends at the first negative result, and returns it; else 0.
int in_order_of_extents(const CutWindow& window, const std::function<int(std::uint64_t, std::uint64_t)>& read);

}  // namespace mdfs::client
