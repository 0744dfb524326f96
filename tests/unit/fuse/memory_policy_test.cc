// The size of the cache: what the kernel says, the default, pressure and idleness.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/memory_policy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/environment.h"

namespace mdfs::fuse {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kGiB = 1u << 30;
constexpr std::int64_t kSecond = kNsPerSecond;

TEST(MemoryPolicyTest, MeminfoGivesTotalAndAvailableMemory) {
  const auto info = parse_meminfo("MemTotal:       24652180 kB\nMemFree:   1 kB\nMemAvailable:   22020096 kB\n");
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->total_bytes, 24652180u * std::uint64_t{1024});
  EXPECT_EQ(info->available_bytes, 22020096u * std::uint64_t{1024});
  EXPECT_FALSE(parse_meminfo("MemTotal: 5 kB\n").has_value());
  EXPECT_FALSE(parse_meminfo("MemTotal: x kB\nMemAvailable: 3 kB\n").has_value());
}

TEST(MemoryPolicyTest, TheCgroupsOfBothVersionsAreFound) {
  const CgroupPaths unified = parse_cgroups("0::/system.slice/mdfs@srv.service\n");
  EXPECT_EQ(unified.unified, "/system.slice/mdfs@srv.service");
  EXPECT_FALSE(unified.memory.has_value());
  const CgroupPaths both = parse_cgroups("12:cpu,cpuacct:/a\n4:memory:/docker/1f\n1:name=systemd:/x\n0::/user:1\n");
  EXPECT_EQ(both.memory, "/docker/1f");
  EXPECT_EQ(both.unified, "/user:1");
  EXPECT_FALSE(parse_cgroups("nonsense\n").unified.has_value());
}

TEST(MemoryPolicyTest, NoLimitOfACgroupIsNotANumber) {
  EXPECT_EQ(parse_cgroup_limit("536870912\n"), 512 * kMiB);
  EXPECT_FALSE(parse_cgroup_limit("max\n").has_value());
  EXPECT_FALSE(parse_cgroup_limit("").has_value());
  EXPECT_EQ(parse_hierarchical_limit("cache 0\nhierarchical_memory_limit 1073741824\n"), kGiB);
  EXPECT_FALSE(parse_hierarchical_limit("cache 0\n").has_value());
}

TEST(MemoryPolicyTest, TheDefaultIsAQuarterOfWhatTheDaemonMayUse) {
  EXPECT_EQ(default_cache_bytes(24 * kGiB, std::nullopt), 6 * kGiB);
  EXPECT_EQ(default_cache_bytes(24 * kGiB, 2 * kGiB), 512 * kMiB);
  EXPECT_EQ(default_cache_bytes(2 * kGiB, 24 * kGiB), 512 * kMiB);
  EXPECT_EQ(default_cache_bytes(2 * kGiB, UINT64_MAX), 512 * kMiB);
  EXPECT_EQ(default_cache_bytes(128 * kMiB, std::nullopt), 64 * kMiB);
  EXPECT_EQ(default_cache_bytes(kGiB + 4097, std::nullopt), 256 * kMiB);
}

TEST(MemoryPolicyTest, MemoryIsScarceBelowASixteenthOfIt) {
  EXPECT_TRUE(is_scarce({4 * kGiB, 200 * kMiB}));
  EXPECT_FALSE(is_scarce({4 * kGiB, 300 * kMiB}));
  EXPECT_FALSE(is_scarce({512 * kGiB, 2 * kGiB}));
  EXPECT_TRUE(is_scarce({512 * kGiB, kGiB / 2}));
}

TEST(MemoryPolicyTest, PressureTakesAQuarterOfTheCacheAtEachLookDownToTheFloor) {
  MemoryPolicy policy(4 * kGiB);
  std::uint64_t used = 1 * kGiB;
  const MemoryDecision first = policy.decide({true, used, 0, kSecond});
  EXPECT_EQ(first.limit_bytes, 768 * kMiB);
  EXPECT_TRUE(first.gives_back);
  for (int i = 2; i < 30; ++i) used = policy.decide({true, used, 0, i * kSecond}).limit_bytes;
  EXPECT_EQ(used, 64 * kMiB);
}

