// Power cuts at every point of a workload: what was committed is there, what is there is a committed state.
// SPDX-License-Identifier: Apache-2.0
#include "crash_workload.h"
#include "tried.h"

namespace mdfs::store {
namespace {

class CrashTest : public testing::TestWithParam<std::size_t> {};

TEST_P(CrashTest, EveryCutLeavesACommittedStateNotOlderThanTheLastAcknowledged) {
  Workload workload(GetParam(), 5);
  workload.run(5, 3);
  ASSERT_FALSE(testing::Test::HasFailure());
  device::CutBounds bounds;
  bounds.each_one_up_to = 16;
  bounds.samples = 8;
  const std::vector<device::Event> events = workload.events();
  std::size_t count = 0;
  const std::size_t visited =
      device::for_each_cut(workload.bases(), events, bounds, [&](Disks disks, const device::Cut& cut) {
        const std::uint64_t acknowledged = acknowledged_at(events, cut);
        const bool checked = count++ % 8 == 0;  // the checker takes longer than all the rest
        if (checked) expect_structure_is_sound(disks, false, cut.text);
        expect_recovers(disks, workload.states(), acknowledged, cut.text);
        if (checked) expect_structure_is_sound(disks, true, cut.text);
        return !testing::Test::HasFailure();
      });
  EXPECT_GT(visited, 100u);
  test::tried("{} cuts of the store on {} disks", visited, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Disks, CrashTest, testing::Values(1, 2, 4));

// The recovery of a cut state is itself cut, at each of its own writes.
TEST(CrashDuringRecoveryTest, ACutWhileTheWinnerIsMadePresentLosesNothing) {
  Workload workload(3, 6);
  workload.run(2, 2);
  device::CutBounds bounds;
  bounds.all_subsets_up_to = 0;
  bounds.each_one_up_to = 4;
  bounds.samples = 2;
  bounds.torn = false;
  const std::vector<device::Event> events = workload.events();
  std::size_t inner = 0;
  device::for_each_cut(workload.bases(), events, bounds, [&](Disks disks, const device::Cut& cut) {
    const std::uint64_t acknowledged = acknowledged_at(events, cut);
    const Disks before = clone_disks(disks);
    device::RecorderLog log;
    std::vector<std::unique_ptr<device::Disk>> recorders;
    std::vector<const device::MemoryDisk*> bases;
    for (std::size_t i = 0; i < disks.size(); ++i) {
      recorders.push_back(std::make_unique<device::RecorderDisk>(*disks[i], log, static_cast<std::uint32_t>(i)));
      bases.push_back(before[i].get());
    }
    SeededEnvironment environment(3);
    {
      auto store = Store::open(std::move(recorders), {}, environment);
      EXPECT_OK(store);
    }
    inner += device::for_each_cut(bases, log.events(), bounds, [&](Disks twice, const device::Cut& second) {
      expect_recovers(twice, workload.states(), acknowledged, cut.text + ", then " + second.text);
      return !testing::Test::HasFailure();
    });
    return !testing::Test::HasFailure();
  });
  EXPECT_GT(inner, 20u);
  test::tried("{} second cuts during recovery", inner);
}

// The daemon is killed, its disks stay powered; the next one mounts what lies in their caches, and the power is cut
// while it recovers or works.
TEST_P(CrashTest, ACutAfterAKillAndAMountLosesNothing) {
  Workload workload(GetParam(), 7);
  workload.run(3, 2);
  ASSERT_FALSE(testing::Test::HasFailure());
  device::CutBounds bounds;
  bounds.all_subsets_up_to = 3;
  bounds.each_one_up_to = 6;
  bounds.samples = 3;
  bounds.torn = false;
  const std::vector<device::Event> events = workload.events();
  std::size_t cuts = 0;
  const std::size_t kills = device::for_each_kill(workload.bases(), events, bounds, [&](device::Kill kill) {
    const std::uint64_t acknowledged = acknowledged_before(events, kill.position);
    const std::size_t begin = kill.in_cache.size();
    device::RecorderLog log(std::move(kill.in_cache));
    std::vector<std::unique_ptr<device::Disk>> recorders;
    std::vector<const device::MemoryDisk*> bases;
    for (std::size_t i = 0; i < kill.seen.size(); ++i) {
      recorders.push_back(std::make_unique<device::RecorderDisk>(*kill.seen[i], log, static_cast<std::uint32_t>(i)));
      bases.push_back(kill.durable[i].get());
    }
    SeededEnvironment environment(3);
    std::vector<Model> states(workload.states().begin(), workload.states().end());
    {
      auto store = Store::open(std::move(recorders), {}, environment);
      EXPECT_OK(store);
      if (!store.ok()) return false;
      // One write of its own, to blocks that the killed daemon may have used.
      Model after = read_all(**store);
      after[item_key(9)] = value_of(500, 3);
      EXPECT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
        transaction.put(item_key(9), value_of(500, 3));
        return {};
      }));
      states.push_back(std::move(after));
      EXPECT_OK((*store)->commit());
    }
    device::CutBounds second = bounds;
    second.from = begin;
    cuts += device::for_each_cut(bases, log.events(), second, [&](Disks disks, const device::Cut& cut) {
      expect_recovers(disks, states, acknowledged, "killed at " + kill.text + ", then " + cut.text);
      return !testing::Test::HasFailure();
    });
    return !testing::Test::HasFailure();
  });
  EXPECT_GT(kills, 20u);
  test::tried("{} cuts after {} kills on {} disks", cuts, kills, GetParam());
}

}  // namespace
}  // namespace mdfs::store
