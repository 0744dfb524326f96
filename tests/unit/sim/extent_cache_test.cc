// The simulated cache: what it holds, what it drops, and windows that wait for each other.
// SPDX-License-Identifier: Apache-2.0
#include "sim/extent_cache.h"

#include <gtest/gtest.h>

#include "sim/experiment.h"
#include "sim/simulation.h"

namespace mdfs::sim {
namespace {

constexpr double kRequestS = 0.010;

TEST(ExtentCacheTest, ItHoldsUnitsUpToItsBudgetAndDropsTheExtentThatWasUsedLongestAgo) {
  ExtentCache cache(300);
  const auto key = [](std::uint64_t extent) { return ExtentCache::Key{nullptr, 0, extent}; };
  cache.put(key(1), 0, 100, 11);
  cache.put(key(2), 3, 100, 12);
  cache.put(key(2), 3, 100, 13);  // again: counts once
  EXPECT_EQ(cache.used_bytes(), 200U);
  cache.put(key(3), 0, 100, 14);
  EXPECT_EQ(cache.find(key(1), 0), 11U);  // used now
  cache.put(key(4), 0, 100, 15);
  EXPECT_EQ(cache.find(key(1), 0), 11U);
  EXPECT_EQ(cache.find(key(2), 3), 0U);
  EXPECT_EQ(cache.find(key(1), 1), 0U);
  EXPECT_EQ(cache.find(key(4), 0), 15U);
  EXPECT_EQ(cache.used_bytes(), 300U);
}

TEST(ExtentCacheTest, ImagesAndTheirBasesAreApart) {
  ExtentCache cache(1000);
  const int image = 0;
  cache.put({&image, 1, 7}, 0, 10, 1);
  EXPECT_EQ(cache.find({&image, 1, 7}, 0), 1U);
  EXPECT_EQ(cache.find({&image, 2, 7}, 0), 0U);
  EXPECT_EQ(cache.find({nullptr, 1, 7}, 0), 0U);
}

TEST(ExtentCacheTest, AUnitLargerThanTheBudgetIsNotKept) {
  ExtentCache cache(100);
  cache.put({nullptr, 0, 1}, 0, 101, 1);
  EXPECT_EQ(cache.find({nullptr, 0, 1}, 0), 0U);
  EXPECT_EQ(cache.used_bytes(), 0U);
}

// One disk with 10 ms a request; 4 x 4 extents of 128x128x3.
System cached_system(std::uint64_t cache_bytes, const std::string& more = "") {
  const auto machine = model::parse_machine(R"(name = "disk"
[image]
shape = "512x512"
extent = "128x128"
[[resource]]
name = "disk"
count = "disks"
[[resource]]
name = "host"
count = 1
)" + more + R"([[stage]]
name = "read"
resource = "disk"
cost = "10 ms"
)",
                                            "test");
  EXPECT_TRUE(machine.ok()) << machine.error().message();
  sim::Setup setup = default_setup(*machine).value();
  setup.cache_bytes = cache_bytes;
  return System::make(std::move(setup)).value();
}

geometry::Window extent_of(std::uint64_t y, std::uint64_t x) {
  geometry::Window window;
  window.start = {y * 128, x * 128, 0};
  window.length = {128, 128, 0};
  return window;
}

std::vector<double> delays(const System& system, const std::vector<std::pair<double, geometry::Window>>& asked,
                           std::vector<bool> writes = {}) {
  Simulation simulation(system, 1);
  writes.resize(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i)
    simulation.submit_at(asked[i].first, {asked[i].second}, 0, 0, system, writes[i]);
  simulation.run();
  std::vector<double> delays;
  for (const WindowRecord& record : simulation.records()) delays.push_back(record.delay_s());
  return delays;
}

void expect_delays(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12) << i;
}

TEST(ExtentCacheTest, AWindowThatWasReadBeforeTakesNoTime) {
  const std::vector<std::pair<double, geometry::Window>> asked = {
      {0, extent_of(0, 0)}, {1, extent_of(0, 0)}, {2, extent_of(1, 1)}};
  expect_delays(delays(cached_system(1 << 20), asked), {kRequestS, 0, kRequestS});
  expect_delays(delays(cached_system(0), asked), {kRequestS, kRequestS, kRequestS});
}

TEST(ExtentCacheTest, AWindowWaitsForTheRequestsOfAnotherOneInsteadOfRepeatingThem) {
  // Both windows are under way at once: the second waits for the rest of the first one's request.
  expect_delays(delays(cached_system(1 << 20), {{0, extent_of(0, 0)}, {0.004, extent_of(0, 0)}}),
                {kRequestS, kRequestS - 0.004});
  expect_delays(delays(cached_system(0), {{0, extent_of(0, 0)}, {0.004, extent_of(0, 0)}}),
                {kRequestS, 2 * kRequestS - 0.004});
}

TEST(ExtentCacheTest, AWindowDoesNotEndBeforeItsOwnFirstStage) {
  const System system = cached_system(1 << 20, R"([[stage]]
name = "ask"
resource = "host"
per = "window"
cost = "30 ms"
)");
  // The second window asks behind the first, 30 to 60 ms; the bytes are there at 40.
  expect_delays(delays(system, {{0, extent_of(0, 0)}, {0, extent_of(0, 0)}}), {0.040, 0.060});
}

TEST(ExtentCacheTest, AWriteGoesToTheDiskAndIsReadFromTheCache) {
  expect_delays(delays(cached_system(1 << 20), {{0, extent_of(0, 0)}, {1, extent_of(0, 0)}, {2, extent_of(0, 0)}},
                       {true, true, false}),
                {kRequestS, kRequestS, 0});
}

TEST(ExtentCacheTest, ASetOfWindowsLargerThanTheCacheIsReadAgain) {
  std::vector<std::pair<double, geometry::Window>> asked;
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t i = 0; i < 16; ++i)
      asked.push_back({round * 100 + static_cast<double>(i), extent_of(i / 4, i % 4)});
  const auto total = [&](std::uint64_t cache_bytes) {
    double sum = 0;
    for (const double delay : delays(cached_system(cache_bytes), asked)) sum += delay;
    return sum;
  };
  EXPECT_NEAR(total(16 * 49152), 16 * kRequestS, 1e-9);
  EXPECT_NEAR(total(15 * 49152), 32 * kRequestS, 1e-9);
}

TEST(ExtentCacheTest, ManyClientsOnOneCacheAllEnd) {
  sim::Setup setup = default_setup(model::find_machine("sata-shelf-10gbe").value()).value();
  setup.cache_bytes = 64u << 20;
  setup.image = make_image("2048x2048", "256x256", true, 3).value();
  const System system = System::make(setup).value();
  LoadOptions options;
  options.length = {300, 300, 0};
  options.windows = 2000;
  const LoadResult shared = closed(system, options, 16, 0);
  EXPECT_EQ(shared.delays_s.size(), 1800U);
  setup.cache_bytes = 0;
  EXPECT_LT(shared.mean.mean, 0.1 * closed(System::make(setup).value(), options, 16, 0).mean.mean);
}

}  // namespace
}  // namespace mdfs::sim
