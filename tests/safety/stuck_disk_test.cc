// A disk with a request that never ends: who waits for it waits, nothing is claimed meanwhile, others go on, and when
// it does end all is as it should be.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "base/stop.h"
#include "device/testing/faulty_disk.h"
#include "small_volume.h"
#include "tried.h"

namespace mdfs::safety {
namespace {

using device::Fault;
using device::FaultKind;
using device::FaultyDisk;
using device::Op;
using volume::kRootIno;

constexpr std::uint64_t kDiskBytes = 4u << 20;
const Status quiet = set_log_level("off");

class StuckDiskTest : public testing::TestWithParam<Op> {
 protected:
  StuckDiskTest() {
    for (const auto& disk : small_.disks) {
      faulty_.push_back(std::make_unique<FaultyDisk>(*disk, std::vector<Fault>{}));
      doors_.push_back(faulty_.back().get());
    }
    volume_ = std::move(test::open_volume(doors_, test::quiet_options(4u << 20), environment_)).value();
  }
  ~StuckDiskTest() override {
    for (const auto& disk : faulty_) {
      disk->work_again();
      disk->release();
    }
  }

  volume::Ino find(const char* name) {
    const auto found = volume_->lookup(kRootIno, name);
    MDFS_CHECK(found.ok());
    return found->ino;
  }
  std::size_t stuck() const {
    std::size_t count = 0;
    for (const auto& disk : faulty_) count += disk->stuck();
    return count;
  }
  // One request of this kind sticks, on whichever disk has one first.
  void stick(Op op) {
    for (const auto& disk : faulty_) disk->add({.kind = FaultKind::kStuck, .op = op});
  }
  void wait_until_stuck() const {
    while (stuck() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void release() {
    for (const auto& disk : faulty_) disk->work_again();
    for (const auto& disk : faulty_) disk->release();
  }

  SystemEnvironment environment_;
  SmallVolume small_{2, kDiskBytes};
  std::vector<std::unique_ptr<FaultyDisk>> faulty_;
  std::vector<device::Disk*> doors_;
  std::unique_ptr<volume::Volume> volume_;
};

TEST_P(StuckDiskTest, AnFsyncDoesNotReturnBeforeItsRequestsAndOthersGoOn) {
  const auto made = volume_->make_node(kRootIno, "new", S_IFREG | 0644, 0, {});
  ASSERT_TRUE(made.ok());
  const ByteVector bytes(200'000, std::byte{7});
  ASSERT_TRUE(volume_->write(made->ino, 0, bytes, false).ok());
  const volume::Ino cached = find("small");
  ByteVector into(100);
  ASSERT_TRUE(volume_->read(cached, 0, into).ok());
  stick(GetParam());
  std::atomic<bool> returned{false};
  Status synced;
  std::thread waiting([&] {
    synced = volume_->fsync(made->ino, false);
    returned = true;
  });
  wait_until_stuck();
  // What needs neither these blocks nor a commit goes on: reads, writes, names.
  EXPECT_TRUE(volume_->read(cached, 0, into).ok());
  ByteVector again(bytes.size());
  EXPECT_TRUE(volume_->read(made->ino, 0, again).ok());
  EXPECT_TRUE(again == bytes);
  const auto other = volume_->make_node(kRootIno, "other", S_IFREG | 0644, 0, {});
  EXPECT_TRUE(other.ok());
  EXPECT_TRUE(volume_->write(other->ino, 0, bytes, false).ok());
  EXPECT_TRUE(volume_->rename(kRootIno, "other", kRootIno, "another", volume::RenameMode::kReplace).ok());
  EXPECT_FALSE(returned);
  // The power fails now: what was there before is there.
  {
    const MemoryDisks cut = clone(small_.disks);
    EXPECT_EQ(findings(cut), std::set<std::string>());
    auto mounted = mount(cut, environment_);
    ASSERT_TRUE(mounted.ok());
    const Sight sight = look(**mounted, small_.expected);
    EXPECT_EQ(sight.wrong, "");
    EXPECT_EQ(sight.errors, 0u);
  }
  EXPECT_FALSE(returned);
  release();
  waiting.join();
  EXPECT_TRUE(synced.ok()) << synced.error().message();
  const MemoryDisks cut = clone(small_.disks);
  auto mounted = mount(cut, environment_);
  ASSERT_TRUE(mounted.ok());
  ASSERT_TRUE((*mounted)->read(made->ino, 0, again).ok());
  EXPECT_TRUE(again == bytes);
  ASSERT_TRUE(volume_->close().ok());
  volume_.reset();
  EXPECT_EQ(findings(small_.disks), std::set<std::string>());
  test::tried("a {} that did not end", GetParam() == Op::kFlush ? "flush" : "write");
}

INSTANTIATE_TEST_SUITE_P(Operations, StuckDiskTest, testing::Values(Op::kWrite, Op::kFlush));

TEST_F(StuckDiskTest, AReadThatDoesNotEndHoldsUpItsReaderAlone) {
  const volume::Ino file = find("file"), image = find("raw"), small = find("small");
  stick(Op::kRead);
  std::atomic<bool> returned{false};
  ByteVector bytes(4096);
  Result<std::size_t> got = std::size_t{0};
  std::thread reader([&] {
    got = volume_->read(file, 0, bytes);
    returned = true;
  });
  wait_until_stuck();
  for (const auto& disk : faulty_) disk->work_again();  // the one stays stuck
  ByteVector window(16 * 16);
  EXPECT_TRUE(volume_->read_window(image, {{0, 0}, {16, 16}}, 0, window).ok());
  EXPECT_TRUE(volume_->write(small, 0, as_bytes("changed"), false).ok());
  EXPECT_TRUE(volume_->fsync(small, false).ok());
  EXPECT_FALSE(returned);
  release();
  reader.join();
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(as_text(bytes), small_.expected.at("/file").text.substr(0, 4096));
  ASSERT_TRUE(volume_->close().ok());
  test::tried("a read that did not end");
}

// Whoever is killed while a disk does not answer ends, and keeps nothing from others.
TEST_F(StuckDiskTest, AReaderWhoIsKilledEndsWithoutItsDisk) {
  for (const auto& disk : faulty_) disk->add({.kind = FaultKind::kStuck, .op = Op::kRead, .times = Fault::kSticky});
  std::size_t cancelled = 0;
  const engine::Stop killed = [] { return true; };
  const auto note = [&](const Status& status, const std::string& path) {
    cancelled += !status.ok() && status.error().code == Errc::kCancelled ? 1 : 0;
    EXPECT_TRUE(status.ok() || status.error().code == Errc::kCancelled) << path << ": " << status.error().message();
  };
  for (const auto& [path, entry] : small_.expected) {
    if (cancelled == 20) break;
    const StopScope scope(killed);
    volume::Ino at = kRootIno;
    Status found;
    for (std::size_t begin = 1; found.ok() && begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const auto next = volume_->lookup(at, path.substr(begin, end - begin));
      if (next.ok()) at = next->ino;
      found = next.ok() ? Status() : Status(next.error());
      begin = end + 1;
    }
    note(found, path);
    ByteVector into(4096);
    if (found.ok() && S_ISREG(entry.mode)) {
      const auto read = volume_->read(at, 0, into, killed);
      note(read.ok() ? Status() : Status(read.error()), path);
    }
  }
  EXPECT_GT(cancelled, 0u);
  {
    const StopScope scope(killed);
    const auto walked = volume_->volume_fragmentation();
    EXPECT_TRUE(walked.ok()) << walked.error().message();  // what is known by then
  }
  EXPECT_GT(stuck(), 0u);
  release();
  const Sight sight = look(*volume_, small_.expected);
  EXPECT_EQ(sight.wrong, "");
  EXPECT_EQ(sight.errors, 0u);
  ASSERT_TRUE(volume_->close().ok());
  volume_.reset();
  EXPECT_EQ(findings(small_.disks), std::set<std::string>());
  test::tried("{} reads whose callers were killed", cancelled);
}

}  // namespace
}  // namespace mdfs::safety
