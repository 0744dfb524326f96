// Opening, locking, creating and recognising disks.
// SPDX-License-Identifier: Apache-2.0
#include "device/open.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/aligned_buffer.h"
#include "device/file_limit.h"
#include "device/probe.h"
#include "temp_dir.h"

namespace mdfs::device {
namespace {

namespace fs = std::filesystem;

class OpenTest : public testing::Test {
 protected:
  std::string file(const std::string& name, std::uint64_t bytes = 8u << 20) {
    const std::string path = dir_.path() / name;
    EXPECT_TRUE(create_file_disk(path, bytes, true).ok());
    return path;
  }
  Errc error_of(const std::string& path, OpenMode mode) {
    auto disk = open_disk(path, mode, context_);
    EXPECT_FALSE(disk.ok());
    if (disk.ok()) return Errc::kUsage;
    EXPECT_NE(disk.error().where.find(path), std::string::npos) << disk.error().where;
    EXPECT_EQ(disk.error().where.find('\n'), std::string::npos);
    return disk.error().code;
  }

  test::TempDir dir_;
  std::shared_ptr<UringContext> context_ = UringContext::create().value();
};

TEST_F(OpenTest, AWriterExcludesEverybodyInTheSameProcessToo) {
  const auto path = file("a");
  auto writer = open_disk(path, OpenMode::kReadWrite, context_);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(error_of(path, OpenMode::kReadWrite), Errc::kBusy);
  EXPECT_EQ(error_of(path, OpenMode::kReadOnly), Errc::kBusy);
  EXPECT_TRUE(open_disk(path, OpenMode::kLook, context_).ok());
  fs::create_hard_link(path, dir_.path() / "b");
  EXPECT_EQ(error_of(dir_.path() / "b", OpenMode::kReadWrite), Errc::kBusy);
  writer.value().reset();
  EXPECT_TRUE(open_disk(path, OpenMode::kReadWrite, context_).ok());
}

TEST_F(OpenTest, ReadersShareAndExcludeAWriter) {
  const auto path = file("a");
  auto first = open_disk(path, OpenMode::kReadOnly, context_);
  auto second = open_disk(path, OpenMode::kReadOnly, context_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_FALSE(first.value()->writable());
  EXPECT_EQ(error_of(path, OpenMode::kReadWrite), Errc::kBusy);
}

TEST_F(OpenTest, RefusesWhatIsNoDisk) {
  EXPECT_EQ(error_of(dir_.path(), OpenMode::kReadWrite), Errc::kInvalidArgument);
  EXPECT_EQ(error_of("/dev/null", OpenMode::kReadWrite), Errc::kInvalidArgument);
  EXPECT_EQ(error_of(dir_.path() / "missing", OpenMode::kReadWrite), Errc::kNotFound);
  const std::string fifo = dir_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error_of(fifo, OpenMode::kReadOnly), Errc::kInvalidArgument);
}

TEST_F(OpenTest, AFileLargerThanTheProcessMayWriteIsRefusedBeforeAWriteEndsIt) {
  const auto path = file("a");
  fs::resize_file(path, 1u << 20);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small { 1u << 19, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto refused = open_disk(path, OpenMode::kReadWrite, context_);
  const bool readable = open_disk(path, OpenMode::kReadOnly, context_).ok();
  raise_file_limit();
  const bool raised = open_disk(path, OpenMode::kReadWrite, context_).ok();
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kTooBig);
  EXPECT_NE(refused.error().where.find("has 1 MiB, but the limit on file sizes is 512 KiB"), std::string::npos)
      << refused.error().where;
  EXPECT_TRUE(readable);
  EXPECT_TRUE(raised);
}

TEST_F(OpenTest, TheSizeIsRoundedDownToBlocks) {
  const auto path = file("a");
  fs::resize_file(path, 3 * 4096 + 100);
  auto disk = open_disk(path, OpenMode::kReadWrite, context_);
  ASSERT_TRUE(disk.ok());
  EXPECT_EQ(disk.value()->size_bytes(), 3 * 4096u);
}

TEST_F(OpenTest, AFileThatShrinksUnderTheDiskGivesAnErrorAndNotZeros) {
  const auto path = file("a");
  auto disk = open_disk(path, OpenMode::kReadWrite, context_);
  ASSERT_TRUE(disk.ok());
  fs::resize_file(path, 4096);
  AlignedBuffer buffer(8192);
  const auto status = read(*disk.value(), 0, buffer.bytes());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Errc::kIo);
  EXPECT_NE(status.error().where.find("only 4096 bytes"), std::string::npos) << status.error().where;
}

TEST_F(OpenTest, TheConditionOfAFileIsItsSizeAndWhetherItHasANameLeft) {
  const auto path = file("a"), link = file("b");
  fs::remove(link);
  auto opened = open_disk(path, OpenMode::kReadWrite, context_);
  ASSERT_TRUE(opened.ok());
  Disk& disk = *opened.value();
  const std::uint64_t size = disk.size_bytes();
  EXPECT_EQ(disk.condition().value().size_bytes, size);
  fs::resize_file(path, 4096 + 100);
  EXPECT_EQ(disk.condition().value().size_bytes, 4096u);
  EXPECT_EQ(disk.size_bytes(), size) << "requests still have the size that was measured";
  fs::create_hard_link(path, link);
  fs::remove(path);
  EXPECT_FALSE(disk.condition().value().deleted) << "it has another name";
  fs::rename(link, path);
  EXPECT_FALSE(disk.condition().value().deleted);
  fs::remove(path);
  EXPECT_TRUE(disk.condition().value().deleted);
}

TEST_F(OpenTest, AFileWithoutANameFromTheBeginningWasNotDeleted) {
  const auto path = file("a");
  auto fd = open_disk_descriptor(path, OpenMode::kReadWrite);
  ASSERT_TRUE(fd.ok());
  fs::remove(path);
  auto disk = adopt_disk("nameless", std::move(*fd), context_);
  ASSERT_TRUE(disk.ok());
  EXPECT_FALSE(disk.value()->condition().value().deleted);
}

TEST_F(OpenTest, CreatingAllocatesUnlessSparse) {
  const std::string full = dir_.path() / "full";
  ASSERT_TRUE(create_file_disk(full, 1u << 20, false).ok());
  struct stat st {};
  ASSERT_EQ(::stat(full.c_str(), &st), 0);
  EXPECT_EQ(st.st_size, 1 << 20);
  EXPECT_GE(st.st_blocks * 512, 1 << 20);
  const auto sparse = file("sparse", 1u << 20);
  ASSERT_EQ(::stat(sparse.c_str(), &st), 0);
  EXPECT_EQ(st.st_size, 1 << 20);
  EXPECT_LT(st.st_blocks * 512, 1 << 20);
}

TEST_F(OpenTest, CreatingNeverTouchesAnExistingFileAndLeavesNothingOnFailure) {
  const auto path = file("a", 4096);
  EXPECT_EQ(create_file_disk(path, 8192, true).error().code, Errc::kExists);
  EXPECT_EQ(fs::file_size(path), 4096u);
  const std::string huge = dir_.path() / "huge";
  EXPECT_FALSE(create_file_disk(huge, 1ull << 62, false).ok());
  EXPECT_FALSE(create_file_disk(huge, 100, false).ok());
  EXPECT_FALSE(create_file_disk(huge, 0, true).ok());
  EXPECT_FALSE(create_file_disk(huge, 1ull << 63, true).ok());
  EXPECT_FALSE(fs::exists(huge));
}

void poke(const std::string& path, std::streamoff offset, std::string_view text) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file << text;
  ASSERT_TRUE(file.good());
}

