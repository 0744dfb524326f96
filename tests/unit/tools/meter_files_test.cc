// The files of a measurement: made in a fresh folder, removed alone, never alike.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "meter/noise.h"
#include "meter/place.h"
#include "meter/scratch.h"
#include "temp_dir.h"

namespace mdfs::tools {
namespace {

namespace fs = std::filesystem;

std::size_t entries_of(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(MeterFilesTest, AScratchFolderRemovesItsFilesAndItself) {
  const test::TempDir scratch;
  {
    auto folder = ScratchFolder::create(scratch.path().string());
    ASSERT_TRUE(folder.ok()) << folder.error().message();
    auto other = ScratchFolder::create(scratch.path().string());
    ASSERT_TRUE(other.ok()) << "another measurement beside it";
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(folder->make(O_RDWR).ok());
    EXPECT_EQ(entries_of(folder->path()), 3u);
    EXPECT_EQ(fs::status(folder->path()).permissions(), fs::perms::owner_all);
    EXPECT_TRUE(folder->open(2, O_RDONLY).ok());
    EXPECT_FALSE(folder->open(3, O_RDONLY).ok());
    const ScratchFolder moved = std::move(*folder);
    EXPECT_EQ(entries_of(scratch.path().string()), 2u) << "the folder that was moved from removes nothing";
  }
  EXPECT_EQ(entries_of(scratch.path().string()), 0u);
}

TEST(MeterFilesTest, AFileOfAnotherProgramStaysAndIsReported) {
  const test::TempDir scratch;
  auto folder = ScratchFolder::create(scratch.path().string());
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->make(O_RDWR).ok());
  std::ofstream(folder->path() + "/mine") << "x";
  const Status status = folder->remove();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().where.find("not removed"), std::string::npos) << status.error().where;
  EXPECT_TRUE(fs::exists(folder->path() + "/mine"));
  EXPECT_EQ(entries_of(folder->path()), 1u);
}

TEST(MeterFilesTest, AFileOfThatNameIsNeverOpened) {
  const test::TempDir scratch;
  auto folder = ScratchFolder::create(scratch.path().string());
  ASSERT_TRUE(folder.ok());
  fs::create_symlink("/etc/passwd", folder->path() + "/file-0");
  const auto made = folder->make(O_RDWR);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Errc::kExists);
  EXPECT_FALSE(folder->open(0, O_RDWR).ok());
  EXPECT_TRUE(fs::is_symlink(folder->path() + "/file-0")) << "it was not ours to remove";
}

TEST(MeterFilesTest, NoTwoBlocksThatAreWrittenAreAlike) {
  std::set<std::string> seen;
  std::size_t blocks = 0;
  for (const std::uint64_t writer : {1, 2}) {
    Noise noise(5 * meter::kAlignment, writer);
    for (const std::uint64_t units : {5, 1, 3}) {
      const ConstBytes bytes = noise.next(units * meter::kAlignment);
      ASSERT_EQ(bytes.size(), units * meter::kAlignment);
      for (std::uint64_t i = 0; i < units; ++i, ++blocks) {
        const auto* const first = reinterpret_cast<const char*>(bytes.data()) + i * meter::kAlignment;
        seen.insert(std::string(first, meter::kAlignment));
      }
    }
  }
  EXPECT_EQ(seen.size(), blocks);
}

TEST(MeterFilesTest, APlaceIsLookedAtBeforeAnythingIsMade) {
  const test::TempDir scratch;
  meter::Profile profile = *meter::find_profile("edit");
  const auto folder = MeterPlace::look(scratch.path().string(), profile, 2, 32u << 20, false);
  ASSERT_TRUE(folder.ok()) << folder.error().message();
  EXPECT_EQ(folder->files().file_bytes, 4u << 20);
  EXPECT_EQ(folder->bytes(), 32u << 20);
  EXPECT_EQ(entries_of(scratch.path().string()), 0u);
  const std::string path = scratch.path().string() + "/file";
  std::ofstream(path) << std::string(10'000, 'x');
  EXPECT_EQ(MeterPlace::look(path, profile, 1, 1u << 30, false).error().code, Errc::kInvalidArgument) << "it writes";
  profile.writes = 0;
  const auto file = MeterPlace::look(path, profile, 1, 1u << 30, false);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->is_file());
  EXPECT_EQ(file->bytes(), 8192u) << "whole multiples of 4 KiB";
  fs::resize_file(path, 100);
  EXPECT_FALSE(MeterPlace::look(path, profile, 1, 1u << 30, false).ok()) << "too short";
  EXPECT_EQ(MeterPlace::look(scratch.path().string() + "/none", profile, 1, 1u << 30, false).error().code,
            Errc::kNotFound);
}

TEST(MeterFilesTest, FilesThatDoNotFitAreRefusedBeforeAnythingIsMade) {
  const test::TempDir scratch;
  meter::Profile profile = *meter::find_profile("edit");
  profile.files = meter::kMostFiles;
  profile.file_bytes = meter::kMostFileBytes;
  auto place = MeterPlace::look(scratch.path().string(), profile, 1, UINT64_MAX, false);
  ASSERT_TRUE(place.ok());
  const std::atomic<bool> interrupted = false;
  const Status status = place->prepare(profile, interrupted);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Errc::kNoSpace);
  EXPECT_EQ(entries_of(scratch.path().string()), 0u);
}

TEST(MeterFilesTest, AnInterruptionWhileFilesAreWrittenRemovesThem) {
  const test::TempDir scratch;
  const meter::Profile profile = *meter::find_profile("edit");
  {
    auto place = MeterPlace::look(scratch.path().string(), profile, 1, 8u << 20, false);
    ASSERT_TRUE(place.ok());
    const std::atomic<bool> interrupted = true;
    EXPECT_EQ(place->prepare(profile, interrupted).error().code, Errc::kCancelled);
  }
  EXPECT_EQ(entries_of(scratch.path().string()), 0u);
}

}  // namespace
}  // namespace mdfs::tools
