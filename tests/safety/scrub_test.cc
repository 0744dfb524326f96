// The scrub: it reads everything, repairs what has a good copy, names what has none, counts right, takes nothing that
// only changed meanwhile for damage, and goes on after a crash. Promises 4 and 10 of doc/SAFETY.md.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "base/log.h"
#include "device/testing/faulty_disk.h"
#include "format/label.h"
#include "maintenance/runner.h"
#include "small_volume.h"
#include "store/labels.h"
#include "tried.h"
#include "volume/operations.h"

namespace mdfs::safety {
namespace {

using volume::OperationKind;
using volume::OperationRecord;

constexpr std::uint64_t kDiskBytes = 4u << 20;
constexpr std::uint64_t kBlock = 4096;
constexpr std::uint64_t kLabelArea = MDFS_LABEL_AREA;

const Status quiet = set_log_level("off");

struct Place {
  std::size_t disk = 0;
  std::uint64_t block = 0;
};

std::vector<Place> stored_blocks(const MemoryDisks& disks) {
  std::vector<Place> stored;
  for (std::size_t disk = 0; disk < disks.size(); ++disk)
    for (std::uint64_t block = 0; block < kDiskBytes / kBlock; ++block) {
      ByteVector bytes(kBlock);
      disks[disk]->peek(block * kBlock, bytes);
      if (std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; }))
        stored.push_back({disk, block});
    }
  return stored;
}

void spoil(const MemoryDisks& disks, const Place& place, std::uint64_t at) {
  std::byte byte{};
  disks[place.disk]->peek(place.block * kBlock + at, {&byte, 1});
  byte ^= std::byte{0x5a};
  disks[place.disk]->poke(place.block * kBlock + at, {&byte, 1});
}

OperationRecord status(volume::Volume& volume) {
  const auto record = volume.operations().status(OperationKind::kScrub);
  EXPECT_TRUE(record.ok()) << record.error().message();
  return record.ok() ? *record : OperationRecord();
}

// To its end, if it ends.
OperationRecord finish(volume::Volume& volume) {
  for (unsigned steps = 0; volume.operations().turn().worked && steps < 100'000; ++steps) {
  }
  return status(volume);
}

OperationRecord scrub(volume::Volume& volume) {
  const Status started = volume.operations().start({});
  EXPECT_TRUE(started.ok()) << started.error().message();
  return finish(volume);
}

TEST(ScrubTest, AVolumeWithoutDamageIsReadAsAWholeAndLeftAlone) {
  const SmallVolume base(3, kDiskBytes);
  SeededEnvironment environment(17);
  auto volume = mount(base.disks, environment);
  ASSERT_TRUE(volume.ok());
  const OperationRecord record = scrub(**volume);
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_EQ(record.items_failed, 0u);
  EXPECT_EQ(record.items_changed, 0u);
  EXPECT_EQ(record.bytes_done, record.bytes_total);
  ASSERT_EQ(record.disks.size(), 3u);
  std::uint64_t stored = 0, read = 0;
  for (unsigned i = 0; i < 3; ++i) {
    const store::DiskInfo disk = (*volume)->store().disk_info(i);
    stored += (disk.blocks - disk.free_blocks) * kBlock;
    read += record.disks[i].read_bytes;
    EXPECT_GT(record.disks[i].read_bytes, 4 * kLabelArea);
  }
  EXPECT_EQ(read, record.bytes_done);
  // All that is in use was read, but for a few blocks that commits of the scrub itself hold.
  EXPECT_GT(read + (64u << 10), stored - 3 * kBlock * 16);
  EXPECT_LT(read, stored + (256u << 10));
  ASSERT_TRUE((*volume)->close().ok());
  EXPECT_EQ(findings(base.disks), std::set<std::string>());
}

