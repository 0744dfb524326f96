// Disks that fail: a failed commit is never claimed, and nothing acknowledged before it is lost.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/log.h"
#include "check_disks.h"
#include "device/request.h"
#include "device/testing/faulty_disk.h"
#include "format/label.h"
#include "store/labels.h"
#include "tried.h"

namespace mdfs::store {
namespace {

using device::Fault;
using device::FaultKind;
using device::FaultyDisk;

constexpr std::uint64_t kDiskBytes = 4u << 20;

// These tests do damage on purpose; what the store says about it is not of interest.
const Status quiet = set_log_level("off");

Status put(Store& store, std::uint64_t n) {
  return store.transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
    for (std::uint64_t i = 0; i < 30; ++i) transaction.put({20 + i, 1, n}, value_of(600, n));
    return {};
  });
}

struct FaultCase {
  device::Op op;
  FaultKind kind;
  std::size_t disks;
};

class FaultTest : public testing::TestWithParam<FaultCase> {};

TEST_P(FaultTest, FailingTheNthRequestNeverLosesWhatWasAcknowledged) {
  unsigned failures = 0;
  std::uint64_t cases = 0;
  const std::size_t count = GetParam().disks;
  std::array<bool, 2> whole{};  // by disk: the workload has no more requests of this kind
  if (count == 1) whole[1] = true;
  for (std::uint64_t nth = 0; !whole[0] || !whole[1]; ++nth) {
    if (whole[nth % 2]) continue;
    SeededEnvironment environment(nth);
    const Disks disks = make_disks(count, kDiskBytes);
    ASSERT_OK(format_disks(disks, environment));
    std::uint64_t acknowledged = 0;
    bool struck = false;
    {
      std::vector<std::unique_ptr<device::Disk>> faulty;
      FaultyDisk* watched = nullptr;
      for (std::size_t i = 0; i < disks.size(); ++i) {
        std::vector<Fault> plan;
        if (i == nth % 2) plan.push_back({GetParam().kind, GetParam().op, 0, UINT64_MAX, nth / 2, 1, 0});
        auto disk = std::make_unique<FaultyDisk>(*disks[i], plan);
        if (i == nth % 2) watched = disk.get();
        faulty.push_back(std::move(disk));
      }
      StoreOptions options;
      options.node_cache_bytes = 0;
      auto store = Store::open(std::move(faulty), options, environment);
      if (store.ok()) {
        bool failed = false;
        for (std::uint64_t n = 1; n <= 6; ++n) {
          const Status changed = put(**store, n);
          const Status committed = changed.ok() ? (*store)->commit() : changed;
          if (failed) {
            EXPECT_FALSE(committed.ok()) << "success after a failed commit";
          }
          if (committed.ok()) acknowledged = n;
          EXPECT_TRUE(!changed.ok() || committed.ok() || count == 1) << "the other disk suffices";
          if (changed.ok() && !committed.ok() && !failed) {
            failed = true;
            ++failures;
            EXPECT_TRUE((*store)->read_only());
            EXPECT_NE((*store)->read_only_reason(), "");
            // What is in memory can still be read.
            EXPECT_OK((*store)->get({20, 1, n}));
          }
        }
        struck = !watched->injections().empty();
      } else {
        struck = true;
      }
    }
    auto store = open_disks(disks, environment);
    ASSERT_OK(store);
    for (std::uint64_t n = 1; n <= acknowledged; ++n) {
      const auto got = (*store)->get({25, 1, n});
      ASSERT_OK(got);
      ASSERT_EQ(*got, std::optional(value_of(600, n))) << "request " << nth;
    }
    ASSERT_OK(put(**store, 9));
    ASSERT_OK((*store)->commit());
    if (struck) ++cases;
    whole[nth % 2] = !struck;
  }
  const bool repeated = GetParam().op == device::Op::kWrite && GetParam().kind != FaultKind::kGone;
  if (GetParam().op != device::Op::kRead && count == 1 && !repeated) {
    EXPECT_GT(failures, 3u);
  } else {
    EXPECT_EQ(failures, 0u);
  }
  test::tried("{} of {}: each of {} requests", device::fault_name(GetParam().kind), device::op_name(GetParam().op),
              cases);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultTest,
                         testing::Values(FaultCase{device::Op::kWrite, FaultKind::kError, 1},
                                         FaultCase{device::Op::kWrite, FaultKind::kError, 2},
                                         FaultCase{device::Op::kWrite, FaultKind::kShort, 1},
                                         FaultCase{device::Op::kWrite, FaultKind::kShort, 2},
                                         FaultCase{device::Op::kWrite, FaultKind::kGone, 1},
                                         FaultCase{device::Op::kWrite, FaultKind::kGone, 2},
                                         FaultCase{device::Op::kFlush, FaultKind::kError, 1},
                                         FaultCase{device::Op::kFlush, FaultKind::kError, 2},
                                         FaultCase{device::Op::kRead, FaultKind::kError, 2},
                                         FaultCase{device::Op::kRead, FaultKind::kBitFlip, 2}));

