// A hundred who want their files to be safe at the same time do not wait for a commit each.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "fixture.h"
#include "store/labels.h"
#include "tried.h"

namespace mdfs::volume {
namespace {

// A flush takes a moment, as those of real disks do; and it does not end before so many have asked for one.
class SlowFlushDisk final : public device::Disk {
 public:
  SlowFlushDisk(device::Disk& disk, const std::atomic<unsigned>& asked, const std::atomic<unsigned>& wanted)
      : disk_(disk), asked_(asked), wanted_(wanted) {}
  const std::string& name() const override { return disk_.name(); }
  std::uint64_t size_bytes() const override { return disk_.size_bytes(); }
  bool writable() const override { return true; }
  void submit(std::span<device::Io* const> batch) override {
    const auto flushes = [](const device::Io* io) { return io->op == device::Op::kFlush; };
    if (std::any_of(batch.begin(), batch.end(), flushes)) {
      while (asked_ < wanted_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    disk_.submit(batch);
  }

 private:
  device::Disk& disk_;
  const std::atomic<unsigned>& asked_;
  const std::atomic<unsigned>& wanted_;
};

TEST(SharedCommitsTest, AHundredWhoFsyncTheirFilesShareAFewCommits) {
  constexpr unsigned kThreads = 100;
  constexpr unsigned kRounds = 5;
  SystemEnvironment environment;
  const test::MemoryDisks disks = test::format_memory_disks(2, 32u << 20, environment);
  std::atomic<unsigned> asked{0}, wanted{0};
  std::vector<std::unique_ptr<SlowFlushDisk>> slow;
  std::vector<device::Disk*> doors;
  for (const auto& disk : disks) {
    slow.push_back(std::make_unique<SlowFlushDisk>(*disk, asked, wanted));
    doors.push_back(slow.back().get());
  }
  auto volume = std::move(test::open_volume(doors, test::quiet_options(), environment)).value();
  std::vector<Ino> files;
  for (unsigned i = 0; i < kThreads; ++i) {
    const auto made = volume->make_node(kRootIno, std::to_string(i), S_IFREG | 0644, 0, {});
    ASSERT_OK(made);
    files.push_back(made->ino);
  }
  ASSERT_OK(volume->sync());
  const std::uint64_t before = volume->store().generation();
  for (unsigned round = 1; round <= kRounds; ++round) {
    asked = 0;
    wanted = kThreads;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        const std::string text(i % 2 == 0 ? 100 : 9000, static_cast<char>('a' + round));
        EXPECT_OK(volume->write(files[i], 0, as_bytes(text), false));
        ++asked;
        EXPECT_OK(volume->fsync(files[i], i % 3 == 0));
      });
    for (std::thread& thread : threads) thread.join();
    // All of them have returned: as a cut of the power leaves it now.
    test::MemoryDisks cut;
    for (const auto& disk : disks) cut.push_back(disk->clone());
    auto again = test::open_volume(test::borrowed(cut), test::quiet_options(), environment);
    ASSERT_OK(again);
    for (unsigned i = 0; i < kThreads; ++i) {
      ByteVector got(9000);
      const auto length = (*again)->read(files[i], 0, got);
      ASSERT_OK(length);
      ASSERT_EQ(*length, i % 2 == 0 ? 100u : 9000u) << i;
      ASSERT_EQ(got[*length - 1], static_cast<std::byte>('a' + round)) << i;
    }
  }
  const std::uint64_t commits = volume->store().generation() - before;
  EXPECT_GE(commits, kRounds);
  EXPECT_LE(commits, kThreads * kRounds / 5);
  test::tried("{} calls of fsync by {} threads at once, {} commits", kThreads * kRounds, kThreads, commits);
  wanted = 0;
  ASSERT_OK(volume->close());
}

// A disk that is absent at the next boot then holds nothing up.
TEST(FinalizationTest, AnFsyncThatNoOtherFollowsIsFinalizedLongBeforeTheNextPeriodicCommit) {
  SystemEnvironment environment;
  const test::MemoryDisks disks = test::format_memory_disks(3, 32u << 20, environment);
  VolumeOptions options = test::quiet_options();
  options.commit_interval_ns = 3'600'000'000'000;
  auto volume = std::move(test::open_volume(test::borrowed(disks), options, environment)).value();
  const auto file = volume->make_node(kRootIno, "file", S_IFREG | 0644, 0, {});
  ASSERT_OK(file);
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(volume->write(file->ino, 0, as_bytes(std::string(5000, 'a')), false));
    ASSERT_OK(volume->fsync(file->ino, false));
    const auto is_final = [&](const auto& disk) {
      const store::DiskLabels labels = store::read_labels(*disk);
      return std::ranges::any_of(labels.slots, [&](const format::CommitSlot& slot) {
        return slot.generation == volume->store().generation() && slot.state == MDFS_SLOT_COMMITTED;
      });
    };
    while (!std::ranges::all_of(disks, is_final)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace
}  // namespace mdfs::volume