TEST_F(OpenTest, AnEmptyDiskIsNotRecognised) {
  EXPECT_EQ(recognise(file("a")).value(), std::nullopt);
  EXPECT_FALSE(recognise(dir_.path() / "missing").ok());
}

TEST_F(OpenTest, TheContentsOfAFileAreAnyByteThatIsNotZero) {
  const auto path = file("a");
  EXPECT_EQ(find_contents(path).value(), std::nullopt);
  poke(path, 0, std::string(3 << 20, '\0'));  // written zeros are nothing either
  EXPECT_EQ(find_contents(path).value(), std::nullopt);
  for (const std::streamoff offset : {0, 1000, (4 << 20) + 5, (8 << 20) - 1}) {
    const auto held = file("held" + std::to_string(offset));
    poke(held, offset, "x");
    EXPECT_EQ(find_contents(held).value(), "data") << offset;
    EXPECT_EQ(recognise(held).value(), std::nullopt);
  }
  poke(path, 131072, "MDFSLABL");
  EXPECT_EQ(find_contents(path).value(), "MDFS volume");
  EXPECT_FALSE(find_contents(dir_.path() / "missing").ok());
}

TEST_F(OpenTest, AVolumeIsRecognisedByAnyOfItsLabelsAndWiped) {
  for (const std::streamoff offset : {0, 131072, (8 << 20) - 131072, (8 << 20) - 262144}) {
    const auto path = file("disk" + std::to_string(offset));
    poke(path, offset, "MDFSLABL");
    poke(path, offset + 8192, "MDFSCMIT");
    EXPECT_EQ(recognise(path).value(), "MDFS volume");
    ASSERT_TRUE(wipe_signatures(path).ok());
    EXPECT_EQ(recognise(path).value(), std::nullopt);
  }
}

TEST_F(OpenTest, SwapSpaceAndPartitionTablesAreRecognisedAndWiped) {
  const auto swap = file("swap");
  // Version 1, one page less than the file has: what mkswap writes.
  poke(swap, 1024, std::string("\x01\0\0\0\xff\x07\0\0", 8));
  poke(swap, 4096 - 10, "SWAPSPACE2");
  EXPECT_EQ(recognise(swap).value(), "swap");
  ASSERT_TRUE(wipe_signatures(swap).ok());
  EXPECT_EQ(recognise(swap).value(), std::nullopt);

  const auto dos = file("dos");
  poke(dos, 446, std::string("\0\0\1\0\x83\0\0\0\x08\0\0\0\0\x10\0\0", 16));
  poke(dos, 510, "\x55\xaa");
  EXPECT_EQ(recognise(dos).value(), "dos partition table");
  ASSERT_TRUE(wipe_signatures(dos).ok());
  EXPECT_EQ(recognise(dos).value(), std::nullopt);
}

TEST_F(OpenTest, FilesystemsMadeByTheirOwnToolsAreRecognisedAndWiped) {
  const auto path = file("fs", 16u << 20);
  const std::string command = "PATH=$PATH:/sbin:/usr/sbin; mkfs.ext4 -q -F " + path + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "mkfs.ext4 is not installed";
  EXPECT_EQ(recognise(path).value(), "ext4 filesystem");
  ASSERT_TRUE(wipe_signatures(path).ok());
  EXPECT_EQ(recognise(path).value(), std::nullopt);
}

}  // namespace
}  // namespace mdfs::device
