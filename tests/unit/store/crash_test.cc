// Power cuts at every point of a workload: what was committed is there, what is there is a committed state.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "base/aligned_buffer.h"
#include "device/recorder_disk.h"
#include "device/replay.h"
#include "store/check/check.h"
#include "store_fixture.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kDiskBytes = 4u << 20;
constexpr std::uint64_t kDataObject = 1000;

// A volume whose items also own data blocks, so that a block reused too early shows as wrong data.
class Workload {
 public:
  Workload(std::size_t disks, std::uint64_t seed)
      : environment_(seed), random_(seed), disks_(make_disks(disks, kDiskBytes)) {
    EXPECT_OK(format_disks(disks_, environment_));
    bases_ = clone_disks(disks_);
    std::vector<std::unique_ptr<device::Disk>> recorders;
    for (std::size_t i = 0; i < disks_.size(); ++i)
      recorders.push_back(std::make_unique<device::RecorderDisk>(*disks_[i], log_, static_cast<std::uint32_t>(i)));
    StoreOptions options;
    options.node_cache_bytes = 64u << 10;
    auto store = Store::open(std::move(recorders), options, environment_);
    EXPECT_OK(store);
    store_ = std::move(*store);
    states_.emplace_back();
  }

  void run(int commits, int transactions) {
    for (int i = 0; i < commits; ++i) {
      for (int j = 0; j < transactions; ++j) change();
      EXPECT_OK(store_->commit());
      log_.mark("committed", states_.size() - 1);
    }
    change();  // never committed
  }

  std::vector<device::Event> events() const { return log_.events(); }
  std::vector<const device::MemoryDisk*> bases() const {
    std::vector<const device::MemoryDisk*> bases;
    for (const auto& disk : bases_) bases.push_back(disk.get());
    return bases;
  }
  // State i is that after i transactions.
  const std::vector<Model>& states() const { return states_; }

 private:
  // A block of data on a disk, named by an item {disk, block, seed}.
  void add_data(Transaction& transaction, Model& after) {
    AllocationRequest request;
    request.disk = static_cast<std::uint16_t>(random_() % disks_.size());
    request.blocks = 1 + static_cast<std::uint32_t>(random_() % 3);
    request.owner = 16 + random_() % 3;
    const auto run = store_->allocate(request, nullptr);
    ASSERT_OK(run);
    const std::uint64_t seed = random_();
    AlignedBuffer data(run->blocks * 4096);
    const ByteVector bytes = value_of(data.size(), seed);
    std::copy(bytes.begin(), bytes.end(), data.data());
    ASSERT_OK(device::write(store_->disk(run->disk), run->block * 4096, data.bytes()));
    transaction.link(*run);
    ByteVector value(28);
    store_le<std::uint64_t>(value, 0, run->disk);
    store_le<std::uint64_t>(value, 8, run->block);
    store_le<std::uint32_t>(value, 16, run->blocks);
    store_le<std::uint64_t>(value, 20, seed);
    const Key key{kDataObject, 1, random_()};
    transaction.put(key, value);
    after[key] = value;
  }

  void drop_data(Transaction& transaction, Model& after) {
    const auto first = after.lower_bound({kDataObject, 0, 0});
    if (first == after.end()) return;
    const auto& value = first->second;
    transaction.unlink({static_cast<std::uint16_t>(load_le<std::uint64_t>(value, 0)), load_le<std::uint64_t>(value, 8),
                        load_le<std::uint32_t>(value, 16)});
    transaction.erase(first->first);
    after.erase(first);
  }

  void change() {
    Model after = states_.back();
    const auto change = [&](Transaction& transaction) -> Status {
      for (int i = 0; i < 6; ++i) {
        const Key key = item_key(random_() % 200);
        const ByteVector value = value_of(random_() % 700, random_());
        transaction.put(key, value);
        after[key] = value;
      }
      const Key gone = item_key(random_() % 200);
      transaction.erase(gone);
      after.erase(gone);
      add_data(transaction, after);
      if (random_() % 2 == 0) drop_data(transaction, after);
      return {};
    };
    ASSERT_OK(store_->transact(Purpose::kNormal, change));
    states_.push_back(std::move(after));
  }