TEST(MemoryPolicyTest, TheLimitRisesAgainHalfAMinuteAfterPressure) {
  MemoryPolicy policy(4 * kGiB);
  EXPECT_EQ(policy.decide({true, 1 * kGiB, 0, 100 * kSecond}).limit_bytes, 768 * kMiB);
  EXPECT_EQ(policy.decide({false, 768 * kMiB, 0, 110 * kSecond}).limit_bytes, 768 * kMiB);
  EXPECT_EQ(policy.decide({false, 768 * kMiB, 0, 130 * kSecond}).limit_bytes, 1280 * kMiB);
  for (int i = 0; i < 8; ++i) policy.decide({false, 768 * kMiB, 0, (140 + i) * kSecond});
  EXPECT_EQ(policy.decide({false, 768 * kMiB, 0, 200 * kSecond}).limit_bytes, 4 * kGiB);
}

TEST(MemoryPolicyTest, MuchFreedMemoryGoesBackAlsoInTheMidstOfWork) {
  MemoryPolicy policy(4 * kGiB);
  const auto trims = [&](bool pressure, std::int64_t idle_ns, std::uint64_t freed_bytes) {
    return policy.decide({pressure, kGiB, idle_ns, 1000 * kSecond, freed_bytes}).trims_allocator;
  };
  EXPECT_FALSE(trims(false, 0, 32 * kMiB));
  EXPECT_TRUE(trims(false, 0, 33 * kMiB));
  EXPECT_TRUE(trims(false, 6 * kSecond, 0));
  EXPECT_TRUE(trims(true, 0, 0));
}

TEST(MemoryPolicyTest, ReleasedBuffersGoAfterSecondsAndTheCacheAfterTenMinutesOfIdleness) {
  MemoryPolicy policy(4 * kGiB);
  EXPECT_FALSE(policy.decide({false, kGiB, 1 * kSecond, 1000 * kSecond}).gives_back);
  const MemoryDecision soon = policy.decide({false, kGiB, 6 * kSecond, 1006 * kSecond});
  EXPECT_TRUE(soon.gives_back);
  EXPECT_FALSE(soon.trims_to.has_value());
  const MemoryDecision late = policy.decide({false, kGiB, 601 * kSecond, 1601 * kSecond});
  EXPECT_EQ(late.trims_to, 64 * kMiB);
  EXPECT_EQ(late.limit_bytes, 4 * kGiB) << "the next read finds all of it";
  EXPECT_FALSE(policy.decide({false, 60 * kMiB, 900 * kSecond, 1900 * kSecond}).trims_to.has_value());
}

RC_GTEST_PROP(MemoryPolicyTest, TheLimitIsNeverAboveTheBudgetNorBelowTheFloor, ()) {
  const std::uint64_t budget = *rc::gen::inRange<std::uint64_t>(16 * kMiB, 64 * kGiB);
  MemoryPolicy policy(budget);
  std::int64_t now = 0;
  for (int i = 0; i < 50; ++i) {
    now += *rc::gen::inRange<std::int64_t>(0, 60) * kSecond;
    const MemoryLook look{*rc::gen::arbitrary<bool>(), *rc::gen::inRange<std::uint64_t>(0, budget + 1),
                          *rc::gen::inRange<std::int64_t>(0, 700) * kSecond, now};
    const std::uint64_t limit = policy.decide(look).limit_bytes;
    RC_ASSERT(limit <= budget);
    RC_ASSERT(limit >= std::min(budget, kLeastDefaultCacheBytes));
  }
}

}  // namespace
}  // namespace mdfs::fuse
