// Block devices as disks, on a loop device; skipped where none can be made (needs root).
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/aligned_buffer.h"
#include "device/open.h"
#include "device/probe.h"
#include "loop_device.h"
#include "temp_dir.h"

namespace mdfs::device {
namespace {

constexpr std::uint64_t kSize = 8u << 20;

class BlockDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(create_file_disk(file_, kSize, false).ok());
    loop_.emplace(file_);
    if (loop_->path().empty()) GTEST_SKIP() << "no loop device can be made here";
    device_ = loop_->path();
  }

  test::TempDir dir_;
  const std::string file_ = dir_.path() / "backing";
  std::optional<test::LoopDevice> loop_;
  std::string device_;
  std::shared_ptr<UringContext> context_ = UringContext::create().value();
};

TEST_F(BlockDeviceTest, ReadsWritesFlushesAndDiscards) {
  auto disk = open_disk(device_, OpenMode::kReadWrite, context_).value();
  EXPECT_EQ(disk->size_bytes(), kSize);
  AlignedBuffer data(1u << 20);
  std::ranges::fill(data.bytes(), std::byte{5});
  ASSERT_TRUE(write(*disk, 65536, data.bytes()).ok());
  ASSERT_TRUE(flush(*disk).ok());
  Io io;
  io.op = Op::kDiscard;
  io.offset = 65536;
  io.discard_bytes = 4096;
  const Addressed request{disk.get(), &io};
  ASSERT_TRUE(run({&request, 1}).ok()) << io.status.error().message();
  AlignedBuffer back(data.size());
  ASSERT_TRUE(read(*disk, 65536, back.bytes()).ok());
  EXPECT_EQ(back.data()[0], std::byte{0});
  EXPECT_EQ(std::ranges::count(back.bytes(), std::byte{5}), static_cast<std::ptrdiff_t>(data.size() - 4096));
}

TEST_F(BlockDeviceTest, IsHeldAloneByReaderAndWriterButMayBeLookedAt) {
  for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kReadOnly}) {
    auto disk = open_disk(device_, mode, context_);
    ASSERT_TRUE(disk.ok());
    const auto second = open_disk(device_, OpenMode::kReadWrite, context_);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, Errc::kBusy);
    EXPECT_EQ(second.error().where, device_ + " is mounted or in use by another program");
    EXPECT_TRUE(open_disk(device_, OpenMode::kLook, context_).ok());
  }
}

TEST_F(BlockDeviceTest, ALoopDeviceOnAFileThatIsHeldIsInUseAndSoIsAnotherOnTheSameFile) {
  const auto refused = [&](const std::string& path, OpenMode mode, const std::string& why) {
    const auto opened = open_disk(path, mode, context_);
    ASSERT_FALSE(opened.ok()) << path;
    EXPECT_EQ(opened.error().code, Errc::kBusy);
    EXPECT_NE(opened.error().where.find(why), std::string::npos) << opened.error().message();
    EXPECT_TRUE(open_disk(path, OpenMode::kLook, context_).ok());
  };
  {
    const auto held = open_disk(device_, OpenMode::kReadWrite, context_);
    ASSERT_TRUE(held.ok());
    const test::LoopDevice second(file_);
    ASSERT_FALSE(second.path().empty());
    refused(second.path(), OpenMode::kReadWrite, "on the same file");
  }
  loop_.reset();
  const auto held = open_disk(file_, OpenMode::kReadOnly, context_);
  ASSERT_TRUE(held.ok()) << held.error().message();
  loop_.emplace(file_);
  device_ = loop_->path();
  ASSERT_FALSE(device_.empty());
  refused(device_, OpenMode::kReadWrite, "which another program holds");
  EXPECT_TRUE(open_disk(device_, OpenMode::kReadOnly, context_).ok()) << "two that read";
}

TEST_F(BlockDeviceTest, AFileBehindALoopDeviceIsInUse) {
  const auto disk = open_disk(file_, OpenMode::kReadWrite, context_);
  ASSERT_FALSE(disk.ok());
  EXPECT_EQ(disk.error().code, Errc::kBusy);
  EXPECT_NE(disk.error().where.find("the loop device loop"), std::string::npos) << disk.error().where;
}

TEST_F(BlockDeviceTest, ItsSignaturesAreRecognisedAndWiped) {
  if (std::system(("PATH=$PATH:/sbin:/usr/sbin mkfs.ext4 -q -F " + device_ + " >/dev/null 2>&1").c_str()) != 0) {
    GTEST_SKIP() << "mkfs.ext4 is not installed";
  }
  EXPECT_EQ(recognise(device_).value(), "ext4 filesystem");
  {
    const auto held = open_disk(device_, OpenMode::kReadWrite, context_);
    ASSERT_TRUE(held.ok());
    ASSERT_TRUE(wipe_signatures(device_).ok());
  }
  EXPECT_EQ(recognise(device_).value(), std::nullopt);
}

}  // namespace
}  // namespace mdfs::device
