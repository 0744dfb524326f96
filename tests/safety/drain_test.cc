// A disk is drained and removed: nothing is lost, whenever the power is cut, and the drain can be resumed.
// Promises 8 and 10 of doc/SAFETY.md.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "base/log.h"
#include "device/testing/recorder_disk.h"
#include "device/testing/replay.h"
#include "small_volume.h"
#include "store/labels.h"
#include "tried.h"
#include "volume/disk_statistics.h"
#include "volume/operations.h"

namespace mdfs::safety {
namespace {

using volume::OperationKind;

constexpr std::uint64_t kDiskBytes = 4u << 20;
const Status quiet = set_log_level("off");

Status start(volume::Volume& volume, unsigned disk, std::uint64_t target_plus_one = 0, bool dry_run = false) {
  volume::OperationRequest request;
  request.kind = OperationKind::kDrain;
  request.dry_run = dry_run;
  request.parameters = {disk, target_plus_one, 0, 0};
  return volume.operations().start(request);
}

// Until it has ended; its record.
volume::OperationRecord finish(volume::Volume& volume) {
  constexpr unsigned kMost = 10'000;
  for (unsigned i = 0; i < kMost; ++i) {
    const auto record = volume.operations().status(OperationKind::kDrain);
    if (!record.ok() || !record->running()) return record.ok() ? *record : volume::OperationRecord();
    (void)volume.operations().turn();
  }
  ADD_FAILURE() << "the drain comes to no end";
  return {};
}

void expect_all_there(volume::Volume& volume, const test::Tree& expected, const std::string& text) {
  const Sight sight = look(volume, expected);
  EXPECT_EQ(sight.wrong, "") << text;
  EXPECT_EQ(sight.errors, 0u) << text;
}

// As if somebody had forgotten to plug it in.
void write_without(MemoryDisks& disks, std::size_t away, Environment& environment) {
  MemoryDisks others = clone(disks);
  others[away].reset();
  auto volume = mount(others, environment);
  ASSERT_TRUE(volume.ok());
  EXPECT_EQ(write_something(**volume), "");
  ASSERT_TRUE((*volume)->close().ok());
  volume->reset();
  for (std::size_t i = 0; i < disks.size(); ++i)
    if (i != away) disks[i] = others[i]->clone();
}

TEST(DrainTest, WhatLiesOnAStaleDiskIsReadAndMovesToTheOthers) {
  SystemEnvironment environment;
  for (std::size_t stale = 0; stale < 3; ++stale) {
    SmallVolume small(3, kDiskBytes);
    write_without(small.disks, stale, environment);
    const std::uint64_t before = small.disks[stale]->digest();
    auto volume = mount(small.disks, environment);
    ASSERT_TRUE(volume.ok());
    EXPECT_EQ((*volume)->store().disk_info(static_cast<unsigned>(stale)).state, store::DiskState::kStale);
    expect_all_there(**volume, small.expected, "with a stale disk");
    ASSERT_TRUE(start(**volume, static_cast<unsigned>(stale)).ok());
    const volume::OperationRecord record = finish(**volume);
    EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
    EXPECT_GT(record.items_changed, 0u);
    EXPECT_EQ(record.items_failed, 0u);
    EXPECT_GT(record.bytes_done, 0u);
    expect_all_there(**volume, small.expected, "drained");
    ASSERT_TRUE((*volume)->close().ok());
    volume->reset();
    EXPECT_EQ(small.disks[stale]->digest(), before) << "a stale disk is never written";
    small.disks[stale].reset();
    EXPECT_EQ(findings(small.disks), std::set<std::string>());
    auto without = mount(small.disks, environment);
    ASSERT_TRUE(without.ok());
    expect_all_there(**without, small.expected, "mounted without it");
  }
}

TEST(DrainTest, WhatIsNotOnAStaleDiskAsTheTreeSaysIsRefused) {
  SystemEnvironment environment;
  SmallVolume small(3, kDiskBytes);
  write_without(small.disks, 1, environment);
  constexpr std::uint64_t kLabels = 128u << 10;  // two at each end
  small.disks[1]->zero(kLabels, kDiskBytes - 2 * kLabels);
  auto volume = mount(small.disks, environment);
  ASSERT_TRUE(volume.ok());
  const Sight sight = look(**volume, small.expected);
  EXPECT_EQ(sight.wrong, "");
  EXPECT_GT(sight.errors, 0u);
}

TEST(DrainTest, ADiskThatWasMissingWhileOthersWereOnlyReadIsNotStale) {
  SystemEnvironment environment;
  SmallVolume small(3, kDiskBytes);
  for (std::size_t away = 0; away < 3; ++away) {
    std::unique_ptr<device::MemoryDisk> disk = std::move(small.disks[away]);
    volume::VolumeOptions options = test::quiet_options(4u << 20);
    options.atime = volume::AtimeMode::kRelatime;
    std::vector<device::Disk*> others = test::borrowed(small.disks);
    std::erase(others, nullptr);
    auto volume = test::open_volume(others, options, environment);
    ASSERT_TRUE(volume.ok());
    EXPECT_FALSE((*volume)->store().read_only());
    EXPECT_EQ(look(**volume, small.expected).wrong, "");
    ASSERT_TRUE((*volume)->close().ok());
    volume->reset();
    small.disks[away] = std::move(disk);
    auto whole = mount(small.disks, environment);
    ASSERT_TRUE(whole.ok());
    EXPECT_EQ((*whole)->store().disk_info(static_cast<unsigned>(away)).state, store::DiskState::kHealthy);
    ASSERT_TRUE((*whole)->close().ok());
  }
}

// The disk is away, everything is read, and all operations may run.
void read_without(MemoryDisks& disks, std::size_t away, const test::Tree& expected, Environment& environment) {
  MemoryDisks others = clone(disks);
  others[away].reset();
  std::vector<std::uint64_t> before;
  for (const auto& disk : others) before.push_back(disk ? disk->digest() : 0);
  auto volume = mount(others, environment);
  ASSERT_TRUE(volume.ok());
  EXPECT_FALSE((*volume)->store().read_only());
  EXPECT_EQ(look(**volume, expected).wrong, "");
  (void)finish(**volume);
  ASSERT_TRUE((*volume)->close().ok());
  volume->reset();
  for (std::size_t i = 0; i < disks.size(); ++i)
    if (i != away) {
      EXPECT_EQ(others[i]->digest(), before[i]) << "disk " << i << " was written without disk " << away;
    }
}

TEST(DrainTest, WhileADiskIsAwayItsDrainWaitsAndItIsNotStaleWhenItReturns) {
  SystemEnvironment environment;
  SmallVolume small(3, kDiskBytes);
  {
    auto volume = mount(small.disks, environment);
    ASSERT_TRUE(volume.ok());
    ASSERT_TRUE(start(**volume, 2).ok());
    for (int i = 0; i < 3; ++i) (void)(*volume)->operations().turn();
    ASSERT_TRUE((*volume)->operations().status(OperationKind::kDrain)->running());
    ASSERT_TRUE((*volume)->close().ok());
  }
  for (std::size_t away = 0; away < 3; ++away) read_without(small.disks, away, small.expected, environment);
  auto volume = mount(small.disks, environment);
  ASSERT_TRUE(volume.ok());
  EXPECT_EQ((*volume)->store().disk_info(2).state, store::DiskState::kDraining);
  EXPECT_EQ(finish(**volume).state, MDFS_OPERATION_DONE);
  expect_all_there(**volume, small.expected, "with all disks again");
}

// The disk that is away is not stale when it returns: looking is not writing, and a defragmentation or a balancing is
// not worth a stale disk.
TEST(DrainTest, NoOperationButADrainWritesWhileADiskIsAway) {
  SystemEnvironment environment;
  SmallVolume small(3, kDiskBytes);
  for (const OperationKind kind :
       {OperationKind::kScrub, OperationKind::kDefrag, OperationKind::kDrain, OperationKind::kBalance}) {
    for (const bool dry_run : {true, false}) {
      if (!dry_run && kind == OperationKind::kDrain) continue;
      const bool is_refused = !dry_run && kind != OperationKind::kScrub;
      MemoryDisks others = clone(small.disks);
      others[2].reset();
      std::vector<std::uint64_t> before;
      for (const auto& disk : others) before.push_back(disk ? disk->digest() : 0);
      auto volume = mount(others, environment);
      ASSERT_TRUE(volume.ok());
      volume::OperationRequest request;
      request.kind = kind;
      request.dry_run = dry_run;
      if (kind == OperationKind::kBalance) request.parameters[0] = 1;
      const Status started = (*volume)->operations().start(request);
      ASSERT_NE(started.ok(), is_refused) << (started.ok() ? "started" : started.error().message());
      if (is_refused) {
        EXPECT_EQ(started.error().code, Errc::kStaleDisk);
      }
      for (unsigned i = 0; !is_refused && i < 10'000 && (*volume)->operations().status(kind)->running(); ++i)
        (void)(*volume)->operations().turn();
      EXPECT_TRUE(is_refused || !(*volume)->operations().status(kind)->running());
      EXPECT_EQ((*volume)->disk_statistics().reset().error().code, Errc::kStaleDisk);
      ASSERT_TRUE((*volume)->close().ok());
      volume->reset();
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_EQ(others[i]->digest(), before[i]) << "operation " << static_cast<int>(kind) << ", disk " << i;
    }
  }
}

TEST(DrainTest, ADefragmentationThatADiskInterruptedIsResumedWithThatDiskOnly) {
  SystemEnvironment environment;
  SmallVolume small(3, kDiskBytes);
  volume::OperationRequest request;
  request.kind = OperationKind::kDefrag;
  {
    auto volume = mount(small.disks, environment);
    ASSERT_TRUE(volume.ok());
    ASSERT_TRUE((*volume)->operations().start(request).ok());
    ASSERT_TRUE((*volume)->close().ok());
  }
  {
    MemoryDisks others = clone(small.disks);
    others[0].reset();
    auto volume = mount(others, environment);
    ASSERT_TRUE(volume.ok());
    const Status resumed = (*volume)->operations().resume(request.kind, std::nullopt);
    ASSERT_FALSE(resumed.ok());
    EXPECT_EQ(resumed.error().code, Errc::kStaleDisk);
    EXPECT_EQ((*volume)->operations().status(request.kind)->state, MDFS_OPERATION_CANCELLED);
    // A write of a user gives the disk up. Nothing is spared then.
    EXPECT_EQ(write_something(**volume), "");
    EXPECT_TRUE((*volume)->operations().resume(request.kind, std::nullopt).ok());
  }
  auto volume = mount(small.disks, environment);
  ASSERT_TRUE(volume.ok());
  EXPECT_TRUE((*volume)->operations().status(request.kind)->running());
}

// Whoever asks for the removal of a disk that is missing gives it up: nothing waits for it, at no later mount either.
TEST(DrainTest, TheDrainOfADiskThatWasMissingWhenItBeganResumesWithoutIt) {
  SystemEnvironment environment;
  SmallVolume small(3, kDiskBytes);
  small.disks.erase(small.disks.begin());
  {
    auto volume = mount(small.disks, environment);
    ASSERT_TRUE(volume.ok());
    ASSERT_TRUE(start(**volume, 0).ok());
    ASSERT_TRUE((*volume)->close().ok());
  }
  auto volume = mount(small.disks, environment);
  ASSERT_TRUE(volume.ok());
  EXPECT_TRUE((*volume)->operations().status(OperationKind::kDrain)->running());
}

TEST(DrainTest, ADrainedDiskIsRemovedWithNothingLost) {
  SystemEnvironment environment;
  SmallVolume small(3, kDiskBytes);
  {
    auto volume = mount(small.disks, environment);
    ASSERT_TRUE(volume.ok());
    const Status started = start(**volume, 0);
    ASSERT_TRUE(started.ok()) << started.error().message();
    EXPECT_EQ(start(**volume, 1).error().code, Errc::kBusy);
    const volume::OperationRecord record = finish(**volume);
    EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
    EXPECT_GT(record.items_changed, 0u);
    EXPECT_EQ((*volume)->store().disk_info(0).state, store::DiskState::kNone);
    expect_all_there(**volume, small.expected, "after it");
    EXPECT_EQ(write_something(**volume), "");
    ASSERT_TRUE((*volume)->close().ok());
  }
  EXPECT_FALSE(store::read_labels(*small.disks[0]).label) << "its labels are wiped";
  MemoryDisks rest;
  for (const std::size_t i : {1u, 2u}) rest.push_back(small.disks[i]->clone());
  EXPECT_EQ(findings(rest), std::set<std::string>());
  auto volume = mount(rest, environment);
  ASSERT_TRUE(volume.ok());
  EXPECT_FALSE((*volume)->store().read_only());
  expect_all_there(**volume, small.expected, "mounted without it");
}

TEST(DrainTest, OneDiskTakesThePlaceOfAnother) {
  SystemEnvironment environment;
  SmallVolume small(2, kDiskBytes);
  auto fresh = std::make_unique<device::MemoryDisk>("disk2", 2 * kDiskBytes);
  auto volume = mount(small.disks, environment);
  ASSERT_TRUE(volume.ok());
  std::vector<store::JoiningDisk> joining;
  joining.push_back({std::make_unique<test::BorrowedDisk>(*fresh), 1});
  ASSERT_EQ((*volume)->add_disks(std::move(joining)).value(), std::vector<unsigned>{2});
  ASSERT_TRUE(start(**volume, 1, 3).ok());
  const volume::OperationRecord record = finish(**volume);
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_GT((*volume)->store().used_blocks(2), 0u);
  expect_all_there(**volume, small.expected, "replaced");
  ASSERT_TRUE((*volume)->close().ok());
  MemoryDisks rest;
  rest.push_back(small.disks[0]->clone());
  rest.push_back(fresh->clone());
  EXPECT_EQ(findings(rest), std::set<std::string>());
}

TEST(DrainTest, WhatDoesNotFitIsRefusedAndChangesNothing) {
  SystemEnvironment environment;
  SmallVolume small(1, kDiskBytes);
  auto volume = mount(small.disks, environment);
  ASSERT_TRUE(volume.ok());
  EXPECT_EQ(start(**volume, 0).error().code, Errc::kNoSpace);
  EXPECT_EQ(start(**volume, 0, 0, true).error().code, Errc::kNoSpace);
  EXPECT_EQ(start(**volume, 7).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(start(**volume, 0, 1).error().code, Errc::kInvalidArgument) << "a disk cannot take its own place";
  EXPECT_EQ((*volume)->store().disk_info(0).state, store::DiskState::kHealthy);
  EXPECT_EQ(write_something(**volume), "");
}

TEST(DrainTest, ADiskThatWasLeavingCanStay) {
  SystemEnvironment environment;
  SmallVolume small(2, kDiskBytes);
  auto volume = mount(small.disks, environment);
  ASSERT_TRUE(volume.ok());
  ASSERT_TRUE(start(**volume, 0).ok());
  EXPECT_EQ((*volume)->keep_disk(0).error().code, Errc::kBusy);
  ASSERT_TRUE((*volume)->operations().cancel(OperationKind::kDrain).ok());
  EXPECT_EQ((*volume)->store().disk_info(0).state, store::DiskState::kDraining);
  ASSERT_TRUE((*volume)->keep_disk(0).ok());
  EXPECT_EQ((*volume)->store().disk_info(0).state, store::DiskState::kHealthy);
  expect_all_there(**volume, small.expected, "kept");
  ASSERT_TRUE((*volume)->close().ok());
  EXPECT_EQ(findings(small.disks), std::set<std::string>());
}

// A disk that is not there: copies of nodes are made anew, and what of the data is lost is named, not forgotten.
TEST(DrainTest, ADiskThatIsMissingLeavesWhenNothingRefersToItAnyMore) {
  SystemEnvironment environment;
  SmallVolume small(3, kDiskBytes);
  small.disks.erase(small.disks.begin());
  auto volume = mount(small.disks, environment);
  ASSERT_TRUE(volume.ok());
  ASSERT_TRUE(start(**volume, 0).ok());
  volume::OperationRecord record = finish(**volume);
  EXPECT_EQ(record.state, MDFS_OPERATION_FAILED);
  EXPECT_GT(record.items_failed, 0u);
  ASSERT_FALSE(record.errors.empty());
  EXPECT_NE(record.errors[0].object, 0u);
  EXPECT_EQ(record.items_failed, record.errors.size()) << "each is counted once";
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint16_t>> told;
  for (const auto& error : record.errors)
    EXPECT_TRUE(told.insert({error.object, error.offset, error.what}).second) << error.object << " twice";
  for (const char* name : {"file", "raw", "zstd", "stack"}) ASSERT_TRUE((*volume)->unlink(volume::kRootIno, name).ok());
  const auto dir = (*volume)->lookup(volume::kRootIno, "dir");
  ASSERT_TRUE(dir.ok());
  (*volume)->forget(dir->ino, 1);
  ASSERT_TRUE((*volume)->sync().ok());
  ASSERT_TRUE(start(**volume, 0).ok());
  record = finish(**volume);
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_EQ((*volume)->store().disk_info(0).state, store::DiskState::kNone);
  ASSERT_TRUE((*volume)->close().ok());
  EXPECT_EQ(findings(small.disks), std::set<std::string>());
}

// The disks that would be found.
std::vector<device::Disk*> labelled(const MemoryDisks& disks) {
  std::vector<device::Disk*> found;
  for (const auto& disk : disks)
    if (store::read_labels(*disk).label) found.push_back(disk.get());
  return found;
}

TEST(DrainTest, EveryCutKeepsEverythingAndTheDiskIsRemovedAfterIt) {
  SystemEnvironment environment;
  SmallVolume small(3, kDiskBytes);
  const MemoryDisks before = clone(small.disks);
  device::RecorderLog log;
  {
    std::vector<std::unique_ptr<device::RecorderDisk>> recorders;
    std::vector<device::Disk*> disks;
    for (std::size_t i = 0; i < small.disks.size(); ++i) {
      recorders.push_back(std::make_unique<device::RecorderDisk>(*small.disks[i], log, static_cast<std::uint32_t>(i)));
      disks.push_back(recorders.back().get());
    }
    auto volume = test::open_volume(disks, test::quiet_options(), environment);
    ASSERT_TRUE(volume.ok());
    ASSERT_TRUE(start(**volume, 0).ok());
    log.mark("started", 1);
    EXPECT_EQ(finish(**volume).state, MDFS_OPERATION_DONE);
    ASSERT_TRUE((*volume)->close().ok());
  }
  std::vector<const device::MemoryDisk*> bases;
  for (const auto& disk : before) bases.push_back(disk.get());
  device::CutBounds bounds;
  bounds.all_subsets_up_to = whole_run() ? 6 : 2;
  bounds.each_one_up_to = whole_run() ? 16 : 2;
  bounds.samples = 2;
  const std::vector<device::Event> events = log.events();
  std::size_t resumed = 0;
  const std::size_t visited =
      device::for_each_cut(bases, events, bounds, [&](MemoryDisks disks, const device::Cut& cut) {
        bool started = false;
        for (std::size_t i = 0; i < cut.position; ++i) started |= events[i].kind == device::EventKind::kMark;
        auto volume = test::open_volume(labelled(disks), test::quiet_options(), environment);
        EXPECT_TRUE(volume.ok()) << cut.text;
        if (!volume.ok()) return false;
        EXPECT_FALSE((*volume)->store().read_only()) << cut.text;
        expect_all_there(**volume, small.expected, cut.text);
        if (started) {
          ++resumed;
          const volume::OperationRecord record = finish(**volume);
          EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << cut.text << ": " << record.reason;
          EXPECT_EQ((*volume)->store().disk_info(0).state, store::DiskState::kNone) << cut.text;
          expect_all_there(**volume, small.expected, cut.text + ", resumed");
        }
        EXPECT_TRUE((*volume)->close().ok());
        MemoryDisks found;
        for (const auto& disk : disks)
          if (store::read_labels(*disk).label) found.push_back(disk->clone());
        EXPECT_EQ(findings(found), std::set<std::string>()) << cut.text;
        return !testing::Test::HasFailure();
      });
  EXPECT_GT(visited, 50u);
  EXPECT_GT(resumed, 20u);
  test::tried("{} cuts while a disk was drained", visited);
}

}  // namespace
}  // namespace mdfs::safety
