// Which names are of one disk.
// SPDX-License-Identifier: Apache-2.0
#include "device/same_disk.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "temp_dir.h"

namespace mdfs::device {
namespace {

namespace fs = std::filesystem;

TEST(SameDiskTest, AFileHasManyNames) {
  const test::TempDir dir;
  const fs::path a = dir.path() / "a", b = dir.path() / "b";
  std::ofstream(a) << 'a';
  std::ofstream(b) << 'b';
  fs::create_symlink(a, dir.path() / "symbolic");
  fs::create_hard_link(a, dir.path() / "hard");
  for (const char* name : {"a", "./a", "symbolic", "hard"}) {
    EXPECT_TRUE(is_same_disk(a, dir.path() / name)) << name;
    EXPECT_FALSE(is_same_disk(b, dir.path() / name)) << name;
  }
}

TEST(SameDiskTest, FilesThatAreNotThereYetAreKnownByTheirPaths) {
  const test::TempDir dir;
  EXPECT_TRUE(is_same_disk(dir.path() / "new", dir.path() / "./new"));
  EXPECT_TRUE(is_same_disk(dir.path() / "new", dir.path().string() + "//new"));
  EXPECT_FALSE(is_same_disk(dir.path() / "new", dir.path() / "newer"));
  std::ofstream(dir.path() / "old") << 'o';
  EXPECT_FALSE(is_same_disk(dir.path() / "old", dir.path() / "new"));
}

}  // namespace
}  // namespace mdfs::device
