// Means of samples of all element types.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "geometry/sample_type.h"

namespace mdfs::geometry {
namespace {

static_assert(std::endian::native == std::endian::little, "samples are used as they lie");

__extension__ typedef __int128 Wide;  // the sum of eight numbers of 64 bits

template <typename T>
struct SampleMean {
  using Sum =
      std::conditional_t<std::is_floating_point_v<T>, double, std::conditional_t<sizeof(T) == 8, Wide, std::int64_t>>;
  static void add(Sum& sum, T value) { sum += static_cast<Sum>(value); }
  // Of 2^shift samples.
  static T of(Sum sum, unsigned shift) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(std::ldexp(sum, -static_cast<int>(shift)));
    } else {
      const Sum floor = sum >> shift;
      const Sum rest = sum - floor * (Sum{1} << shift);
      const Sum twice = rest * 2, whole = Sum{1} << shift;
      return static_cast<T>(floor + (twice > whole || (twice == whole && (floor & 1) != 0) ? 1 : 0));
    }
  }
};

template <>
struct SampleMean<Half> {
  using Sum = double;
  static void add(Sum& sum, Half value) { sum += to_double(value); }
  static Half of(Sum sum, unsigned shift) { return to_half(std::ldexp(sum, -static_cast<int>(shift))); }
};

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void reduce(const ReducedBox& box, const std::byte* from, std::byte* into) {
  const std::uint64_t sample = std::uint64_t{box.channels} * sizeof(T);
  const std::uint64_t row = box.length[2] * sample, plane = box.length[1] * row;
  std::array<std::uint64_t, 3> at{};
  for (at[0] = 0; at[0] < box.length[0]; at[0] += box.step[0]) {
    const std::uint64_t planes = std::min(box.step[0], box.length[0] - at[0]);
    for (at[1] = 0; at[1] < box.length[1]; at[1] += box.step[1]) {
      const std::uint64_t rows = std::min(box.step[1], box.length[1] - at[1]);
      for (at[2] = 0; at[2] < box.length[2]; at[2] += box.step[2]) {
        const std::uint64_t columns = std::min(box.step[2], box.length[2] - at[2]);
        const auto shift = static_cast<unsigned>((planes - 1) + (rows - 1) + (columns - 1));
        const std::byte* const first = from + at[0] * plane + at[1] * row + at[2] * sample;
        for (unsigned channel = 0; channel < box.channels; ++channel) {
          typename SampleMean<T>::Sum sum = 0;
          for (std::uint64_t z = 0; z < planes; ++z)
            for (std::uint64_t y = 0; y < rows; ++y)
              for (std::uint64_t x = 0; x < columns; ++x)
                SampleMean<T>::add(sum, load<T>(first + z * plane + y * row + x * sample + channel * sizeof(T)));
          const T mean = SampleMean<T>::of(sum, shift);
          std::memcpy(into, &mean, sizeof mean);
          into += sizeof mean;
        }
      }
    }
  }
}

}  // namespace

void reduce_mean(ElementType type, const ReducedBox& box, ConstBytes from, MutableBytes into) {
  const std::uint64_t sample = std::uint64_t{box.channels} * element_bytes(type);
  for (const std::uint64_t step : box.step) MDFS_CHECK(step == 1 || step == 2);
  MDFS_CHECK(from.size() == box.length[0] * box.length[1] * box.length[2] * sample);
  MDFS_CHECK(into.size() == box.result(0) * box.result(1) * box.result(2) * sample);
  with_type(type, [&](auto one) { reduce<decltype(one)>(box, from.data(), into.data()); });
}

}  // namespace mdfs::geometry
