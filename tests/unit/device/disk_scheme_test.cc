// What holds for every row of the table of disk schemes.
// SPDX-License-Identifier: Apache-2.0
#include "device/disk_scheme.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "base/aligned_buffer.h"
#include "device/open.h"
#include "loop_device.h"
#include "rados.h"
#include "temp_dir.h"

namespace mdfs::device {
namespace {

constexpr std::uint64_t kBytes = 4u << 20;

class EverySchemeTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  const DiskScheme& row() const { return scheme_table()[GetParam()]; }

  // A disk of the scheme is made here. A new scheme adds its own.
  void SetUp() override {
    const std::string file = dir_.path() / "disk";
    ASSERT_TRUE(create_file_disk(file, kBytes, true).ok());
    if (row().name == "regular file") {
      disk_ = file;
    } else if (row().name == "block device") {
      loop_.emplace(file);
      if (loop_->path().empty()) GTEST_SKIP() << "no loop device can be made here";
      disk_ = loop_->path();
    } else if (row().is_remote) {
      if (!test::has_rados()) GTEST_SKIP() << test::kNoRados;
      disk_ = test::new_rados_disk();
      ASSERT_TRUE(create_disk(disk_, kBytes, false).ok());
    } else {
      FAIL() << "no disk is made for the scheme '" << row().name << "'";
    }
  }

  void TearDown() override {
    if (!row().is_remote || disk_.empty()) return;
    EXPECT_TRUE(remove_disk(disk_).ok());
  }
  // What takes the lock: a descriptor, or over a network a disk.
  Status take(const std::string& disk, OpenMode mode, std::shared_ptr<void>& held) {
    MDFS_TRY_ASSIGN(UniqueFd fd, row().open(disk, mode));
    if (!row().is_remote) {
      held = std::make_shared<UniqueFd>(std::move(fd));
      return {};
    }
    MDFS_TRY_ASSIGN(auto adopted, row().adopt(disk, std::move(fd), context_));
    held = std::shared_ptr<Disk>(std::move(adopted));
    return {};
  }

  test::TempDir dir_;
  std::optional<test::LoopDevice> loop_;
  std::string disk_;
  std::shared_ptr<UringContext> context_ = UringContext::create().value();
};

TEST_P(EverySchemeTest, NoOtherRowTakesItsDisks) {
  const UniqueFd fd = row().open(disk_, OpenMode::kReadOnly).value();
  for (const DiskScheme& other : scheme_table()) {
    EXPECT_EQ(other.is_name(disk_), &other == &row()) << other.name;
    EXPECT_EQ(other.is_open(fd.get()), &other == &row()) << other.name;
  }
}

TEST_P(EverySchemeTest, ItTakesNothingElse) {
  EXPECT_FALSE(row().is_name(dir_.path()));
  EXPECT_FALSE(row().is_name(dir_.path() / "missing"));
  EXPECT_FALSE(row().is_name("/dev/null"));
  EXPECT_FALSE(row().is_name(""));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_FALSE(row().is_open(ends[0]));
  EXPECT_FALSE(row().is_open(-1));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(EverySchemeTest, WhatIsWrittenIsReadAfterTheDiskWasOpenedAgain) {
  AlignedBuffer data(kAlignment), back(kAlignment);
  std::fill(data.bytes().begin(), data.bytes().end(), std::byte{7});
  {
    const auto disk = open_disk(disk_, OpenMode::kReadWrite, context_).value();
    EXPECT_EQ(disk->size_bytes(), kBytes);
    EXPECT_EQ(disk->measure().value(), kBytes);
    EXPECT_EQ(disk->name(), disk_);
    EXPECT_TRUE(disk->writable());
    ASSERT_TRUE(write(*disk, kBytes - kAlignment, data.bytes()).ok());
    ASSERT_TRUE(flush(*disk).ok());
  }
  // The kernel gives a block device back a moment after the ring that used it has let it go.
  auto opened = open_disk(disk_, OpenMode::kReadOnly, context_);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!opened.ok() && opened.error().code == Errc::kBusy && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    opened = open_disk(disk_, OpenMode::kReadOnly, context_);
  }
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  const auto disk = std::move(opened).value();
  EXPECT_FALSE(disk->writable());
  ASSERT_TRUE(read(*disk, kBytes - kAlignment, back.bytes()).ok());
  EXPECT_TRUE(std::equal(data.bytes().begin(), data.bytes().end(), back.bytes().begin()));
  EXPECT_FALSE(write(*disk, 0, data.bytes()).ok());
}

TEST_P(EverySchemeTest, AWriterExcludesEveryOtherAndALookIsAlwaysAllowed) {
  std::shared_ptr<void> writer, other;
  ASSERT_TRUE(take(disk_, OpenMode::kReadWrite, writer).ok());
  for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kReadOnly}) {
    const auto second = take(disk_, mode, other);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, Errc::kBusy);
    EXPECT_NE(second.error().where.find(disk_), std::string::npos) << second.error().where;
  }
  EXPECT_TRUE(take(disk_, OpenMode::kLook, other).ok());
}