// What mdfsck calls each spoiled byte says what the scrub must do about it.
TEST(ScrubTest, DamageDoneWhileMountedIsRepairedOrNamedAndCountedRight) {
  const SmallVolume base(2, kDiskBytes);
  std::mt19937_64 generator(3);
  std::map<std::string, unsigned> repaired, named;
  unsigned untouched = 0;
  const MemoryDisks started = clone(base.disks);
  {
    SeededEnvironment environment(17);
    auto volume = mount(started, environment);
    ASSERT_TRUE(volume.ok());
    ASSERT_TRUE((*volume)->operations().start({}).ok());
  }
  for (const Place& place : stored_blocks(started)) {
    const unsigned tries = whole_run() ? 8 : 1;
    for (unsigned i = 0; i < tries; ++i) {
      const MemoryDisks disks = clone(base.disks);
      SeededEnvironment environment(17);
      auto volume = mount(disks, environment);
      ASSERT_TRUE(volume.ok());
      // Where the scrub will look: the start of one writes a commit first. What is spoiled is not the last commit.
      ASSERT_TRUE((*volume)->operations().start({}).ok());
      ASSERT_TRUE((*volume)->store().finalize().ok());
      spoil(disks, place, generator() % kBlock);
      const std::set<std::string> found = findings(clone(disks));
      const OperationRecord record = finish(**volume);
      const std::string what =
          fmt::format("disk {} block {}", place.disk, place.block) + (found.empty() ? "" : ", " + *found.begin());
      ASSERT_EQ(record.state, MDFS_OPERATION_DONE) << what << ": " << record.reason;
      if (found.empty()) {
        ASSERT_EQ(record.items_changed + record.items_failed, 0u) << what;
        ++untouched;
        continue;
      }
      ASSERT_EQ(found.size(), 1u) << what;
      if (*found.begin() == "data-damaged") {
        ASSERT_EQ(record.items_failed, 1u) << what;
        ASSERT_EQ(record.items_changed, 0u) << what;
        ASSERT_EQ(record.errors.size(), 1u) << what;
        ASSERT_EQ(record.errors[0].what, MDFS_ERROR_DATA) << what;
        ASSERT_EQ(record.errors[0].disk, place.disk) << what;
        ASSERT_LE(record.errors[0].block, place.block) << what;
        ASSERT_EQ(record.disks[place.disk].failed, 1u) << what;
        ++named[*found.begin()];
      } else {
        ASSERT_EQ(record.items_failed, 0u) << what;
        ASSERT_EQ(record.items_changed, 1u) << what;
        ASSERT_EQ(record.disks[place.disk].repaired, 1u) << what;
        ++repaired[*found.begin()];
      }
      const Sight sight = look(**volume, base.expected);
      ASSERT_EQ(sight.wrong, "") << what;
      ASSERT_EQ(sight.errors > 0, *found.begin() == "data-damaged") << what;
      ASSERT_TRUE((*volume)->close().ok()) << what;
      volume->reset();
      const std::set<std::string> left = findings(disks);
      if (*found.begin() == "data-damaged")
        ASSERT_EQ(left, found) << what;
      else
        ASSERT_EQ(left, std::set<std::string>()) << what;
    }
  }
  for (const char* name : {"label-damaged", "commit-slot-missing", "space-page-damaged", "node-copy-damaged"})
    EXPECT_GT(repaired[name], 0u) << name;
  EXPECT_GT(named["data-damaged"], 20u);
  EXPECT_GT(untouched, 0u);
  for (const auto& [name, count] : repaired) test::tried("{} times {}, repaired by a scrub", count, name);
  test::tried("{} blocks of data spoiled, named by a scrub", named["data-damaged"]);
}

TEST(ScrubTest, ANodeWithoutAGoodCopyIsNamedAndTheRestIsRead) {
  const SmallVolume base(2, kDiskBytes);
  const MemoryDisks disks = clone(base.disks);
  SeededEnvironment environment(17);
  auto volume = mount(disks, environment);
  ASSERT_TRUE(volume.ok());
  ASSERT_TRUE((*volume)->operations().start({}).ok());
  // Both copies of some leaf that is not the root.
  bool struck = false;
  for (const Place& place : stored_blocks(disks)) {
    ByteVector node(MDFS_NODE_SIZE), other(MDFS_NODE_SIZE);
    if (struck || place.disk != 0 || (place.block + 4) * kBlock > kDiskBytes) continue;
    disks[0]->peek(place.block * kBlock, node);
    const bool leaf = load_le<std::uint16_t>(node, offsetof(mdfs_node_header, level)) == 0;
    if (std::memcmp(node.data(), MDFS_NODE_MAGIC, 8) != 0 || !leaf) continue;
    const MemoryDisks trial = clone(disks);
    std::vector<Place> copies = {place};
    for (const Place& copy : stored_blocks(disks)) {
      if (copy.disk != 1 || (copy.block + 4) * kBlock > kDiskBytes) continue;
      disks[1]->peek(copy.block * kBlock, other);
      if (other == node) copies.push_back(copy);
    }
    for (const Place& copy : copies) spoil(trial, copy, 100);
    if (!findings(trial).contains("node-lost")) continue;
    for (const Place& copy : copies) spoil(disks, copy, 100);
    struck = true;
  }
  ASSERT_TRUE(struck);
  const OperationRecord record = finish(**volume);
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_GE(record.items_failed, 2u);
  EXPECT_EQ(record.items_changed, 0u);
  ASSERT_FALSE(record.errors.empty());
  EXPECT_EQ(record.errors[0].what, MDFS_ERROR_NODE);
}

