// A frame made from a coarser level: each sample as often as it stands for samples of the frame. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/bytes.h"
#include "geometry/geometry.h"

namespace mdfs::streams {

struct CoarserFrame {
  geometry::Geometry geometry;                       // of the coarser level
  geometry::Window window;                           // of that level: what covers the frame
  std::array<unsigned, geometry::kMaxRank> shift{};  // a sample of it stands for 2^shift of the frame along this axis
};

// `level`: the geometry of the frame's own level. `coarser`: levels above it, at most as many as there are (abort).
CoarserFrame coarser_frame(const geometry::Geometry& level, const geometry::Window& frame, unsigned coarser);
// The bytes of the frame, row-major as those of a window, from those of the coarser window. Aborts unless the sizes are
// those of window_bytes().
void repeat_samples(const geometry::Geometry& level, const geometry::Window& frame, const CoarserFrame& from,
                    ConstBytes samples, MutableBytes to);

}  // namespace mdfs::streams