TEST_P(EverySchemeTest, TheLockGoesWithTheDiskThatADescriptorBecomes) {
  auto disk = adopt_disk(disk_, row().open(disk_, OpenMode::kReadWrite).value(), context_).value();
  std::shared_ptr<void> other;
  EXPECT_EQ(take(disk_, OpenMode::kReadWrite, other).error().code, Errc::kBusy);
  disk.reset();
  EXPECT_TRUE(open_disk_when_free(disk_, OpenMode::kReadWrite, context_,
                                  std::chrono::steady_clock::now() + std::chrono::seconds(20))
                  .ok());
}

TEST_P(EverySchemeTest, ItsFullNameOpensTheSameDisk) {
  const std::string name = full_name(disk_).value();
  EXPECT_EQ(full_name(name).value(), name);
  EXPECT_TRUE(row().is_name(name)) << name;
  std::shared_ptr<void> writer, other;
  ASSERT_TRUE(take(disk_, OpenMode::kReadWrite, writer).ok());
  EXPECT_EQ(take(name, OpenMode::kReadWrite, other).error().code, Errc::kBusy);
}

std::string row_name(const ::testing::TestParamInfo<std::size_t>& row) {
  std::string name(scheme_table()[row.param].name);
  name = name.substr(0, name.find(" ("));
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Table, EverySchemeTest, ::testing::Range(std::size_t{0}, scheme_table().size()), row_name);

TEST(DiskSchemeTableTest, NamesDifferAndARefusalListsThem) {
  std::set<std::string_view> names;
  const auto refused = open_disk_descriptor("/dev/null", OpenMode::kReadOnly);
  ASSERT_FALSE(refused.ok());
  for (const DiskScheme& scheme : scheme_table()) {
    EXPECT_TRUE(names.insert(scheme.name).second) << scheme.name;
    EXPECT_NE(refused.error().where.find(scheme.name), std::string::npos) << refused.error().where;
  }
}

TEST(DiskSchemeTableTest, TheFullNameOfAPathIsWithoutLinksAndThatOfAnotherNameIsItself) {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  const fs::path root = fs::canonical(std::string(dir.path()));
  ASSERT_TRUE(create_file_disk(root / "disk", kBytes, true).ok());
  fs::create_symlink("disk", root / "link");
  EXPECT_EQ(full_name(root / "link").value(), root / "disk");
  EXPECT_EQ(full_name(root / "." / "disk").value(), root / "disk");
  EXPECT_EQ(full_name(root / "missing").error().code, Errc::kNotFound);
  EXPECT_TRUE(is_path(root / "missing"));

  DiskScheme url = scheme_table().front();
  ASSERT_FALSE(url.is_path);
  url.is_name = [](const std::string& disk) { return disk.starts_with("nbd://"); };
  const DiskScheme table[] = {url, scheme_table()[1], scheme_table()[2]};
  EXPECT_FALSE(is_path("nbd://host/../disk", table));
  EXPECT_EQ(full_name("nbd://host/../disk", table).value(), "nbd://host/../disk");
  EXPECT_EQ(full_name(root / "link", table).value(), root / "disk");
}

}  // namespace
}  // namespace mdfs::device