// A tree of several levels on one disk, of which one copy of every node is lost.
TEST(BadCopyTest, NodesWithABadCopyAreReadFromAnotherAndWrittenAnew) {
  SeededEnvironment environment(3);
  const Disks disks = make_disks(2, 16u << 20);
  ASSERT_OK(format_disks(disks, environment));
  StoreOptions options;
  options.node_cache_bytes = 0;
  Model model;
  {
    auto store = open_disks(disks, environment, options);
    ASSERT_OK(store);
    for (std::uint64_t n = 1; n <= 40; ++n) ASSERT_OK(put(**store, n));
    ASSERT_OK((*store)->commit());
    model = read_all(**store);
  }
  const auto info = [&] {
    auto store = open_disks(disks, environment, options);
    EXPECT_OK(store);
    return (*store)->disk_info(0);
  }();
  ASSERT_GT(model.size(), 1000u);
  // All nodes have one copy on each of the two disks; blot out those of disk 0.
  device::MemoryDisk& disk = *disks[0];
  const auto nodes_on_disk = [&](bool blot_out) {
    unsigned nodes = 0;
    ByteVector magic(8);
    for (std::uint64_t block = 0; block < info.blocks; ++block) {
      disk.peek(block * 4096, magic);
      if (as_text(magic) != MDFS_NODE_MAGIC) continue;
      if (blot_out) disk.zero(block * 4096, 512);
      ++nodes;
    }
    return nodes;
  };
  const unsigned lost = nodes_on_disk(true);
  ASSERT_GT(lost, 40u);
  {
    auto store = open_disks(disks, environment, options);
    ASSERT_OK(store);
    EXPECT_TRUE(read_all(**store) == model);
    const auto touch = [](Transaction& transaction) -> Status {
      transaction.put({16, 1, 0}, value_of(1, 1));
      return {};
    };
    ASSERT_OK((*store)->transact(Purpose::kNormal, touch));
    ASSERT_OK((*store)->commit());
    model[{16, 1, 0}] = value_of(1, 1);
  }
  // Half of the nodes are read from disk 0 first: those have been noticed.
  EXPECT_GT(nodes_on_disk(false), lost / 3);
  auto store = open_disks(disks, environment, options);
  ASSERT_OK(store);
  EXPECT_TRUE(read_all(**store) == model);
  store->reset();

  // Each mount reads other copies first; reading and a commit that has nothing else to write repair them.
  for (int mount = 0; mount < 20; ++mount) {
    auto again = open_disks(disks, environment, options);
    ASSERT_OK(again);
    ASSERT_TRUE(read_all(**again) == model);
    // A commit reads, and may meet the same copies once more.
    for (int i = 0; i < 3 && (*again)->dirty(); ++i) {
      const std::uint64_t generation = (*again)->generation();
      ASSERT_OK((*again)->commit());
      EXPECT_GT((*again)->generation(), generation);
    }
    EXPECT_FALSE((*again)->dirty());
  }
  device::MemoryDisk& other = *disks[1];
  ByteVector magic(8);
  for (std::uint64_t block = 0; block < info.blocks; ++block) {
    other.peek(block * 4096, magic);
    if (as_text(magic) == MDFS_NODE_MAGIC) other.zero(block * 4096, 512);
  }
  auto repaired = open_disks(disks, environment, options);
  ASSERT_OK(repaired);
  EXPECT_TRUE(read_all(**repaired) == model) << "some copy on the first disk was never repaired";
}

// There is one copy of a space page: what it says is not guessed. Its blocks count as in use until the checker has
// made the page anew from the tree.
TEST(DamagedSpacePageTest, ItsBlocksCountAsInUseUntilTheCheckerMakesThePageAnew) {
  SeededEnvironment environment(6);
  const Disks disks = make_disks(2, kDiskBytes);
  ASSERT_OK(format_disks(disks, environment));
  std::uint64_t free_before = 0;
  {
    auto store = open_disks(disks, environment);
    ASSERT_OK(store);
    ASSERT_OK(put(**store, 1));
    ASSERT_OK((*store)->commit());
    free_before = (*store)->disk_info(0).free_blocks;
  }
  ASSERT_GT(free_before, 100u);
  const format::DiskLayout layout = [&] {
    ByteVector sector(MDFS_SECTOR);
    disks[0]->peek(0, sector);
    const auto label = format::decode_label(sector);
    EXPECT_OK(label);
    return layout_of(*label);
  }();
  for (const std::uint32_t place : {0u, 1u}) {
    ByteVector noise = value_of(64, 77);
    disks[0]->poke(layout.space_offset({0, 0}, place) + 100, noise);
  }
  {
    auto store = open_disks(disks, environment);
    ASSERT_OK(store);
    // Nodes of the tree go to the other disk.
    for (std::uint64_t n = 2; n < 5; ++n) {
      ASSERT_OK(put(**store, n));
      ASSERT_OK((*store)->commit());
    }
    const auto run = (*store)->allocate({0, 4, 50, 0, true}, nullptr);
    ASSERT_OK(run);
    EXPECT_EQ(run->disk, 1u);
    (*store)->abandon(*run);
    EXPECT_EQ((*store)->disk_info(0).free_blocks, 0u);
  }
  ASSERT_OK(check_disks(disks, RepairMode::kAll, environment));
  auto store = open_disks(disks, environment);
  ASSERT_OK(store);
  EXPECT_GT((*store)->disk_info(0).free_blocks, free_before - 64);
}

}  // namespace
}  // namespace mdfs::store
