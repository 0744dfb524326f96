// Frames made from coarser levels.
// SPDX-License-Identifier: Apache-2.0
#include "streams/coarser_frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "geometry/level.h"

namespace mdfs::streams {
namespace {

using geometry::Coord;
using geometry::Geometry;
using geometry::Window;

// Calls `visit` for each index of a box, the last axis fastest.
template <typename Visit>
void each(unsigned rank, const Coord& length, const Visit& visit) {
  Coord at{};
  for (;;) {
    visit(at);
    unsigned axis = rank;
    while (axis > 0 && ++at[axis - 1] == length[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

RC_GTEST_PROP(CoarserFrameTest, EverySampleIsTheOneOfTheCoarserLevelThatStandsForIt, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const auto number = [&](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  Geometry level;
  level.rank = static_cast<unsigned>(number(1, 5));
  level.axes = std::string("tczyx").substr(5 - level.rank);
  level.type = number(0, 1) == 0 ? geometry::ElementType::kU8 : geometry::ElementType::kU16;
  level.channels = static_cast<std::uint32_t>(number(1, 3));
  for (unsigned axis = 0; axis < level.rank; ++axis) level.shape[axis] = number(1, axis + 2 < level.rank ? 4 : 20);
  level.extent = level.shape;
  Window frame;
  for (unsigned axis = 0; axis < level.rank; ++axis) {
    frame.start[axis] = number(0, level.shape[axis] - 1);
    frame.length[axis] = number(1, level.shape[axis] - frame.start[axis]);
  }
  if (number(0, 1) == 0) frame.channel = static_cast<std::uint32_t>(number(0, level.channels - 1));
  const unsigned coarser = static_cast<unsigned>(number(0, std::min(3u, geometry::level_count(level))));

  const CoarserFrame source = coarser_frame(level, frame, coarser);
  RC_ASSERT(source.geometry == geometry::level_geometry(level, coarser));
  RC_ASSERT(geometry::check(source.geometry, source.window).ok());
  ByteVector samples(geometry::window_bytes(source.geometry, source.window));
  for (std::byte& one : samples) one = static_cast<std::byte>(random());
  ByteVector frame_bytes(geometry::window_bytes(level, frame));
  repeat_samples(level, frame, source, samples, frame_bytes);

  std::uint64_t count = 1;
  for (unsigned axis = 0; axis < level.rank; ++axis) count *= frame.length[axis];
  const std::uint64_t sample_bytes = frame_bytes.size() / count;
  std::uint64_t place = 0;
  each(level.rank, frame.length, [&](const Coord& at) {
    std::uint64_t from = 0;
    Coord above{};
    for (unsigned axis = 0; axis < level.rank; ++axis) above[axis] = frame.start[axis] + at[axis];
    Geometry upper = level;
    for (unsigned i = 0; i < coarser; ++i) {
      const geometry::HalvedAxes halved = geometry::halved_axes(upper);
      for (unsigned axis = 0; axis < level.rank; ++axis)
        if (halved[axis]) above[axis] /= 2;
      upper = geometry::geometry_above(upper);
    }
    for (unsigned axis = 0; axis < level.rank; ++axis)
      from = from * source.window.length[axis] + above[axis] - source.window.start[axis];
    RC_ASSERT(std::equal(frame_bytes.begin() + static_cast<std::ptrdiff_t>(place * sample_bytes),
                         frame_bytes.begin() + static_cast<std::ptrdiff_t>((place + 1) * sample_bytes),
                         samples.begin() + static_cast<std::ptrdiff_t>(from * sample_bytes)));
    ++place;
  });
}

}  // namespace
}  // namespace mdfs::streams
