// What scattering is for: a volume that is nearly full reads as fast as an empty one.
// SPDX-License-Identifier: Apache-2.0
#include "fill/filling.h"

#include <gtest/gtest.h>

namespace mdfs::bench {
namespace {

// The rates of images stored when the volume was 10 % and 90 % full, over several seeds; in that order.
std::vector<FillPoint> rates(geometry::AllocationPolicy policy) {
  const auto machine = model::find_machine("sata-disk-zoned");
  EXPECT_TRUE(machine.ok()) << machine.error().message();
  std::vector<FillPoint> sum(2);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    FillOptions options{.disk_bytes = 512u << 20, .policy = policy, .seed = seed, .steps = {0.1, 0.9}, .images = 12};
    const auto points = fill(*machine, options);
    EXPECT_TRUE(points.ok()) << points.error().message();
    if (!points.ok()) return sum;
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR((*points)[i].full, options.steps[i], 0.03);
      sum[i].image_bytes_per_s += (*points)[i].image_bytes_per_s / 4;
      sum[i].window_bytes_per_s += (*points)[i].window_bytes_per_s / 4;
    }
  }
  return sum;
}

TEST(FillingTest, ScatteredImagesAreReadAsFastAtNinetyPercentFullAsAtTen) {
  const std::vector<FillPoint> points = rates(geometry::AllocationPolicy::kScatter);
  EXPECT_GE(points[1].image_bytes_per_s, 0.9 * points[0].image_bytes_per_s);
  EXPECT_GE(points[1].window_bytes_per_s, 0.9 * points[0].window_bytes_per_s);
}

TEST(FillingTest, ImagesThatFillTheDisksFromTheirBeginningAreReadSlowerAndSlower) {
  const std::vector<FillPoint> points = rates(geometry::AllocationPolicy::kFirst);
  EXPECT_LT(points[1].image_bytes_per_s, 0.7 * points[0].image_bytes_per_s);
}

TEST(FillingTest, TheSameSeedGivesTheSameFigures) {
  const auto machine = model::find_machine("sata-disk-zoned");
  ASSERT_TRUE(machine.ok());
  FillOptions options{.disk_bytes = 128u << 20, .steps = {0.5}, .images = 3};
  const auto one = fill(*machine, options);
  const auto two = fill(*machine, options);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ((*one)[0].image_bytes_per_s, (*two)[0].image_bytes_per_s);
  EXPECT_EQ((*one)[0].window_bytes_per_s, (*two)[0].window_bytes_per_s);
}

}  // namespace
}  // namespace mdfs::bench
