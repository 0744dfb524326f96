// Claims about reductions of samples.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace mdfs::geometry {
namespace {

template <typename T>
std::vector<T> reduced(ElementType type, const ReducedBox& box, const std::vector<T>& from,
                       Reduction reduction = Reduction::kMean) {
  std::vector<T> into(box.result(0) * box.result(1) * box.result(2) * box.channels);
  reduce(reduction, type, box, std::as_bytes(std::span(from)), std::as_writable_bytes(std::span(into)));
  return into;
}

template <typename T>
T mean(ElementType type, T first, T second) {
  return reduced<T>(type, {{1, 1, 2}, {1, 1, 2}, 1}, {first, second})[0];
}

TEST(ReduceTest, IntegersAreRoundedToTheNearestAndHalvesToEven) {
  EXPECT_EQ(mean<std::uint8_t>(ElementType::kU8, 0, 1), 0);
  EXPECT_EQ(mean<std::uint8_t>(ElementType::kU8, 1, 2), 2);
  EXPECT_EQ(mean<std::uint8_t>(ElementType::kU8, 2, 3), 2);
  EXPECT_EQ(mean<std::uint16_t>(ElementType::kU16, 65535, 65533), 65534);
  EXPECT_EQ(mean<std::uint32_t>(ElementType::kU32, 4294967295u, 4294967293u), 4294967294u);
  EXPECT_EQ(mean<std::int8_t>(ElementType::kI8, -1, 0), 0);
  EXPECT_EQ(mean<std::int8_t>(ElementType::kI8, -1, -2), -2);
  EXPECT_EQ(mean<std::int16_t>(ElementType::kI16, -3, -2), -2);
  EXPECT_EQ(mean<std::int32_t>(ElementType::kI32, -8, 4), -2);
  const ReducedBox four{{1, 2, 2}, {1, 2, 2}, 1};
  EXPECT_EQ(reduced<std::uint8_t>(ElementType::kU8, four, {1, 1, 1, 0}), std::vector<std::uint8_t>{1});
  EXPECT_EQ(reduced<std::uint8_t>(ElementType::kU8, four, {0, 1, 0, 0}), std::vector<std::uint8_t>{0});
}

TEST(ReduceTest, TheNearestSampleIsTheFirstAndTheMaximumTheLargest) {
  const ReducedBox colours{{1, 2, 3}, {1, 2, 2}, 2};
  const std::vector<std::int16_t> from = {1, -9, 5, -7, 3, 8, -4, -5, 2, -6, 9, 1};
  EXPECT_EQ(reduced(ElementType::kI16, colours, from, Reduction::kNearest), (std::vector<std::int16_t>{1, -9, 3, 8}));
  EXPECT_EQ(reduced(ElementType::kI16, colours, from, Reduction::kMax), (std::vector<std::int16_t>{5, -5, 9, 8}));
  const ReducedBox two{{1, 1, 2}, {1, 1, 2}, 1};
  EXPECT_EQ(reduced<float>(ElementType::kF32, two, {-2.5f, -3.0f}, Reduction::kMax)[0], -2.5f);
  EXPECT_TRUE(std::isnan(reduced<float>(ElementType::kF32, two, {std::nanf(""), 2.0f}, Reduction::kMax)[0]));
  EXPECT_TRUE(std::isnan(reduced<float>(ElementType::kF32, two, {2.0f, std::nanf("")}, Reduction::kMax)[0]));
  EXPECT_EQ(*parse_reduction("nearest"), Reduction::kNearest);
  EXPECT_EQ(name(Reduction::kMax), "max");
  EXPECT_FALSE(parse_reduction("median").ok());
}

TEST(ReduceTest, TheLargestNumbersDoNotOverflow) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const ReducedBox eight{{2, 2, 2}, {2, 2, 2}, 1};
  EXPECT_EQ(reduced(ElementType::kU64, eight, std::vector(8, kMost)), std::vector{kMost});
  EXPECT_EQ(reduced(ElementType::kI64, eight, std::vector(8, kLeast)), std::vector{kLeast});
  EXPECT_EQ(mean(ElementType::kU64, kMost, kMost - 1), kMost - 1);
}

TEST(ReduceTest, FloatsAreRoundedOnce) {
  EXPECT_EQ(mean(ElementType::kF32, 1.0f, 2.0f), 1.5f);
  EXPECT_EQ(mean(ElementType::kF64, -1.0, 2.0), 0.5);
  EXPECT_TRUE(std::isnan(mean(ElementType::kF32, std::nanf(""), 2.0f)));
  const float large = std::numeric_limits<float>::max();
  EXPECT_EQ(mean(ElementType::kF32, large, large), large);
}

