// Reductions of samples of all element types.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

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

// Of 2^shift samples, which are added one by one.
template <typename T>
struct MeanOf {
  typename SampleMean<T>::Sum sum = 0;
  void add(T value) { SampleMean<T>::add(sum, value); }
  T result(unsigned shift) const { return SampleMean<T>::of(sum, shift); }
};

template <typename T>
struct NearestOf {
  T first{};
  bool any = false;
  void add(T value) {
    if (!std::exchange(any, true)) first = value;
  }
  T result(unsigned) const { return first; }
};

double order_of(Half value) { return to_double(value); }
template <typename T>
T order_of(T value) {
  return value;
}

template <typename T>
struct MaximumOf {
  T largest{};
  bool any = false;
  void add(T value) {
    const auto now = order_of(largest), next = order_of(value);
    // Not equal to itself: a NaN, which stays.
    if (!std::exchange(any, true) || (now == now && !(next <= now))) largest = value;
  }
  T result(unsigned) const { return largest; }
};

template <typename T, template <typename> typename Reducer>
void reduce_with(const ReducedBox& box, const std::byte* from, std::byte* into) {
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
          Reducer<T> reducer;
          for (std::uint64_t z = 0; z < planes; ++z)
            for (std::uint64_t y = 0; y < rows; ++y)
              for (std::uint64_t x = 0; x < columns; ++x)
                reducer.add(load<T>(first + z * plane + y * row + x * sample + channel * sizeof(T)));
          const T result = reducer.result(shift);
          std::memcpy(into, &result, sizeof result);
          into += sizeof result;
        }
      }
    }
  }
}

template <typename T>
void reduce_as(Reduction reduction, const ReducedBox& box, const std::byte* from, std::byte* into) {
  switch (reduction) {
    case Reduction::kMean:
      return reduce_with<T, MeanOf>(box, from, into);
    case Reduction::kNearest:
      return reduce_with<T, NearestOf>(box, from, into);
    case Reduction::kMax:
      return reduce_with<T, MaximumOf>(box, from, into);
  }
}

constexpr std::array<std::string_view, kReductions> kReductionNames = {"mean", "nearest", "max"};

}  // namespace

std::string_view name(Reduction reduction) { return kReductionNames.at(static_cast<std::size_t>(reduction) - 1); }

Result<Reduction> parse_reduction(std::string_view text) {
  for (std::size_t i = 0; i < kReductions; ++i)
    if (kReductionNames[i] == text) return static_cast<Reduction>(i + 1);
  return Error{Errc::kInvalidArgument, std::string(text) + ": must be mean, nearest or max"};
}

void reduce(Reduction reduction, ElementType type, const ReducedBox& box, ConstBytes from, MutableBytes into) {
  const std::uint64_t sample = std::uint64_t{box.channels} * element_bytes(type);
  for (const std::uint64_t step : box.step) MDFS_CHECK(step == 1 || step == 2);
  MDFS_CHECK(from.size() == box.length[0] * box.length[1] * box.length[2] * sample);
  MDFS_CHECK(into.size() == box.result(0) * box.result(1) * box.result(2) * sample);
  with_type(type, [&](auto one) { reduce_as<decltype(one)>(reduction, box, from.data(), into.data()); });
}

}  // namespace mdfs::geometry