TEST(ScrubTest, AVolumeOpenForReadingIsReadAndNotWritten) {
  const SmallVolume base(2, kDiskBytes);
  const MemoryDisks disks = clone(base.disks);
  std::mt19937_64 generator(4);
  SeededEnvironment environment(17);
  store::StoreOptions options;
  options.read_only = true;
  auto volume = mount(disks, environment, options);
  ASSERT_TRUE(volume.ok());
  for (const Place& place : stored_blocks(base.disks))
    if (place.disk == 1) spoil(disks, place, generator() % kBlock);
  const std::uint64_t digest = disks[1]->digest();
  const OperationRecord record = scrub(**volume);
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_GT(record.items_failed, 10u);
  EXPECT_EQ(record.items_changed, 0u);
  EXPECT_EQ(record.disks[0].failed, 0u);
  EXPECT_EQ(record.items_failed, record.disks[1].failed);
  EXPECT_EQ(disks[1]->digest(), digest);
}

TEST(ScrubTest, ADryRunFindsAndLeavesAlone) {
  const SmallVolume base(2, kDiskBytes);
  SeededEnvironment environment(17);
  auto volume = mount(base.disks, environment);
  ASSERT_TRUE(volume.ok());
  volume::OperationRequest request;
  request.dry_run = true;
  ASSERT_TRUE((*volume)->operations().start(request).ok());
  spoil(base.disks, {1, MDFS_LABEL_AREA / kBlock}, 5);  // label 1
  const OperationRecord record = finish(**volume);
  EXPECT_EQ(record.items_failed, 1u);
  EXPECT_EQ(record.items_changed, 0u);
  ASSERT_EQ(record.errors.size(), 1u);
  EXPECT_EQ(record.errors[0].what, MDFS_ERROR_LABEL);
  EXPECT_EQ(record.errors[0].block, 1u);
  EXPECT_TRUE(findings(base.disks).contains("label-damaged"));
}

TEST(ScrubTest, DataOnAMissingDiskAreCountedAndNamed) {
  SmallVolume base(3, kDiskBytes);
  base.disks[2].reset();
  SeededEnvironment environment(17);
  auto volume = mount(base.disks, environment);
  ASSERT_TRUE(volume.ok());
  const OperationRecord record = scrub(**volume);
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_GT(record.items_failed, 0u);
  EXPECT_EQ(record.disks[2].failed, record.items_failed);
  for (const auto& error : record.errors) {
    EXPECT_EQ(error.disk, 2u);
    EXPECT_EQ(error.what, MDFS_ERROR_UNREADABLE);
  }
  EXPECT_EQ(record.disks[2].read_bytes, 0u);
  EXPECT_GT(record.disks[0].read_bytes, 0u);
}

TEST(ScrubTest, ADiskThatCannotBeReadIsNamedInEveryPiece) {
  const SmallVolume base(2, kDiskBytes);
  SeededEnvironment environment(17);
  device::Fault fault;
  fault.op = device::Op::kRead;
  fault.times = device::Fault::kSticky;
  ByteVector sector(MDFS_SECTOR);
  base.disks[1]->peek(0, sector);
  const auto label = format::decode_label(sector);
  ASSERT_TRUE(label.ok());
  fault.from = store::layout_of(*label).metadata_end() * kBlock;
  fault.to = kDiskBytes - 2 * kLabelArea;
  device::FaultyDisk faulty(*base.disks[1], {}, 1);
  auto doors = test::borrowed(base.disks);
  doors[1] = &faulty;
  auto volume = test::open_volume(doors, test::quiet_options(4u << 20), environment);
  ASSERT_TRUE(volume.ok());
  faulty.add(fault);
  const OperationRecord record = scrub(**volume);
  EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
  EXPECT_GT(record.disks[1].failed, 3u);
  EXPECT_EQ(record.disks[0].failed, 0u);
  for (const auto& error : record.errors) EXPECT_EQ(error.what, MDFS_ERROR_UNREADABLE);
  faulty.work_again();
  const OperationRecord again = scrub(**volume);
  EXPECT_EQ(again.items_failed, 0u);
}

