// Damage at rest: every range of bytes of everything that a small volume stores is overwritten in turn, blocks change
// places, and disks lie about writes. What can be repaired is repaired, the rest is an error, and no read returns wrong
// bytes. Promises 4 and 5 of doc/SAFETY.md.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/log.h"
#include "device/testing/faulty_disk.h"
#include "format/label.h"
#include "small_volume.h"
#include "store/labels.h"
#include "tried.h"

namespace mdfs::safety {
namespace {

constexpr std::uint64_t kDiskBytes = 4u << 20;
constexpr std::uint64_t kBlock = 4096;
constexpr std::size_t kRangeBytes = 64;

// These tests do damage on purpose; what the volume says about it is not of interest.
const Status quiet = set_log_level("off");

format::DiskLayout layout_of(const device::MemoryDisk& disk) {
  ByteVector sector(MDFS_SECTOR);
  disk.peek(0, sector);
  const auto label = format::decode_label(sector);
  MDFS_CHECK(label.ok());
  return store::layout_of(*label);
}

bool is_zero(const device::MemoryDisk& disk, std::uint64_t block) {
  ByteVector bytes(kBlock);
  disk.peek(block * kBlock, bytes);
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

struct Place {
  std::size_t disk = 0;
  std::uint64_t block = 0;
};

class DamageTest : public testing::Test {
 protected:
  DamageTest() : base_(2, kDiskBytes), layout_(layout_of(*base_.disks[0])) {
    for (std::size_t disk = 0; disk < base_.disks.size(); ++disk)
      for (std::uint64_t block = 0; block < kDiskBytes / kBlock; ++block)
        if (!is_zero(*base_.disks[disk], block)) stored_.push_back({disk, block});
  }

  bool holds_data(const Place& place) const {
    return place.block >= layout_.metadata_end() && layout_.is_usable(place.block, 1);
  }

  // Overwrites bytes so that each of them changes.
  static void spoil(device::MemoryDisk& disk, std::uint64_t offset, std::size_t bytes, std::mt19937_64& generator) {
    ByteVector range(bytes);
    disk.peek(offset, range);
    for (std::byte& byte : range) byte ^= static_cast<std::byte>(1 + generator() % 255);
    disk.poke(offset, range);
  }

  // Mounts what is left, looks at all, writes, and looks again after another mount.
  void expect_repaired_or_refused(const MemoryDisks& disks, bool errors_allowed, bool thorough,
                                  const std::string& what) {
    SeededEnvironment environment(17);
    {
      auto volume = mount(disks, environment);
      ASSERT_TRUE(volume.ok()) << what << ": " << volume.error().message();
      const Sight sight = look(**volume, base_.expected);
      ASSERT_EQ(sight.wrong, "") << what;
      if (!errors_allowed) {
        ASSERT_EQ(sight.errors, 0u) << what << ": " << *sight.paths_with_errors.begin();
      }
      errors_ += sight.errors > 0 ? 1 : 0;
      ASSERT_EQ(write_something(**volume), "") << what;
      if (!thorough) return;
      ASSERT_TRUE((*volume)->close().ok()) << what;
    }
    (void)findings(disks, store::RepairMode::kAll);
    for (const std::string& finding : findings(disks)) ASSERT_EQ(finding, "data-damaged") << what;
    auto again = mount(disks, environment);
    ASSERT_TRUE(again.ok()) << what << ": " << again.error().message();
    const Sight sight = look(**again, base_.expected);
    ASSERT_EQ(sight.wrong, "") << what << ", after a repair";
    if (!errors_allowed) {
      ASSERT_EQ(sight.errors, 0u) << what << ", after a repair";
    }
  }

  SmallVolume base_;
  format::DiskLayout layout_;
  std::vector<Place> stored_;  // blocks that hold anything
  std::uint64_t errors_ = 0;   // cases in which something was refused
};

TEST_F(DamageTest, AnySpoiledRangeOfBytesIsRepairedOrRefusedAndNeverRead) {
  std::mt19937_64 generator(5);
  std::uint64_t cases = 0;
  for (const Place& place : stored_)
    for (std::size_t range = 0; range < kBlock / kRangeBytes; ++range) {
      if (!whole_run() && generator() % 32 != 0) continue;
      const MemoryDisks disks = clone(base_.disks);
      spoil(*disks[place.disk], place.block * kBlock + range * kRangeBytes, kRangeBytes, generator);
      const std::string what = fmt::format("disk {} block {} bytes {}", place.disk, place.block, range * kRangeBytes);
      expect_repaired_or_refused(disks, holds_data(place), cases++ % 8 == 0, what);
      if (HasFatalFailure()) return;
    }
  EXPECT_GT(cases, 200u);
  EXPECT_GT(errors_, 0u) << "no data were ever damaged";
  test::tried("{} ranges of 64 bytes spoiled, in {} of them data were refused", cases, errors_);
}

// Bits rather than bytes: what a weaker checksum would let pass.
TEST_F(DamageTest, AnyFlippedBitIsRepairedOrRefusedAndNeverRead) {
  std::mt19937_64 generator(6);
  std::uint64_t cases = 0;
  for (const Place& place : stored_)
    for (unsigned i = 0; i < (whole_run() ? 64u : 1u); ++i) {
      const MemoryDisks disks = clone(base_.disks);
      const std::uint64_t bit = generator() % (kBlock * 8);
      std::byte byte{};
      disks[place.disk]->peek(place.block * kBlock + bit / 8, {&byte, 1});
      byte ^= static_cast<std::byte>(1u << bit % 8);
      disks[place.disk]->poke(place.block * kBlock + bit / 8, {&byte, 1});
      expect_repaired_or_refused(disks, holds_data(place), cases++ % 32 == 0,
                                 fmt::format("disk {} block {} bit {}", place.disk, place.block, bit));
      if (HasFatalFailure()) return;
    }
  EXPECT_GT(cases, 100u);
  test::tried("{} bits flipped", cases);
}

TEST_F(DamageTest, BlocksThatChangedPlacesAreRepairedOrRefusedAndNeverRead) {
  std::mt19937_64 generator(7);
  const unsigned cases = whole_run() ? 20'000 : 200;
  for (unsigned i = 0; i < cases; ++i) {
    const Place a = stored_[generator() % stored_.size()];
    const Place b = stored_[generator() % stored_.size()];
    const MemoryDisks disks = clone(base_.disks);
    ByteVector of_a(kBlock), of_b(kBlock);
    disks[a.disk]->peek(a.block * kBlock, of_a);
    disks[b.disk]->peek(b.block * kBlock, of_b);
    disks[a.disk]->poke(a.block * kBlock, of_b);
    if (i % 2 == 0) disks[b.disk]->poke(b.block * kBlock, of_a);
    // Both copies of one node may be struck: then anything may be refused, and the volume with it.
    SeededEnvironment environment(17);
    auto volume = mount(disks, environment);
    if (!volume.ok()) {
      ASSERT_EQ(volume.error().code, Errc::kCorrupt) << volume.error().message();
      continue;
    }
    const Sight sight = look(**volume, base_.expected);
    ASSERT_EQ(sight.wrong, "") << fmt::format("disk {} block {} and disk {} block {}", a.disk, a.block, b.disk,
                                              b.block);
  }
  test::tried("{} pairs of blocks swapped or copied over each other", cases);
}

// Every copy of a node at once: no more than what it held is refused, nothing is taken for absent, and mdfsck makes a
// volume of it that works.
TEST_F(DamageTest, ANodeWithoutAGoodCopyIsAnErrorUntilItIsGivenUp) {
  std::mt19937_64 generator(8);
  unsigned cases = 0;
  for (const Place& place : stored_) {
    ByteVector node(MDFS_NODE_SIZE), other(MDFS_NODE_SIZE);
    if (place.disk != 0 || place.block * kBlock + node.size() > kDiskBytes) continue;
    base_.disks[0]->peek(place.block * kBlock, node);
    if (std::memcmp(node.data(), MDFS_NODE_MAGIC, 8) != 0) continue;
    const MemoryDisks disks = clone(base_.disks);
    spoil(*disks[0], place.block * kBlock + generator() % (node.size() - 8), 8, generator);
    for (const Place& copy : stored_) {
      if (copy.disk != 1 || copy.block * kBlock + other.size() > kDiskBytes) continue;
      disks[1]->peek(copy.block * kBlock, other);
      if (other == node) spoil(*disks[1], copy.block * kBlock + generator() % (node.size() - 8), 8, generator);
    }
    ++cases;
    SeededEnvironment environment(17);
    {
      auto volume = mount(disks, environment);
      if (volume.ok()) {
        const Sight sight = look(**volume, base_.expected);
        ASSERT_EQ(sight.wrong, "") << "block " << place.block;
      } else {
        ASSERT_EQ(volume.error().code, Errc::kCorrupt) << volume.error().message();
      }
    }
    (void)findings(disks, store::RepairMode::kAll);
    ASSERT_EQ(findings(disks), std::set<std::string>()) << "block " << place.block;
    auto repaired = mount(disks, environment);
    ASSERT_TRUE(repaired.ok()) << repaired.error().message();
    ASSERT_EQ(write_something(**repaired), "") << "block " << place.block;
  }
  EXPECT_GT(cases, 2u);
  test::tried("{} nodes spoiled in all copies", cases);
}

// A disk that says "written" and lies, at each write of a mount that copies everything.
class LyingDiskTest : public testing::TestWithParam<device::FaultKind> {};

TEST_P(LyingDiskTest, WritesThatWentAstrayAreRepairedOrRefusedAndNeverRead) {
  std::uint64_t n = 0;
  for (bool struck = true; struck; ++n) {
    SmallVolume made(2, kDiskBytes, 3);
    SeededEnvironment environment(n);
    {
      std::vector<device::Disk*> doors = test::borrowed(made.disks);
      device::Fault fault;
      fault.kind = GetParam();
      fault.op = device::Op::kWrite;
      fault.skip = n;
      fault.target = (n * 7919 % (kDiskBytes / kBlock)) * kBlock;
      device::FaultyDisk faulty(*made.disks[n % 2], {fault}, n);
      doors[n % 2] = &faulty;
      auto volume = test::open_volume(doors, test::quiet_options(4u << 20), environment);
      ASSERT_TRUE(volume.ok());
      for (const char* name : {"file", "raw", "zstd"}) {
        const auto from = (*volume)->lookup(volume::kRootIno, name);
        ASSERT_TRUE(from.ok());
        const auto copy = (*volume)->make_node(volume::kRootIno, std::string(name) + "2", 0100644, 0, {});
        ASSERT_TRUE(copy.ok());
        ASSERT_TRUE((*volume)->sync().ok() || GetParam() == device::FaultKind::kStale);
        const auto copied = (*volume)->copy_range(from->ino, 0, copy->ino, 0, 1u << 20);
        if (copied.ok()) {
          test::Seen seen = made.expected.at(std::string("/") + name);
          seen.mode = 0100644;
          made.expected[std::string("/") + name + "2"] = seen;
        }
        ASSERT_TRUE((*volume)->sync().ok() || GetParam() == device::FaultKind::kStale);
      }
      (void)(*volume)->close().ok();
      struck = !faulty.injections().empty();
    }
    // What went astray may have hit one copy of a node, and data; both copies of a node it cannot.
    auto volume = mount(made.disks, environment);
    ASSERT_TRUE(volume.ok()) << "write " << n << ": " << volume.error().message();
    const Sight sight = look(**volume, made.expected);
    ASSERT_EQ(sight.wrong, "") << device::fault_name(GetParam()) << ", write " << n;
  }
  EXPECT_GT(n, 20u);
  test::tried("{}: each of {} writes", device::fault_name(GetParam()), n - 1);
}

INSTANTIATE_TEST_SUITE_P(Lies, LyingDiskTest,
                         testing::Values(device::FaultKind::kPhantomWrite, device::FaultKind::kMisdirectedWrite,
                                         device::FaultKind::kSwappedWrites, device::FaultKind::kBitFlip,
                                         device::FaultKind::kStale));

}  // namespace
}  // namespace mdfs::safety
