// A hundred who want their files to be safe at the same time do not wait for a commit each.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <thread>

#include "fixture.h"
#include "gate_disk.h"
#include "store/labels.h"
#include "tried.h"

namespace mdfs::volume {
namespace {

// While the first commit of a round waits for its disk, all others write their files and wait for the next one. So two
// commits a round, however the threads take turns.
TEST(SharedCommitsTest, AHundredWhoFsyncTheirFilesShareTwoCommits) {
  constexpr unsigned kThreads = 100;
  constexpr unsigned kRounds = 5;
  SystemEnvironment environment;
  const test::MemoryDisks disks = test::format_memory_disks(2, 32u << 20, environment);
  test::GateDisk gate(*disks[0]);
  auto volume = std::move(test::open_volume({&gate, disks[1].get()}, test::quiet_options(), environment)).value();
  std::vector<Ino> files;
  for (unsigned i = 0; i < kThreads; ++i) {
    const auto made = volume->make_node(kRootIno, std::to_string(i), S_IFREG | 0644, 0, {});
    ASSERT_OK(made);
    files.push_back(made->ino);
  }
  ASSERT_OK(volume->sync());
  const std::uint64_t before = volume->store().generation();
  for (unsigned round = 1; round <= kRounds; ++round) {
    gate.close_for(volume->store(), kThreads - 1);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        const std::string text(i % 2 == 0 ? 100 : 9000, static_cast<char>('a' + round));
        EXPECT_OK(volume->write(files[i], 0, as_bytes(text), false));
        EXPECT_OK(volume->fsync(files[i], i % 3 == 0));
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(gate.opened_in_time()) << "writers stop while a commit waits for its disk";
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
  EXPECT_LE(commits, 2 * kRounds);
  test::tried("{} calls of fsync by {} threads at once, {} commits", kThreads * kRounds, kThreads, commits);
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
