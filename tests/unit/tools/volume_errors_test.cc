// Claims about the messages for errors of a volume.
// SPDX-License-Identifier: Apache-2.0
#include "mdfs/volume_errors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

namespace mdfs::tools {
namespace {

mdfs_ioc_volume healthy() {
  mdfs_ioc_volume volume{};
  volume.disk_count = 4;
  for (unsigned i = 0; i < 4; ++i)
    std::strcpy(volume.disks[i].name, ("/dev/sd" + std::string(1, static_cast<char>('a' + i))).c_str());
  return volume;
}

TEST(VolumeErrorsTest, AHealthyVolumeHasNoneAndAnOptionIsNone) {
  mdfs_ioc_volume volume = healthy();
  EXPECT_TRUE(volume_errors(volume).empty());
  volume.read_only = 1;
  std::strcpy(volume.read_only_reason, "opened read-only");
  EXPECT_TRUE(volume_errors(volume).empty());
}

TEST(VolumeErrorsTest, EachStateNamesTheDiskAndWhatToDoInOneLine) {
  const std::map<std::uint32_t, std::string> expected = {
      {1, "missing"}, {2, "stale"}, {3, "failed"}, {6, "was deleted while in use"}};
  for (const auto& [state, text] : expected) {
    mdfs_ioc_volume volume = healthy();
    volume.disks[2].state = state;
    const auto all = volume_errors(volume);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_TRUE(all[0].starts_with("disk 2 (/dev/sdc) ")) << all[0];
    EXPECT_NE(all[0].find(text), std::string::npos) << all[0];
    EXPECT_EQ(all[0].find('\n'), std::string::npos);
  }
}

TEST(VolumeErrorsTest, ADiskInAClusterThatWasRemovedGetsItsHeaderBack) {
  mdfs_ioc_volume volume = healthy();
  std::strcpy(volume.disks[2].name, "rados:pool/v");
  volume.disks[2].state = 6;
  const auto all = volume_errors(volume);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].starts_with("disk 2 (rados:pool/v) has lost its header object in the cluster")) << all[0];
  EXPECT_EQ(all[0].find("/proc"), std::string::npos);
}

TEST(VolumeErrorsTest, WithSecondCopiesALostDiskIsARebuild) {
  mdfs_ioc_volume volume = healthy();
  volume.flags = MDFS_VOLUME_COPIES | MDFS_VOLUME_TO_REBUILD;
  EXPECT_TRUE(volume_errors(volume).empty());
  for (const std::uint32_t state : {1u, 2u, 3u, 7u}) {
    volume.disks[2].state = state;
    const auto all = volume_errors(volume);
    ASSERT_FALSE(all.empty());
    EXPECT_NE(all.back().find("mdfs disk rebuild"), std::string::npos) << all.back();
  }
}

TEST(VolumeErrorsTest, AfterARebuildNoneIsAskedFor) {
  mdfs_ioc_volume volume = healthy();
  volume.flags = MDFS_VOLUME_COPIES;
  volume.disks[2].state = 1;
  const auto all = volume_errors(volume);
  EXPECT_FALSE(all.empty());
  for (const std::string& error : all) EXPECT_EQ(error.find("may not survive"), std::string::npos) << error;
}

TEST(VolumeErrorsTest, ATruncatedDiskIsNamedWithItsSmallestSize) {
  mdfs_ioc_volume volume = healthy();
  volume.block_size = 4096;
  volume.disks[2].state = 3;
  volume.disks[2].blocks = 48 << 8;
  volume.disks[2].device_bytes = 6 << 20;
  const auto all = volume_errors(volume);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0].find("disk 2 (/dev/sdc) has failed: it was truncated while in use: 6 MiB are left of 48 MiB"),
            std::string::npos)
      << all[0];
}

TEST(VolumeErrorsTest, ADiskThatIsOutIsNamedWithItsLastGenerationPresentOrNot) {
  for (const std::uint32_t state : {7u, 1u}) {
    mdfs_ioc_volume volume = healthy();
    volume.disks[2].state = state;
    volume.disks[2].out_generation = 812;
    volume.disks[2].out_ns = 1'700'000'000'000'000'000;
    const auto all = volume_errors(volume);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_TRUE(all[0].starts_with("disk 2 (/dev/sdc) is out: ")) << all[0];
    for (const char* part : {"2023-11-1", "generation 812", "mdfs disk replace"})
      EXPECT_NE(all[0].find(part), std::string::npos) << all[0];
  }
}

