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
  using Integer =
      std::conditional_t<sizeof(T) == 8, Wide, std::conditional_t<sizeof(T) == 4, std::int64_t, std::int32_t>>;
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, Integer>;
  static void add(Sum& sum, T value) { sum += static_cast<Sum>(value); }
  // Of 2^shift samples.
  static T of(Sum sum, unsigned shift) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(std::ldexp(sum, -static_cast<int>(shift)));
    } else {
      // A half carries only where the number before it is odd.
      if (shift == 0) return static_cast<T>(sum);
      const Sum half = Sum{1} << (shift - 1), odd = (sum >> shift) & 1;
      return static_cast<T>((sum + half - 1 + odd) >> shift);
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

// Bytes between neighbours of a box.
struct Strides {
  std::uint64_t plane, row, sample;
};

// A row of results, each of so many planes, rows and columns. Constants, so that the compiler leaves no loop around the
// few samples of a result. Returns the end of the results.
template <typename T, template <typename> typename Reducer, unsigned planes, unsigned rows, unsigned columns>
std::byte* reduce_row(const std::byte* from, const Strides& strides, unsigned channels, std::uint64_t results,
                      std::byte* into) {
  constexpr unsigned shift = (planes - 1) + (rows - 1) + (columns - 1);
  for (; results > 0; --results, from += columns * strides.sample) {
    for (unsigned channel = 0; channel < channels; ++channel) {
      Reducer<T> reducer;
      for (unsigned z = 0; z < planes; ++z)
        for (unsigned y = 0; y < rows; ++y)
          for (unsigned x = 0; x < columns; ++x)
            reducer.add(load<T>(from + z * strides.plane + y * strides.row + x * strides.sample + channel * sizeof(T)));
      const T result = reducer.result(shift);
      std::memcpy(into, &result, sizeof result);
      into += sizeof result;
    }
  }
  return into;
}

template <typename T, template <typename> typename Reducer>
void reduce_with(const ReducedBox& box, const std::byte* from, std::byte* into) {
  using Row = std::byte* (*)(const std::byte*, const Strides&, unsigned, std::uint64_t, std::byte*);
  constexpr std::array<Row, 8> kRows = {// by planes, rows, columns
                                        reduce_row<T, Reducer, 1, 1, 1>, reduce_row<T, Reducer, 1, 1, 2>,
                                        reduce_row<T, Reducer, 1, 2, 1>, reduce_row<T, Reducer, 1, 2, 2>,
                                        reduce_row<T, Reducer, 2, 1, 1>, reduce_row<T, Reducer, 2, 1, 2>,
                                        reduce_row<T, Reducer, 2, 2, 1>, reduce_row<T, Reducer, 2, 2, 2>};
  Strides strides{};
  strides.sample = std::uint64_t{box.channels} * sizeof(T);
  strides.row = box.length[2] * strides.sample;
  strides.plane = box.length[1] * strides.row;
  const std::uint64_t whole = box.length[2] / box.step[2], rest = box.length[2] % box.step[2];
  for (std::uint64_t z = 0; z < box.length[0]; z += box.step[0]) {
    const std::uint64_t planes = std::min(box.step[0], box.length[0] - z);
    for (std::uint64_t y = 0; y < box.length[1]; y += box.step[1]) {
      const std::uint64_t rows = std::min(box.step[1], box.length[1] - y);
      const auto row_of = [&](std::uint64_t columns) { return kRows.at(planes * 4 + rows * 2 + columns - 7); };
      const std::byte* const row = from + z * strides.plane + y * strides.row;
      into = row_of(box.step[2])(row, strides, box.channels, whole, into);
      if (rest > 0) into = row_of(1)(row + whole * box.step[2] * strides.sample, strides, box.channels, 1, into);
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
