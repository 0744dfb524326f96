// Names of disks, over folders that stand for /dev/disk/by-id and /sys/class/block; /dev/null stands for the disk.
// SPDX-License-Identifier: Apache-2.0
#include "mdfs/device_names.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "scratch.h"

namespace mdfs::tools {
namespace {

namespace fs = std::filesystem;

class DeviceNamesTest : public testing::Test {
 protected:
  DeviceNamesTest() {
    fs::create_directories(links_);
    fs::create_directories(devices_);
  }
  ~DeviceNamesTest() override { fs::remove_all(folder_); }
  void link(const std::string& name, const std::string& target) { fs::create_symlink(target, links_ / name); }
  void put(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  DeviceNames names(const std::string& path = "/dev/null") { return device_names(path, links_, devices_); }

  const fs::path folder_ = fs::temp_directory_path() / ("mdfs-test-names-" + std::to_string(::getpid()));
  const fs::path links_ = folder_ / "by-id", devices_ = folder_ / "block";
};

TEST_F(DeviceNamesTest, TheNameOfMakerAndModelComesBeforeNumbers) {
  link("wwn-0x5000", "/dev/null");
  link("ata-MAKER_MODEL_S123", "/dev/null");
  link("ata-ANOTHER", "/dev/zero");
  link("broken", "/dev/is-not-there");
  EXPECT_EQ(names().by_id, (links_ / "ata-MAKER_MODEL_S123").string());
  EXPECT_EQ(names("/dev/full").by_id, "");
}

TEST_F(DeviceNamesTest, SerialsComeFromWhereverTheKernelHasThem) {
  put(devices_ / "null" / "serial", "  VIRTIO 7\n");
  EXPECT_EQ(names().serial, "VIRTIO 7");
  fs::remove_all(devices_ / "null");
  put(devices_ / "null" / "device" / "vpd_pg80", std::string("\0\x80\0\x08  WX 12", 12) + std::string("\0", 1));
  EXPECT_EQ(names().serial, "WX12");
  fs::remove_all(devices_ / "null");
  put(folder_ / "disk" / "device" / "serial", "S3Z8\n");
  put(folder_ / "disk" / "part1" / "partition", "1\n");
  fs::create_symlink(folder_ / "disk" / "part1", devices_ / "null");
  EXPECT_EQ(names().serial, "S3Z8");
}

TEST_F(DeviceNamesTest, FilesAndWhatIsNotThereHaveNone) {
  put(folder_ / "file", "x");
  link("file", (folder_ / "file").string());
  EXPECT_EQ(names((folder_ / "file").string()).by_id, "");
  EXPECT_EQ(names("/nowhere").by_id, "");
  EXPECT_EQ(names("").serial, "");
}

}  // namespace
}  // namespace mdfs::tools
