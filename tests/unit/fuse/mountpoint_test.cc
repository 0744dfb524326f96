// Where a volume may be mounted.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/mountpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "temp_dir.h"

namespace mdfs::fuse {
namespace {

TEST(MountpointTest, DirectoriesThatTheSystemNeedsAreRefusedByName) {
  for (const std::string path : {"/", "/proc", "/proc/self", "/proc/sys/kernel", "/sys", "/sys/kernel", "/dev",
                                 "/dev/pts", "/run", "/etc", "/usr"}) {
    const Status status = check_mountpoint(path);
    ASSERT_FALSE(status.ok()) << path;
    EXPECT_EQ(status.error().code, Errc::kInvalidArgument) << path;
    EXPECT_EQ(status.error().where.rfind(path + ": ", 0), 0u) << status.error().where;
  }
}

TEST(MountpointTest, OtherDirectoriesMayBeMountedOnEvenIfTheyHoldFiles) {
  const test::TempDir place;
  EXPECT_TRUE(check_mountpoint(place.path().string()).ok());
  const std::string below = place.path().string() + "/below";
  ASSERT_EQ(mkdir(below.c_str(), 0700), 0);
  EXPECT_TRUE(check_mountpoint(place.path().string()).ok());
  EXPECT_TRUE(check_mountpoint(below).ok());
}

}  // namespace
}  // namespace mdfs::fuse
