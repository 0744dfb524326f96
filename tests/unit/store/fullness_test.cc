// What is said of disks that become full, and how often.
// SPDX-License-Identifier: Apache-2.0
#include "store/fullness.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

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
  EXPECT_TRUE(fullness.note_fallback(0, "/dev/a", 100, 100));
  EXPECT_FALSE(fullness.note_fallback(0, "/dev/a", 100, 100));
  EXPECT_EQ(fullness.fallback_runs(0), 2u);
  EXPECT_EQ(fullness.fallback_runs(1), 0u);
  (void)fullness.note_use(0, "/dev/a", 99, 100);
  EXPECT_FALSE(fullness.note_fallback(0, "/dev/a", 99, 100));
  (void)fullness.note_use(0, "/dev/a", 50, 100);
  EXPECT_TRUE(fullness.note_fallback(0, "/dev/a", 99, 100)) << "it had room meanwhile";
}

TEST(FullnessTest, ADiskWithoutALargeHoleSaysOnceThatExtentsGoElsewhere) {
  Fullness fullness(2);
  std::vector<std::uint64_t> said;
  for (const std::uint64_t used : {84u, 83u, 84u, 80u, 86u, 84u, 79u, 80u}) {
    (void)fullness.note_use(0, "/dev/a", used, 100);
    if (fullness.note_fallback(0, "/dev/a", used, 100)) said.push_back(used);
  }
  EXPECT_EQ(said, (std::vector<std::uint64_t>{84})) << "it is no emptier than it was";
  (void)fullness.note_use(0, "/dev/a", 70, 100);
  EXPECT_TRUE(fullness.note_fallback(0, "/dev/a", 84, 100));
}

// The warnings of the log, as long as it lives; no other sink gets them.
class LogLines {
 public:
  LogLines() : level_(spdlog::get_level()) {
    spdlog::default_logger()->sinks().swap(sinks_);
    spdlog::set_level(spdlog::level::warn);
  }
  ~LogLines() {
    spdlog::set_level(level_);
    spdlog::default_logger()->sinks().swap(sinks_);
  }
  LogLines(const LogLines&) = delete;

  std::size_t count(std::string_view words) const {
    const std::string all = text_.str();
    std::size_t lines = 0;
    for (std::size_t at = all.find(words); at != std::string::npos; at = all.find(words, at + 1)) ++lines;
    return lines;
  }

 private:
  const spdlog::level::level_enum level_;
  std::ostringstream text_;
  std::vector<spdlog::sink_ptr> sinks_ = {std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)};
};

TEST(FullnessTest, WhatIsWrittenOverAndWaitsForACommitDoesNotMakeADiskFuller) {
  SeededEnvironment environment(1);
  const Disks disks = make_disks(2, 32u << 20);
  ASSERT_OK(format_disks(disks, environment));
  auto store = open_disks(disks, environment);
  ASSERT_OK(store);
  constexpr std::uint32_t kBlocks = 8;
  const LogLines lines;
  std::vector<store::Run> runs;
  const auto used_percent = [&](unsigned disk) {
    const auto here = std::count_if(runs.begin(), runs.end(), [&](const store::Run& run) { return run.disk == disk; });
    return 100 * kBlocks * static_cast<std::uint64_t>(here) / (*store)->disk_info(disk).data_blocks;
  };
  const auto put = [&](std::uint16_t disk, const std::optional<store::Run>& instead_of) {
    AllocationRequest request;
    request.disk = disk;
    request.blocks = kBlocks;
    request.owner = 16 + disk;
    request.may_fall_back = false;
    const auto run = (*store)->allocate(request, nullptr);
    ASSERT_OK(run);
    ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      transaction.publish(*run);
      if (instead_of) transaction.free(*instead_of);
      return {};
    }));
    if (!instead_of) runs.push_back(*run);
    for (store::Run& known : runs)
      if (instead_of && known.block == instead_of->block && known.disk == instead_of->disk) known = *run;
  };
  const auto fill = [&](unsigned percent) {
    for (std::uint16_t disk = 0; used_percent(disk) < percent; disk ^= 1) {
      put(disk, std::nullopt);
      if (runs.size() % 20 != 0) continue;
      ASSERT_OK((*store)->commit());
    }
  };
  // A tenth of the disk is written over, and then comes a commit.
  const auto write_over = [&] {
    const std::size_t part = runs.size() / 9;
    for (std::size_t i = 0; i < 20 * part; ++i) {
      const store::Run old = runs[i % runs.size()];
      put(old.disk, old);
      if (i % part != part - 1) continue;
      ASSERT_OK((*store)->commit());
      ASSERT_OK((*store)->commit());
    }
  };
  fill(86);
  write_over();
  EXPECT_EQ(lines.count(" % full"), 0u);
  fill(91);
  EXPECT_EQ(lines.count("is 90 % full"), 2u);
  runs.resize(runs.size() / 2);  // the others stay as they are
  write_over();
  EXPECT_EQ(lines.count(" % full"), 2u);
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
  EXPECT_EQ((*store)->disk_info(0).fallback_runs, elsewhere);
  EXPECT_EQ((*store)->disk_info(1).fallback_runs, 0u);
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
      transaction.publish(*run);
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