// Cut off after any number of steps, it comes to the same end.
TEST(ScrubTest, ACrashAtAnyStepIsResumed) {
  const SmallVolume base(2, kDiskBytes);
  unsigned cuts = 0;
  for (unsigned steps = 0;; ++steps) {
    MemoryDisks disks = clone(base.disks);
    SeededEnvironment environment(17);
    MemoryDisks left;
    bool running = false;
    {
      auto volume = mount(disks, environment);
      ASSERT_TRUE(volume.ok());
      ASSERT_TRUE((*volume)->operations().start({}).ok());
      // A block of data of /file, known by what mdfsck says.
      for (const Place& place : stored_blocks(disks)) {
        const MemoryDisks trial = clone(disks);
        spoil(trial, place, 0);
        if (findings(trial) != std::set<std::string>{"data-damaged"}) continue;
        spoil(disks, place, 0);
        break;
      }
      for (unsigned i = 0; i < steps; ++i) {
        environment.advance_ns(maintenance::Runner::kSaveIntervalNs);
        (void)(*volume)->operations().turn();
      }
      running = status(**volume).running();
      if (steps % 2 == 0) {
        ASSERT_TRUE((*volume)->store().commit().ok());
      }
      left = clone(disks);
    }
    if (!running) break;
    ++cuts;
    auto volume = mount(left, environment);
    ASSERT_TRUE(volume.ok());
    EXPECT_TRUE(status(**volume).running()) << steps;
    const OperationRecord record = finish(**volume);
    EXPECT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
    EXPECT_EQ(record.items_failed, 1u) << "after " << steps << " steps";
    EXPECT_EQ(record.items_changed, 0u);
  }
  EXPECT_GT(cuts, 6u);
  test::tried("a scrub cut off after each of {} steps", cuts);
}

// Whatever writers do, nothing that is not damaged is taken for it.
TEST(ScrubTest, WritersBesideItMakeNoFalseDamage) {
  for (std::uint64_t seed = 1; seed <= (whole_run() ? 40u : 4u); ++seed) {
    SmallVolume base(static_cast<unsigned>(1 + seed % 3), kDiskBytes * 2, seed);
    SystemEnvironment environment;
    {
      auto volume = mount(base.disks, environment);
      ASSERT_TRUE(volume.ok());
      std::atomic<bool> ended{false};
      const auto write = [&](unsigned number) {
        std::mt19937_64 generator(seed * 10 + number);
        ByteVector bytes(60'000);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
        const std::string mine = "w" + std::to_string(number);
        while (!ended) {
          const auto made = (*volume)->make_node(volume::kRootIno, mine, S_IFREG | 0644, 0, {});
          if (!made.ok()) continue;
          for (unsigned i = 0; i < 20; ++i) {
            const std::size_t length = 1 + generator() % bytes.size();
            (void)(*volume)->write(made->ino, generator() % 200'000, ConstBytes(bytes).first(length), false).ok();
            if (i % 5 == 0) (void)(*volume)->fsync(made->ino, false).ok();
            if (i % 7 == 0) (void)(*volume)->engine().write_back_all(0).ok();
          }
          const auto raw = (*volume)->lookup(volume::kRootIno, number == 0 ? "raw" : "zstd");
          if (raw.ok()) {
            const geometry::Window window{{generator() % 32, 0}, {32, 96}};
            (void)(*volume)
                ->write_window(raw->ino, window,
                               [&](std::uint64_t offset, MutableBytes into) -> Status {
                                 std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(),
                                             into.begin());
                                 return {};
                               })
                .ok();
            (*volume)->forget(raw->ino, 1);
          }
          (void)(*volume)->unlink(volume::kRootIno, mine).ok();
          (*volume)->forget(made->ino, 1);
          (void)(*volume)->store().commit().ok();
        }
      };
      std::thread first(write, 0), second(write, 1);
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(whole_run() ? 3000 : 800);
      unsigned scrubs = 0;
      while (std::chrono::steady_clock::now() < until || scrubs < 3) {
        const OperationRecord record = scrub(**volume);
        ++scrubs;
        ASSERT_EQ(record.state, MDFS_OPERATION_DONE) << record.reason;
        ASSERT_EQ(record.items_failed, 0u) << "seed " << seed << ", scrub " << scrubs;
        ASSERT_EQ(record.items_changed, 0u) << "seed " << seed << ", scrub " << scrubs;
      }
      ended = true;
      first.join();
      second.join();
      ASSERT_TRUE((*volume)->close().ok());
    }
    EXPECT_EQ(findings(base.disks), std::set<std::string>()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace mdfs::safety
