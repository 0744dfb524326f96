// Windows at random places of an image that share no extent, so that a cache is no help.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::tools {

using Windows = std::vector<geometry::Window>;

// Up to `count` of each size, a text such as 512x512; kOutOfRange if there is no room for `least` of one. Large ones
// are placed first, and each size gets an equal part of the image at most.
Result<std::vector<Windows>> choose_windows(const geometry::Geometry& image, std::span<const std::string> sizes,
                                            unsigned count, unsigned least, std::uint64_t seed);

}  // namespace mdfs::tools