  SeededEnvironment environment_;
  std::mt19937_64 random_;
  Disks disks_;
  Disks bases_;
  device::RecorderLog log_;
  std::unique_ptr<Store> store_;
  std::vector<Model> states_;
};

void expect_data_intact(Store& store, const Model& state, const std::string& text) {
  for (auto item = state.lower_bound({kDataObject, 0, 0}); item != state.end(); ++item) {
    const ByteVector& value = item->second;
    AlignedBuffer data(load_le<std::uint32_t>(value, 16) * 4096);
    device::Disk& disk = store.disk(static_cast<unsigned>(load_le<std::uint64_t>(value, 0)));
    ASSERT_OK(device::read(disk, load_le<std::uint64_t>(value, 8) * 4096, data.bytes()));
    const ByteVector expected = value_of(data.size(), load_le<std::uint64_t>(value, 20));
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), data.data())) << text;
  }
}

// The checker finds every copy of every node good and marked in use, and all rings and space pages as they must be.
// What it says of the items is of no interest here: they are no files.
void expect_structure_is_sound(const Disks& disks, bool recovered, const std::string& text) {
  SeededEnvironment environment(1);
  std::vector<std::unique_ptr<device::Disk>> borrowed;
  for (const auto& disk : disks) borrowed.push_back(std::make_unique<BorrowedDisk>(*disk));
  const auto report = check_volume(std::move(borrowed), {}, environment);
  ASSERT_OK(report);
  for (const Finding& finding : report->findings) {
    const FindingId id = finding.id;
    const bool structure = id == FindingId::kNodeCopyDamaged || id == FindingId::kNodeLost ||
                           id == FindingId::kNodeCount || id == FindingId::kNodeMisplaced ||
                           id == FindingId::kSpacePageDamaged || id == FindingId::kBlockMarkedFree ||
                           id == FindingId::kDiskStale ||
                           (recovered && (id == FindingId::kLabelDamaged || id == FindingId::kCommitSlotMissing));
    EXPECT_FALSE(structure) << text << ": " << info(finding.id).name << ": " << finding.where;
  }
}

// After a cut: a committed state, no older than the last one acknowledged, with its data; and the volume goes on.
void expect_recovers(const Disks& disks, const std::vector<Model>& states, std::uint64_t acknowledged,
                     const std::string& text) {
  SeededEnvironment environment(99);
  Model found;
  {
    auto store = open_disks(disks, environment);
    ASSERT_TRUE(store.ok()) << text << ": " << store.error().message();
    EXPECT_FALSE((*store)->read_only()) << text << ": " << (*store)->read_only_reason();
    found = read_all(**store);
    const auto state = std::find(states.begin() + static_cast<std::ptrdiff_t>(acknowledged), states.end(), found);
    ASSERT_TRUE(state != states.end()) << text << ": no state since " << acknowledged;
    expect_data_intact(**store, found, text);
    const auto put = [&](Transaction& transaction) -> Status {
      transaction.put(item_key(7), value_of(300, 1));
      return {};
    };
    ASSERT_OK((*store)->transact(Purpose::kNormal, put));
    ASSERT_OK((*store)->commit());
    found[item_key(7)] = value_of(300, 1);
  }
  auto again = open_disks(disks, environment);
  ASSERT_OK(again);
  ASSERT_TRUE(read_all(**again) == found) << text;
}

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
        std::uint64_t acknowledged = 0;
        for (std::size_t i = 0; i < cut.position; ++i)
          if (events[i].kind == device::EventKind::kMark) acknowledged = events[i].value;
        const bool checked = count++ % 8 == 0;  // the checker takes longer than all the rest
        if (checked) expect_structure_is_sound(disks, false, cut.text);
        expect_recovers(disks, workload.states(), acknowledged, cut.text);
        if (checked) expect_structure_is_sound(disks, true, cut.text);
        return !testing::Test::HasFailure();
      });
  EXPECT_GT(visited, 100u);
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
    std::uint64_t acknowledged = 0;
    for (std::size_t i = 0; i < cut.position; ++i)
      if (events[i].kind == device::EventKind::kMark) acknowledged = events[i].value;
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
}

}  // namespace
}  // namespace mdfs::store
