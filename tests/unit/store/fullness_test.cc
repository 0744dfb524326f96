// What is said of disks that become full, and how often.
// SPDX-License-Identifier: Apache-2.0
#include "store/fullness.h"

#include <gtest/gtest.h>

#include "store_fixture.h"

namespace mdfs::store {
namespace {

TEST(FullnessTest, EachThresholdIsSaidOnceUntilTheDiskHasBecomeEmptier) {
  Fullness fullness(2);
  std::vector<std::uint64_t> said;
  for (std::uint64_t used = 0; used <= 1000; ++used)
    if (fullness.note_use(1, "/dev/b", used, 1000)) said.push_back(used);
  EXPECT_EQ(said, (std::vector<std::uint64_t>{900, 950, 990}));
  EXPECT_FALSE(fullness.note_use(1, "/dev/b", 900, 1000));
  EXPECT_FALSE(fullness.note_use(1, "/dev/b", 950, 1000)) << "a step back of a few percent";
  EXPECT_FALSE(fullness.note_use(1, "/dev/b", 800, 1000));
  EXPECT_TRUE(fullness.note_use(1, "/dev/b", 991, 1000));
  EXPECT_FALSE(fullness.note_use(0, "/dev/a", 100, 1000));
}

TEST(FullnessTest, TheLineNamesTheDiskItsShareAndWhatHappensThen) {
  Fullness several(2);
  const auto line = several.note_use(1, "/dev/b", 95, 100);
  ASSERT_TRUE(line);
  EXPECT_NE(line->find("disk 1 (/dev/b) is 95 % full"), std::string::npos) << *line;
  EXPECT_NE(line->find("other disks"), std::string::npos);
  Fullness single(1);
  EXPECT_EQ(single.note_use(0, "/dev/a", 95, 100)->find("other disks"), std::string::npos);
}

TEST(FullnessTest, ThatExtentsGoElsewhereIsSaidOnceAndCountedAlways) {
  Fullness fullness(2);
  EXPECT_TRUE(fullness.note_spill(0, "/dev/a"));
  EXPECT_FALSE(fullness.note_spill(0, "/dev/a"));
  EXPECT_EQ(fullness.spilled(0), 2u);
  EXPECT_EQ(fullness.spilled(1), 0u);
  (void)fullness.note_use(0, "/dev/a", 99, 100);
  EXPECT_FALSE(fullness.note_spill(0, "/dev/a"));
  (void)fullness.note_use(0, "/dev/a", 50, 100);
  EXPECT_TRUE(fullness.note_spill(0, "/dev/a")) << "it had room meanwhile";
}

TEST(FullnessTest, WhatIsMeantForAFullDiskGoesToOthersAndIsCounted) {
  SeededEnvironment environment(1);
  Disks disks = make_disks(1, 8u << 20);
  disks.push_back(std::make_unique<device::MemoryDisk>("large", 64u << 20));
  ASSERT_OK(format_disks(disks, environment));
  auto store = open_disks(disks, environment);
  ASSERT_OK(store);
  std::uint64_t here = 0;
  std::uint64_t elsewhere = 0;
  for (std::uint64_t owner = 16; owner < 16 + 400; ++owner) {
    AllocationRequest request;
    request.blocks = 24;
    request.owner = owner;
    const auto run = (*store)->allocate(request, nullptr);
    ASSERT_OK(run);
    (run->disk == 0 ? here : elsewhere) += 1;
  }
  EXPECT_GT(here, 50u);
  EXPECT_GT(elsewhere, 200u);
  EXPECT_EQ((*store)->disk_info(0).spilled_runs, elsewhere);
  EXPECT_EQ((*store)->disk_info(1).spilled_runs, 0u);
  EXPECT_LT((*store)->disk_info(0).data_free_blocks, 24u * 20);
}

TEST(FullnessTest, ZonesAddUpToTheDiskWhateverTheirSize) {
  for (const std::uint64_t zone_bytes : {std::uint64_t{0}, std::uint64_t{1} << 20, std::uint64_t{5} << 20}) {
    SeededEnvironment environment(1);
    const Disks disks = make_disks(1, 300u << 20);
    FormatOptions format;
    format.zone_bytes = zone_bytes;
    ASSERT_OK(format_disks(disks, environment, format));
    auto store = open_disks(disks, environment);
    ASSERT_OK(store);
    AllocationRequest request;
    request.blocks = 700;
    request.owner = 16;
    const auto run = (*store)->allocate(request, nullptr);
    ASSERT_OK(run);
    ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      transaction.link(*run);
      return {};
    }));
    std::uint64_t blocks = 0;
    std::uint64_t used = 0;
    for (std::uint64_t next = 0;;) {
      const auto zones = (*store)->zone_use(0, next, 7);
      ASSERT_OK(zones);
      for (const ZoneUse& zone : *zones) {
        EXPECT_LE(zone.used_blocks, zone.blocks);
        blocks += zone.blocks;
        used += zone.used_blocks;
      }
      if (zones->empty()) break;
      next += zones->size();
    }
    EXPECT_EQ(blocks, (*store)->disk_info(0).data_blocks);
    EXPECT_EQ(used, 700u);
  }
}

}  // namespace
}  // namespace mdfs::store
