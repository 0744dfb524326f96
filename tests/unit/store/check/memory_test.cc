// The memory that a check may use.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "lab.h"
#include "store/check/block_map.h"

namespace mdfs::store {
namespace {

// A repair that has no room for its maps says how much it needs, and leaves the tree alone.
TEST(CheckTest, ARepairWithoutRoomForItsMapsSaysHowMuchItNeeds) {
  Lab lab;
  lab.change([](Transaction& t) { t.erase(Lab::inode_key(Lab::kFirstFile)); });
  const CheckReport refused = lab.check(RepairMode::kAll, false, 1);
  EXPECT_NE(refused.repair_error.find("--memory"), std::string::npos) << refused.repair_error;
  EXPECT_EQ(refused.exit_code(), 4);
  EXPECT_EQ(lab.check(RepairMode::kAll).exit_code(), 1);
  EXPECT_EQ(lab.check(RepairMode::kNothing).exit_code(), 0);
}

// Ten disks of 10 TB in a quarter of 1 GiB, and the same a thousand times smaller with all its sections.
TEST(BlockMapTest, AHundredTerabytesTakeTwelveSectionsOfAQuarterOfAGibibyte) {
  constexpr std::uint64_t kTerabyte = 1'000'000'000'000;
  const auto sections = [](std::uint64_t disk_bytes, std::uint64_t map_bytes) {
    const std::uint64_t blocks = format::disk_blocks(4096, disk_bytes);
    return ceil_div(10 * format::DiskLayout(4096, blocks, 0).space_pages(0) * MDFS_SECTOR, map_bytes);
  };
  EXPECT_EQ(sections(10 * kTerabyte, std::uint64_t{256} << 20), 12u);
  const std::vector<format::DiskLayout> layouts(10, {4096, format::disk_blocks(4096, kTerabyte / 10), 0});
  BlockMap map(layouts, std::vector<bool>(10, true), (256u << 20) / 100 / MDFS_SECTOR);
  const format::Run run{9, map.layouts()[9].first_usable(), 3};
  unsigned passes = 0;
  std::uint64_t marked = 0;
  do {
    ++passes;
    EXPECT_TRUE(map.mark(run));
    marked += map.count();
  } while (map.next_section());
  EXPECT_EQ(passes, 12u);
  EXPECT_EQ(marked, 3u);
}

// Leaves of full records of 24 bytes (zstd) for extents of 64 KiB on 100 TB, a million objects and their names.
TEST(BlockMapTest, TheTreeOfAHundredTerabytesFitsIntoFiveEighthsOfAGibibyte) {
  CheckOptions options;
  options.memory_bytes = std::uint64_t{1} << 30;
  const std::uint64_t extents = 100'000'000'000'000 / 65536;
  const std::uint64_t leaves = extents * 24 / (format::kNodeRoom / 10 * 9);
  EXPECT_LT(leaves * sizeof(NodeRef) + 1'000'000 * (130 + 40), options.bytes_for_tree());
}

}  // namespace
}  // namespace mdfs::store
