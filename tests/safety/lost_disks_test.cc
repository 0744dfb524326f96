// Whole disks that are gone, cut, blank, old or foreign: the outcome of each, as a table. Promises 6, 7 and 8 of
// doc/SAFETY.md.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/log.h"
#include "device/testing/faulty_disk.h"
#include "small_volume.h"
#include "tried.h"

namespace mdfs::safety {
namespace {

constexpr unsigned kDisks = 4;
constexpr std::uint64_t kDiskBytes = 4u << 20;
constexpr std::uint64_t kArea = MDFS_LABEL_AREA;

const Status quiet = set_log_level("off");

// The disks as they were some commits ago, and as they are.
struct History {
  History() : now(kDisks, kDiskBytes, 4), other(kDisks, kDiskBytes, 5) {
    old = clone(now.disks);
    SeededEnvironment environment(6);
    for (int i = 0; i < 6; ++i) {
      auto volume = mount(now.disks, environment);
      MDFS_CHECK(volume.ok());
      MDFS_CHECK((*volume)->make_directory(volume::kRootIno, fmt::format("later{}", i), 0755, {}).ok());
      auto tree = test::read_tree(**volume);
      MDFS_CHECK(tree.ok());
      now.expected = std::move(*tree);
      MDFS_CHECK((*volume)->close().ok());
    }
  }
  SmallVolume now;
  SmallVolume other;  // volume
  MemoryDisks old;
};

const History& history() {
  static const History kHistory;
  return kHistory;
}

void wipe_labels(device::MemoryDisk& disk, unsigned labels) {
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i)
    if (labels >> i & 1) disk.zero(i < 2 ? i * kArea : kDiskBytes - (4 - i) * kArea, kArea);
}

enum class Outcome : std::uint8_t {
  kHealthy,  // as if nothing had happened
  kWithout,  // mounted without the disk, in the state named; what lies on it is refused
  kRefused,  // the mount says which disk does not belong there
};

struct Case {
  const char* name;
  std::function<void(MemoryDisks& disks, std::size_t struck)> strike;
  Outcome outcome;
  store::DiskState state = store::DiskState::kHealthy;
};

std::vector<Case> cases() {
  using enum Outcome;
  std::vector<Case> all = {
      {"missing", [](MemoryDisks& disks, std::size_t i) { disks[i].reset(); }, kWithout, store::DiskState::kMissing},
      {"cut in half", [](MemoryDisks& disks, std::size_t i) { disks[i]->resize(kDiskBytes / 2); }, kWithout,
       store::DiskState::kFailed},
      {"cut behind its first labels", [](MemoryDisks& disks, std::size_t i) { disks[i]->resize(2 * kArea); }, kWithout,
       store::DiskState::kFailed},
      {"cut by one block", [](MemoryDisks& disks, std::size_t i) { disks[i]->resize(kDiskBytes - 4096); }, kWithout,
       store::DiskState::kFailed},
      {"cut to nothing", [](MemoryDisks& disks, std::size_t i) { disks[i]->resize(0); }, kWithout,
       store::DiskState::kMissing},
      {"zeroed", [](MemoryDisks& disks, std::size_t i) { disks[i]->zero(0, kDiskBytes); }, kRefused},
      {"an old copy of itself", [](MemoryDisks& disks, std::size_t i) { disks[i] = history().old[i]->clone(); },
       kWithout, store::DiskState::kStale},
      {"another volume's disk", [](MemoryDisks& disks, std::size_t i) { disks[i] = history().other.disks[i]->clone(); },
       kRefused},
      {"a copy of its neighbour",
       [](MemoryDisks& disks, std::size_t i) { disks[i] = disks[(i + 1) % kDisks]->clone(); }, kRefused},
      {"all labels wiped", [](MemoryDisks& disks, std::size_t i) { wipe_labels(*disks[i], 15); }, kRefused},
      {"grown", [](MemoryDisks& disks, std::size_t i) { disks[i]->resize(2 * kDiskBytes); }, kHealthy},
  };
  for (unsigned labels = 1; labels < 15; ++labels)
    all.push_back({"some labels wiped", [labels](MemoryDisks& disks, std::size_t i) { wipe_labels(*disks[i], labels); },
                   kHealthy});
  return all;
}

// What lies on the disk is refused, all else is there.
void expect_all_but_disk(volume::Volume& volume, const std::string& what) {
  const Sight sight = look(volume, history().now.expected);
  EXPECT_EQ(sight.wrong, "") << what;
  for (const std::string& path : sight.paths_with_errors)
    EXPECT_TRUE(path == "/file" || path == "/raw" || path == "/zstd" || path == "/stack" ||
                path.starts_with("/dir/sub/f"))
        << what << ": " << path;
  EXPECT_GT(sight.pieces - sight.errors, 100u) << what;
}

TEST(LostDisksTest, EachOfFourDisksGoneCutBlankOldOrForeignHasTheOutcomeOfTheTable) {
  unsigned refused_data = 0;
  for (const Case& one : cases())
    for (std::size_t struck = 0; struck < kDisks; ++struck) {
      const std::string what = fmt::format("disk {} {}", struck, one.name);
      MemoryDisks disks = clone(history().now.disks);
      one.strike(disks, struck);
      SeededEnvironment environment(7);
      auto volume = mount(disks, environment);
      if (one.outcome == Outcome::kRefused) {
        ASSERT_FALSE(volume.ok()) << what;
        EXPECT_EQ(volume.error().code, Errc::kForeignDisk) << what;
        EXPECT_NE(volume.error().message().find("disk"), std::string::npos) << what;
        disks[struck].reset();  // as the message says
        volume = mount(disks, environment);
      }
      ASSERT_TRUE(volume.ok()) << what << ": " << volume.error().message();
      EXPECT_FALSE((*volume)->store().read_only()) << what;
      const store::DiskState state = (*volume)->store().disk_info(static_cast<unsigned>(struck)).state;
      EXPECT_EQ(state, one.outcome == Outcome::kRefused ? store::DiskState::kMissing : one.state) << what;
      if (one.outcome == Outcome::kHealthy) {
        const Sight sight = look(**volume, history().now.expected);
        EXPECT_EQ(sight.wrong, "") << what;
        EXPECT_EQ(sight.errors, 0u) << what;
      } else {
        expect_all_but_disk(**volume, what);
        refused_data += look(**volume, history().now.expected).errors > 0 ? 1 : 0;
      }
      EXPECT_EQ(write_something(**volume), "") << what;
      EXPECT_TRUE((*volume)->close().ok()) << what;
      volume->reset();
      auto again = mount(disks, environment);
      ASSERT_TRUE(again.ok()) << what << ": " << again.error().message();
      expect_all_but_disk(**again, what + ", mounted again");
    }
  EXPECT_GT(refused_data, 20u) << "hardly anything lay on the lost disks";
  test::tried("{} disks gone, cut, blank, old or foreign", cases().size() * kDisks);
}

TEST(LostDisksTest, ADiskOfWhichNothingCanBeReadCountsAsMissing) {
  for (std::size_t struck = 0; struck < kDisks; ++struck) {
    const MemoryDisks disks = clone(history().now.disks);
    std::vector<device::Disk*> doors = test::borrowed(disks);
    device::Fault dead;
    dead.times = device::Fault::kSticky;
    device::FaultyDisk faulty(*disks[struck], {dead});
    doors[struck] = &faulty;
    SeededEnvironment environment(7);
    auto volume = test::open_volume(doors, test::quiet_options(4u << 20), environment);
    ASSERT_TRUE(volume.ok()) << volume.error().message();
    EXPECT_EQ((*volume)->store().disk_info(static_cast<unsigned>(struck)).state, store::DiskState::kMissing);
    expect_all_but_disk(**volume, fmt::format("disk {} dead", struck));
    EXPECT_EQ(write_something(**volume), "");
  }
}

TEST(LostDisksTest, HalfOfTheDisksIsReadOnlyAndSaysWhyUnlessDegradedIsOrdered) {
  for (std::size_t a = 0; a < kDisks; ++a)
    for (std::size_t b = a + 1; b < kDisks; ++b) {
      MemoryDisks disks = clone(history().now.disks);
      disks[a].reset();
      disks[b].reset();
      SeededEnvironment environment(7);
      auto volume = mount(disks, environment);
      // Metadata have three copies on four disks: each node has one on the two that are left.
      ASSERT_TRUE(volume.ok()) << volume.error().message();
      EXPECT_TRUE((*volume)->store().read_only());
      EXPECT_NE((*volume)->store().read_only_reason().find("2 of 4"), std::string::npos);
      expect_all_but_disk(**volume, fmt::format("disks {} and {} missing", a, b));
      EXPECT_NE(write_something(**volume), "");
      volume->reset();
      store::StoreOptions degraded;
      degraded.degraded = true;
      auto ordered = mount(disks, environment, degraded);
      ASSERT_TRUE(ordered.ok());
      EXPECT_FALSE((*ordered)->store().read_only());
      EXPECT_EQ(write_something(**ordered), "");
    }
}

// Two halves that were written apart, on order, are never put together again.
TEST(LostDisksTest, TwoHalvesThatWentOnApartAreRefused) {
  MemoryDisks left = clone(history().now.disks), right = clone(history().now.disks);
  left[0].reset(), left[1].reset(), right[2].reset(), right[3].reset();
  store::StoreOptions degraded;
  degraded.degraded = true;
  for (MemoryDisks* half : {&left, &right}) {
    SeededEnvironment environment(half == &left ? 1 : 2);
    auto volume = mount(*half, environment, degraded);
    ASSERT_TRUE(volume.ok());
    EXPECT_EQ(write_something(**volume), "");
    EXPECT_TRUE((*volume)->close().ok());
  }
  MemoryDisks both;
  both.push_back(std::move(right[0])), both.push_back(std::move(right[1]));
  both.push_back(std::move(left[2])), both.push_back(std::move(left[3]));
  SeededEnvironment environment(3);
  const auto volume = mount(both, environment);
  ASSERT_FALSE(volume.ok());
  EXPECT_EQ(volume.error().code, Errc::kFork);
  // Each side is named.
  const std::string& said = volume.error().where;
  EXPECT_NE(said.find(fmt::format("on {}, {} and", both[0]->name(), both[1]->name())), std::string::npos) << said;
  EXPECT_NE(said.find(fmt::format("on {}, {}:", both[2]->name(), both[3]->name())), std::string::npos) << said;
}

}  // namespace
}  // namespace mdfs::safety