TEST(ReduceTest, HalfPrecisionFloatsAreRoundedToTheNearestAndHalvesToEven) {
  const auto half = [](std::uint16_t a, std::uint16_t b) { return mean(ElementType::kF16, a, b); };
  EXPECT_EQ(half(0x3c00, 0x4000), 0x3e00);
  EXPECT_EQ(half(0x3c00, 0x3c01), 0x3c00);
  EXPECT_EQ(half(0x3c01, 0x3c02), 0x3c02);
  EXPECT_EQ(half(0x0001, 0x0002), 0x0002);
  EXPECT_EQ(half(0x0000, 0x0001), 0x0000);
  EXPECT_EQ(half(0x3fff, 0x4000), 0x4000);
  EXPECT_EQ(half(0x7c00, 0xfc00) & 0x7c00, 0x7c00);
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7fff) > 0x7c00 || bits == 0x8000) continue;  // NaNs, and the other zero
    ASSERT_EQ(half(value, value), value);
  }
}

TEST(ReduceTest, AnEdgeIsTheMeanOfTheSamplesThatExist) {
  const ReducedBox box{{1, 3, 3}, {1, 2, 2}, 2};
  std::vector<std::uint8_t> from;
  for (std::uint8_t i = 0; i < 9; ++i) from.insert(from.end(), {static_cast<std::uint8_t>(4 * i), i});
  EXPECT_EQ(reduced(ElementType::kU8, box, from), (std::vector<std::uint8_t>{8, 2, 14, 4, 26, 6, 32, 8}));
}

// By the definition, sample by sample.
template <typename T>
std::vector<T> reduced_plainly(const ReducedBox& box, const std::vector<T>& from, Reduction reduction) {
  std::vector<T> into;
  const auto in_bounds = [&](unsigned axis, std::uint64_t at) {
    return std::min(box.length[axis] - at * box.step[axis], box.step[axis]);
  };
  for (std::uint64_t z = 0; z < box.result(0); ++z)
    for (std::uint64_t y = 0; y < box.result(1); ++y)
      for (std::uint64_t x = 0; x < box.result(2); ++x)
        for (unsigned channel = 0; channel < box.channels; ++channel) {
          std::vector<T> samples;
          for (std::uint64_t i = 0; i < in_bounds(0, z); ++i)
            for (std::uint64_t j = 0; j < in_bounds(1, y); ++j)
              for (std::uint64_t k = 0; k < in_bounds(2, x); ++k) {
                const std::uint64_t row = (z * box.step[0] + i) * box.length[1] + y * box.step[1] + j;
                samples.push_back(from[(row * box.length[2] + x * box.step[2] + k) * box.channels + channel]);
              }
          const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
          const auto mean = static_cast<T>(std::nearbyint(sum / static_cast<double>(samples.size())));
          into.push_back(reduction == Reduction::kMean  ? mean
                         : reduction == Reduction::kMax ? *std::max_element(samples.begin(), samples.end())
                                                        : samples.front());
        }
  return into;
}

template <typename T>
void expect_plain_reductions(ElementType type) {
  std::mt19937 random(3);
  for (unsigned times = 0; times < 300; ++times) {
    ReducedBox box;
    for (unsigned axis = 0; axis < 3; ++axis) {
      box.length[axis] = 1 + random() % 7;
      box.step[axis] = 1 + random() % 2;
    }
    box.channels = 1 + static_cast<unsigned>(random() % 3);
    std::vector<T> from(box.length[0] * box.length[1] * box.length[2] * box.channels);
    for (T& sample : from) sample = static_cast<T>(random());
    for (const Reduction reduction : {Reduction::kMean, Reduction::kNearest, Reduction::kMax})
      ASSERT_EQ(reduced(type, box, from, reduction), reduced_plainly(box, from, reduction)) << name(reduction);
  }
}

TEST(ReduceTest, AnyBoxIsReducedAsItsSamplesOneByOne) {
  expect_plain_reductions<std::uint8_t>(ElementType::kU8);
  expect_plain_reductions<std::int16_t>(ElementType::kI16);
  expect_plain_reductions<std::uint32_t>(ElementType::kU32);
}

}  // namespace
}  // namespace mdfs::geometry
