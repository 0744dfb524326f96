// Frames from coarser levels.
// SPDX-License-Identifier: Apache-2.0
#include "streams/coarser_frame.h"

#include <cstring>

#include "base/check.h"
#include "base/checked.h"
#include "geometry/level.h"

namespace mdfs::streams {
namespace {

// The sizes are template arguments, so that a sample is copied without a call.
template <std::size_t kBytes>
void repeat_along(const std::byte* from, std::byte* to, std::uint64_t first, std::uint64_t length, unsigned shift) {
  const std::uint64_t base = first >> shift;
  for (std::uint64_t i = 0; i < length; ++i)
    std::memcpy(to + i * kBytes, from + (((first + i) >> shift) - base) * kBytes, kBytes);
}

class Repeater {
 public:
  Repeater(unsigned rank, const geometry::Window& frame, const CoarserFrame& from, std::size_t sample_bytes)
      : rank_(rank), frame_(frame), from_(from), sample_bytes_(sample_bytes) {
    frame_bytes_[rank] = from_bytes_[rank] = sample_bytes;
    for (unsigned axis = rank; axis-- > 0;) {
      frame_bytes_[axis] = frame_bytes_[axis + 1] * frame.length[axis];
      from_bytes_[axis] = from_bytes_[axis + 1] * from.window.length[axis];
    }
  }

  void repeat(unsigned axis, const std::byte* from, std::byte* to) const {
    const std::uint64_t first = frame_.start[axis], length = frame_.length[axis];
    const unsigned shift = from_.shift[axis];
    if (axis + 1 == rank_) return repeat_row(from, to, first, length, shift);
    const std::size_t step = frame_bytes_[axis + 1];
    for (std::uint64_t i = 0; i < length; ++i) {
      const std::uint64_t source = ((first + i) >> shift) - (first >> shift);
      if (i > 0 && source == ((first + i - 1) >> shift) - (first >> shift))
        std::memcpy(to + i * step, to + (i - 1) * step, step);
      else
        repeat(axis + 1, from + source * from_bytes_[axis + 1], to + i * step);
    }
  }

 private:
  void repeat_row(const std::byte* from, std::byte* to, std::uint64_t first, std::uint64_t length,
                  unsigned shift) const {
    if (sample_bytes_ == 1) return repeat_along<1>(from, to, first, length, shift);
    if (sample_bytes_ == 2) return repeat_along<2>(from, to, first, length, shift);
    if (sample_bytes_ == 3) return repeat_along<3>(from, to, first, length, shift);
    if (sample_bytes_ == 4) return repeat_along<4>(from, to, first, length, shift);
    if (sample_bytes_ == 8) return repeat_along<8>(from, to, first, length, shift);
    for (std::uint64_t i = 0; i < length; ++i)
      std::memcpy(to + i * sample_bytes_, from + (((first + i) >> shift) - (first >> shift)) * sample_bytes_,
                  sample_bytes_);
  }

  const unsigned rank_;
  const geometry::Window& frame_;
  const CoarserFrame& from_;
  const std::size_t sample_bytes_;
  std::array<std::size_t, geometry::kMaxRank + 1> frame_bytes_{}, from_bytes_{};  // of one index of the axis before
};

}  // namespace

CoarserFrame coarser_frame(const geometry::Geometry& level, const geometry::Window& frame, unsigned coarser) {
  MDFS_CHECK(coarser <= geometry::level_count(level));
  CoarserFrame result{level, frame, {}};
  for (unsigned i = 0; i < coarser; ++i) {
    const geometry::HalvedAxes halved = geometry::halved_axes(result.geometry);
    for (unsigned axis = 0; axis < level.rank; ++axis) result.shift[axis] += halved[axis] ? 1 : 0;
    result.geometry = geometry::geometry_above(result.geometry);
  }
  for (unsigned axis = 0; axis < level.rank; ++axis) {
    const std::uint64_t first = frame.start[axis] >> result.shift[axis];
    const std::uint64_t last = (frame.start[axis] + frame.length[axis] - 1) >> result.shift[axis];
    result.window.start[axis] = first;
    result.window.length[axis] = last - first + 1;
  }
  return result;
}

void repeat_samples(const geometry::Geometry& level, const geometry::Window& frame, const CoarserFrame& from,
                    ConstBytes samples, MutableBytes to) {
  MDFS_CHECK(samples.size() == geometry::window_bytes(from.geometry, from.window));
  MDFS_CHECK(to.size() == geometry::window_bytes(level, frame) && !to.empty());
  std::size_t sample_bytes = to.size();
  for (unsigned axis = 0; axis < level.rank; ++axis) sample_bytes /= frame.length[axis];
  Repeater(level.rank, frame, from, sample_bytes).repeat(0, samples.data(), to.data());
}

}  // namespace mdfs::streams