TEST(VolumeErrorsTest, ASlowDiskIsNamedWithHowSlowItIs) {
  mdfs_ioc_volume volume = healthy();
  mdfs_ioc_disks counted{};
  for (auto& disk : counted.disks) disk.slowness_percent = 100;
  EXPECT_TRUE(slow_disks(volume, counted).empty());
  counted.disks[2].slowness_percent = 420;
  const auto all = slow_disks(volume, counted);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].starts_with("disk 2 (/dev/sdc) is slow: reads take 4.2 times as long as on the others")) << all[0];
  EXPECT_EQ(all[0].find("two copies"), std::string::npos);
  volume.flags = MDFS_VOLUME_COPIES;
  EXPECT_NE(slow_disks(volume, counted)[0].find("what has two copies is read elsewhere"), std::string::npos);
}

TEST(VolumeErrorsTest, LackingRoomForTheRebuildOfALostDiskIsAnErrorUntilADiskIsLost) {
  mdfs_ioc_volume volume = healthy();
  volume.spare_disks = 1;
  volume.block_size = 4096;
  volume.spare_blocks = 1000;
  volume.free_blocks = 1000;
  EXPECT_TRUE(volume_errors(volume).empty());
  volume.free_blocks = 1000 - 256;
  const auto lacking = volume_errors(volume);
  ASSERT_EQ(lacking.size(), 1u);
  EXPECT_TRUE(lacking[0].starts_with("1 MiB more must be free for the rebuild of 1 lost disk: ")) << lacking[0];
  volume.spare_disks = 3;
  EXPECT_NE(volume_errors(volume)[0].find("second copies need two disks beside them"), std::string::npos);
  volume.spare_disks = 1;
  volume.disks[1].state = 1;  // missing: the room is what the rebuild takes
  for (const std::string& line : volume_errors(volume)) EXPECT_EQ(line.find("must be free"), std::string::npos) << line;
}

TEST(VolumeErrorsTest, AFullFilesystemBelowADiskIsAnErrorUntilThereIsRoom) {
  mdfs_ioc_volume volume = healthy();
  volume.commit_room_bytes = 4 << 20;
  for (auto& disk : volume.disks) disk.room_below_bytes = UINT64_MAX;
  volume.disks[2].room_below_bytes = (4 << 20) - 1;
  const auto all = volume_errors(volume);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].starts_with(
      "disk 2 (/dev/sdc): the filesystem or pool below it has 4 MiB left, and a commit needs 4 MiB"))
      << all[0];
  volume.disks[2].room_below_bytes = 4 << 20;
  EXPECT_TRUE(volume_errors(volume).empty());
}

TEST(VolumeErrorsTest, AVolumeThatTurnedReadOnlySaysWhyAndWhatToDo) {
  const std::pair<const char*, const char*> cases[] = {
      {"the commit of generation 7 failed: I/O error: /dev/sdc: flush", "mdfsck"},
      {"the commit of generation 7 failed: /dev/sdc was deleted while in use", "before the unmount"},
      {"only 2 of 4 disks are current, fewer than a majority", "-o degraded"},
      {"recovery could not be completed: /dev/sda: write", "mount again"},
      {"/dev/sda is open for reading only", "writable"},
      {"something new", "something new"},
  };
  for (const auto& [reason, advice] : cases) {
    mdfs_ioc_volume volume = healthy();
    volume.read_only = 1;
    std::strcpy(volume.read_only_reason, reason);
    const auto all = volume_errors(volume);
    ASSERT_EQ(all.size(), 1u) << reason;
    EXPECT_NE(all[0].find(reason), std::string::npos) << all[0];
    EXPECT_NE(all[0].find(advice), std::string::npos) << all[0];
  }
}

TEST(VolumeErrorsTest, ADiskWithErrorsIsNamedWithTheirKindsAndNumbers) {
  mdfs_ioc_disks counted{};
  EXPECT_TRUE(disk_errors(healthy(), counted).empty());
  counted.disks[1].checksum_errors = 2;
  counted.disks[1].repaired = 1;
  counted.disks[1].read_errors = 3;
  const auto all = disk_errors(healthy(), counted);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].starts_with("disk 1 (/dev/sdb) ")) << all[0];
  EXPECT_NE(all[0].find("reading 3, checksums 2;"), std::string::npos) << all[0];
}

// Nothing of the structure is trusted: names and reasons without an end, more disks than there is room for.
TEST(VolumeErrorsTest, FieldsWithoutAnEndAreReadToTheirEnd) {
  mdfs_ioc_volume volume;
  std::memset(&volume, 'x', sizeof volume);
  EXPECT_EQ(volume_errors(volume).size(), 2u + 2u * MDFS_IOC_MAX_DISKS)
      << "each is out, in an unknown state; and room is kept for more disks than there are";
}

}  // namespace
}  // namespace mdfs::tools
