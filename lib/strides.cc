// Copies between packed windows and buffers with strides.
// SPDX-License-Identifier: Apache-2.0
#include "strides.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace mdfs::client {
namespace {

// Calls `copy(offset in the buffer, offset in the packed bytes, bytes)` for each contiguous piece.
template <typename Copy>
void walk(const StridedLayout& layout, std::uint64_t first, std::size_t bytes, Copy copy) {
  const std::size_t last = layout.lengths.size() - 1;
  const bool rows_are_packed = layout.strides[last] == static_cast<std::int64_t>(layout.sample_bytes);
  for (std::size_t done = 0; done < bytes;) {
    // The place of sample `first` in the box.
    std::uint64_t rest = first, offset = 0, in_row = 0;
    for (std::size_t axis = layout.lengths.size(); axis-- > 0;) {
      const std::uint64_t place = rest % layout.lengths[axis];
      if (axis == last) in_row = place;
      offset += place * static_cast<std::uint64_t>(layout.strides[axis]);
      rest /= layout.lengths[axis];
    }
    const std::uint64_t samples =
        std::min<std::uint64_t>(layout.lengths[last] - in_row, (bytes - done) / layout.sample_bytes);
    if (rows_are_packed) {
      copy(offset, done, samples * layout.sample_bytes);
    } else {
      for (std::uint64_t i = 0; i < samples; ++i)
        copy(offset + i * static_cast<std::uint64_t>(layout.strides[last]), done + i * layout.sample_bytes,
             layout.sample_bytes);
    }
    first += samples;
    done += samples * layout.sample_bytes;
  }
}

}  // namespace

Result<std::uint64_t> reach(const StridedLayout& layout) {
  std::uint64_t end = layout.sample_bytes;
  for (std::size_t axis = 0; axis < layout.lengths.size(); ++axis) {
    if (layout.strides[axis] < 0 && layout.lengths[axis] > 1)
      return Error{Errc::kInvalidArgument, "strides are at least 0"};
    if (layout.lengths[axis] <= 1) continue;
    const auto span = checked_mul(layout.lengths[axis] - 1, static_cast<std::uint64_t>(layout.strides[axis]));
    const auto sum = span ? checked_add(end, *span) : std::nullopt;
    if (!sum) return Error{Errc::kOverflow, "strides times lengths"};
    end = *sum;
  }
  return end;
}

void scatter(const StridedLayout& layout, std::uint64_t first, ConstBytes packed, std::byte* buffer) {
  walk(layout, first, packed.size(), [&](std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    std::memcpy(buffer + to, packed.data() + from, bytes);
  });
}

void gather(const StridedLayout& layout, std::uint64_t first, const std::byte* buffer, MutableBytes packed) {
  walk(layout, first, packed.size(), [&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    std::memcpy(packed.data() + to, buffer + from, bytes);
  });
}

}  // namespace mdfs::client
