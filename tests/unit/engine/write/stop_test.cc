// A caller that goes away ends its window write before the next extent is encoded, and nothing is changed.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

TEST(StopTest, AWindowWriteEndsBetweenTwoExtentsAndChangesNothing) {
  constexpr std::uint64_t kSide = 512;
  Setting setting{image_of(2, {kSide, kSide}, {64, 64}, geometry::Codec::kZstd)};
  setting.cache_bytes = 16u << 20;  // the whole window is one batch
  Bench bench(setting);
  std::mt19937_64 random(7);
  const ByteVector before = noise(random, kSide * kSide), after = noise(random, kSide * kSide);
  const geometry::Window window = geometry::whole(bench.geometry_now());
  ASSERT_TRUE(bench.write_window(window, before).ok());
  const auto from = [&](std::uint64_t offset, MutableBytes into) -> Status {
    std::memcpy(into.data(), after.data() + offset, into.size());
    return {};
  };
  std::atomic<unsigned> asked = 0;
  ASSERT_TRUE(bench.engine().write_window(bench.object(), window, from, [&] { return ++asked == 0; }).ok());
  const unsigned all = asked;
  EXPECT_GE(all, 64u) << "less often than for each extent";
  ASSERT_TRUE(bench.write_window(window, before).ok());
  for (const unsigned most : {1u, 10u, 40u, all - 1}) {
    asked = 0;
    const Status status = bench.engine().write_window(bench.object(), window, from, [&] { return ++asked > most; });
    ASSERT_FALSE(status.ok()) << most;
    EXPECT_EQ(status.error().code, Errc::kCancelled);
    EXPECT_EQ(bench.read_window(window), before) << most;
  }
}

}  // namespace
}  // namespace mdfs::engine::testing
