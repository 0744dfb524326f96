// What disks in RADOS do beyond the conformance suite, on a cluster.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/aligned_buffer.h"
#include "device/open.h"
#include "device/rados/rados_header.h"
#include "rados.h"

namespace mdfs::device {
namespace {

constexpr std::uint64_t kBytes = 5 * kRadosObjectBytes / 2;

AlignedBuffer filled(std::size_t bytes, unsigned char value) {
  AlignedBuffer buffer(bytes);
  std::fill(buffer.bytes().begin(), buffer.bytes().end(), std::byte{value});
  return buffer;
}

class RadosDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_rados()) GTEST_SKIP() << test::kNoRados;
    name_ = test::new_rados_disk();
    ASSERT_TRUE(create_disk(name_, kBytes, false).ok());
  }
  void TearDown() override {
    if (name_.empty()) return;
    EXPECT_TRUE(remove_disk(name_).ok());
  }
  Result<std::unique_ptr<Disk>> open(OpenMode mode = OpenMode::kReadWrite) { return open_disk(name_, mode, nullptr); }

  std::string name_;
};

TEST_F(RadosDiskTest, ARequestOverSeveralObjectsIsReadBackWhole) {
  const auto disk = open().value();
  AlignedBuffer data(2 * kRadosObjectBytes), back(kBytes);
  for (std::size_t i = 0; i < data.size(); ++i) data.bytes()[i] = static_cast<std::byte>(i * 131 >> 7);
  const std::uint64_t at = kRadosObjectBytes / 4;
  ASSERT_TRUE(write(*disk, at, data.bytes()).ok());
  ASSERT_TRUE(read(*disk, 0, back.bytes()).ok());
  EXPECT_TRUE(std::ranges::equal(back.bytes().subspan(at, data.size()), data.bytes()));
  EXPECT_TRUE(std::ranges::all_of(back.bytes().first(at), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(
      std::ranges::all_of(back.bytes().subspan(at + data.size()), [](std::byte b) { return b == std::byte{0}; }));
}

TEST_F(RadosDiskTest, ADiscardOverSeveralObjectsLeavesItsNeighbours) {
  const auto disk = open().value();
  ASSERT_TRUE(write(*disk, 0, filled(kBytes, 7).bytes()).ok());
  Io io;
  io.op = Op::kDiscard;
  io.offset = kAlignment;
  io.discard_bytes = kBytes - 2 * kAlignment;
  const Addressed request{disk.get(), &io};
  ASSERT_TRUE(run({&request, 1}).ok());
  auto back = filled(kBytes, 9);
  ASSERT_TRUE(read(*disk, 0, back.bytes()).ok());
  for (std::uint64_t i = 0; i < kBytes; i += 512)
    ASSERT_EQ(back.bytes()[i], i < kAlignment || i >= kBytes - kAlignment ? std::byte{7} : std::byte{0}) << i;
}

TEST_F(RadosDiskTest, ADiskThatExistsIsReplacedOnlyOnRequestAndThenReadsAsZeros) {
  ASSERT_TRUE(write(*open().value(), 0, filled(kAlignment, 7).bytes()).ok());
  EXPECT_EQ(create_disk(name_, kBytes, false).error().code, Errc::kExists);
  ASSERT_TRUE(create_disk(name_, 2 * kBytes, true).ok());
  const auto disk = open(OpenMode::kReadOnly).value();
  EXPECT_EQ(disk->size_bytes(), 2 * kBytes);
  auto back = filled(kAlignment, 9);
  ASSERT_TRUE(read(*disk, 0, back.bytes()).ok());
  EXPECT_EQ(back.bytes()[0], std::byte{0});
  EXPECT_EQ(create_disk(name_, kBytes, true).error().code, Errc::kBusy) << "while it is read";
}

TEST_F(RadosDiskTest, ADiskGrowsInUseAndIsMeasured) {
  const auto disk = open().value();
  ASSERT_TRUE(grow_disk(name_, 2 * kBytes).ok());
  EXPECT_EQ(disk->size_bytes(), kBytes);
  EXPECT_EQ(disk->condition().value().size_bytes, 2 * kBytes);
  EXPECT_EQ(disk->measure().value(), 2 * kBytes);
  ASSERT_TRUE(grow_disk(name_, kBytes).ok());
  EXPECT_EQ(disk->measure().value(), 2 * kBytes) << "it does not shrink";
  EXPECT_TRUE(write(*disk, 2 * kBytes - kAlignment, filled(kAlignment, 1).bytes()).ok());
}

TEST_F(RadosDiskTest, ADiskThatIsNotThereIsNamed) {
  for (const std::string& name : {name_ + "x", std::string("rados:no-such-pool/v")}) {
    const auto disk = open_disk(name, OpenMode::kReadWrite, nullptr);
    ASSERT_FALSE(disk.ok());
    EXPECT_EQ(disk.error().code, Errc::kNotFound);
    EXPECT_TRUE(disk.error().where.starts_with(name)) << disk.error().where;
  }
}

TEST_F(RadosDiskTest, ARefusalNamesTheProcessThatHoldsTheDisk) {
  const auto disk = open().value();
  const auto second = open();
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().where.find("process " + std::to_string(::getpid())), std::string::npos)
      << second.error().where;
}

TEST_F(RadosDiskTest, ReadersShareADiskAndKeepWritersOut) {
  const auto one = open(OpenMode::kReadOnly).value();
  const auto other = open(OpenMode::kReadOnly).value();
  EXPECT_EQ(open().error().code, Errc::kBusy);
}

// The child connects by itself: no connection of this process is open when it is made.
TEST_F(RadosDiskTest, AKilledWriterLosesTheDiskAtOnce) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto disk = open();
    (void)!::write(ready[1], disk.ok() ? "y" : "n", 1);
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  EXPECT_EQ(open().error().code, Errc::kBusy);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto disk = open();
  EXPECT_TRUE(disk.ok()) << disk.error().where;
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace mdfs::device
