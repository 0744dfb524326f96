// How work in the background gives way to readers, and how much of it a rebuild does at a time: for the mount, and for
// the simulator that predicts it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace mdfs {

// Before each piece of the work it waits while calls read data, at most so long.
inline constexpr std::int64_t kMostYieldNs = 20'000'000;
// It looks for readers so often.
inline constexpr std::int64_t kYieldNapNs = 1'000'000;

// A step of a rebuild looks for so many extents, and continues to the end of the page of the last of them.
inline constexpr std::size_t kRebuildExtents = 64;
// A piece of it: so many bytes of extents are read, and then written; at least an extent.
inline constexpr std::uint64_t kRebuildPieceBytes = 4u << 20;

// A step of a scrub reads so much of each disk at once.
inline constexpr std::size_t kScrubReadBytes = 1u << 20;

}  // namespace mdfs
