// Volumes whose structures claim what no sound volume has, under checksums that are right.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "check_disks.h"
#include "forge.h"
#include "format/fields.h"
#include "format/limits.h"
#include "tried.h"

namespace mdfs::store {
namespace {

class HostileTest : public testing::Test {
 protected:
  // Enough items for a tree of two levels, deleted again down to `kept`.
  void make(unsigned items, unsigned disks = 2) {
    disks_ = make_disks(disks, 8u << 20);
    ASSERT_OK(format_disks(disks_, environment_));
    auto store = open_disks(disks_, environment_);
    ASSERT_OK(store);
    ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      for (unsigned i = 0; i < items; ++i) transaction.put(item_key(i), value_of(900, i));
      return {};
    }));
    ASSERT_OK((*store)->commit());
    ASSERT_OK((*store)->finalize());
  }

  template <typename Number>
  void forge_slot(std::size_t offset, Number value) {
    test::Forge forge(disks_);
    store_le<Number>(forge.slot, offset, value);
    forge.put_back({}, disks_);
  }

  Result<CheckReport> check(RepairMode repair) { return check_disks(disks_, repair, environment_); }

  SeededEnvironment environment_{5};
  Disks disks_;
};

TEST_F(HostileTest, WhenEveryObjectNumberIsUsedNothingIsMadeAndAllElseGoesOn) {
  make(10);
  forge_slot(offsetof(mdfs_commit_slot, next_object), format::kMaxObject - 2);
  auto store = open_disks(disks_, environment_);
  ASSERT_OK(store);
  const auto make_one = [&] {
    return (*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      const std::uint64_t number = transaction.new_object();
      transaction.put({number, 1, 0}, value_of(8, 1));
      return {};
    });
  };
  ASSERT_OK(make_one());
  ASSERT_OK(make_one());
  for (int again = 0; again < 3; ++again) {
    const Status refused = make_one();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Errc::kNoSpace);
  }
  ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
    transaction.put(item_key(3), value_of(20, 3));
    return {};
  }));
  ASSERT_OK((*store)->commit());
  store->reset();
  ASSERT_OK(open_disks(disks_, environment_));
}

TEST_F(HostileTest, AVolumeWhoseGenerationsAreUsedUpIsReadOnlyAndSaysSo) {
  make(10);
  // The slots stay where they lie: a generation that uses the same place of the ring.
  test::Forge forge(disks_);
  const auto generation = MDFS_GET(forge.slot, 0, mdfs_commit_slot, generation);
  MDFS_PUT(forge.slot, 0, mdfs_commit_slot, generation, format::kMaxGeneration - 4 + generation % 4);
  forge.put_back({}, disks_);
  for (unsigned commits = 0; commits < 6; ++commits) {
    auto store = open_disks(disks_, environment_);
    ASSERT_OK(store);
    const Status put = (*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      transaction.put(item_key(3), value_of(20, commits));
      return {};
    });
    const bool last = (*store)->generation() == format::kMaxGeneration;
    EXPECT_EQ((*store)->read_only(), last);
    EXPECT_EQ(put.ok(), !last);
    if (last) {
      EXPECT_NE((*store)->read_only_reason().find("commit.generation"), std::string::npos);
      const auto repaired = check(RepairMode::kAll);
      EXPECT_OK(repaired);
      return;
    }
    ASSERT_OK((*store)->commit());
    ASSERT_OK((*store)->finalize());
  }
  FAIL() << "more commits than there are numbers";
}

// Counts that are wrong are put right by mdfsck; until then they stop at their bounds.
TEST_F(HostileTest, CountsThatAreTooSmallOrTooLargeStopAtTheirBounds) {
  constexpr std::size_t kNodes = offsetof(mdfs_commit_slot, roots) + offsetof(mdfs_root, nodes);
  for (const std::uint64_t count : {std::uint64_t{1}, format::kMaxNodes}) {
    make(400);
    forge_slot(kNodes, count);
    forge_slot(offsetof(mdfs_commit_slot, objects), std::uint64_t{0});
    for (const bool erase : {true, false}) {
      auto store = open_disks(disks_, environment_);
      ASSERT_OK(store);
      for (unsigned i = 0; i < 400; i += 20) {
        const Status changed = (*store)->transact(Purpose::kFreeing, [&](Transaction& transaction) -> Status {
          for (unsigned j = i; j < i + 20; ++j)
            if (erase)
              transaction.erase(item_key(j));
            else
              transaction.put(item_key(j), value_of(900, j));
          transaction.count_objects(-1);
          return {};
        });
        // A volume that seems to have no room may say so; nothing else.
        EXPECT_TRUE(changed.ok() || changed.error().code == Errc::kNoSpace) << changed.error().message();
      }
      const Status committed = (*store)->commit();
      EXPECT_TRUE(committed.ok() || committed.error().code == Errc::kNoSpace) << committed.error().message();
    }
    EXPECT_OK(check(RepairMode::kAll));
  }
}

TEST_F(HostileTest, MembersThatHaveChangedTooOftenDoNotChangeAgain) {
  make(10);
  test::Forge forge(disks_);
  MDFS_PUT(forge.slot, 0, mdfs_commit_slot, membership, format::kMaxMembership);
  forge.put_back({}, disks_);
  auto store = open_disks(disks_, environment_);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->set_weight(0, 3).error().code, Errc::kReadOnly);
  JoiningDisk joining;
  joining.disk = std::make_unique<device::MemoryDisk>("new", 8u << 20);
  std::vector<JoiningDisk> disks;
  disks.push_back(std::move(joining));
  EXPECT_EQ((*store)->add_disks(std::move(disks)).error().code, Errc::kReadOnly);
  ASSERT_OK((*store)->commit());
}

TEST_F(HostileTest, ADiskThatIsNotOfTheSizeThatTheCommitSaysIsRefused) {
  make(10);
  test::Forge forge(disks_);
  const std::size_t blocks = offsetof(mdfs_commit_slot, members) + offsetof(mdfs_member, blocks);
  const auto old = load_le<std::uint64_t>(forge.slot, blocks);
  // No change of its size that was cut leaves that: labels would lie on labels.
  store_le<std::uint64_t>(forge.slot, blocks, old - MDFS_LABEL_AREA / 4096);
  forge.put_back({}, disks_);
  auto store = open_disks(disks_, environment_);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Errc::kCorrupt);
  EXPECT_NE(store.error().message().find("label.disk-blocks"), std::string::npos) << store.error().message();
}

// The member table of a crafted disk names disks of 2^47 blocks that do not exist.
TEST_F(HostileTest, DisksThatAreNotThereTakeNoMemoryOfACheck) {
  make(10, 3);
  test::Forge forge(disks_);
  for (const std::size_t disk : {1u, 2u})
    store_le<std::uint64_t>(
        forge.slot, offsetof(mdfs_commit_slot, members) + disk * sizeof(mdfs_member) + offsetof(mdfs_member, blocks),
        std::uint64_t{1} << 47);
  forge.put_back({}, disks_);
  disks_.resize(1);
  const auto report = check(RepairMode::kAll);
  ASSERT_OK(report);
  EXPECT_EQ(report->passes, 1u);
  EXPECT_NE(report->exit_code(), 0);
}

// The first address of a child is that of its parent; each is read from its second copy.
TEST_F(HostileTest, NodesOfOnePathWithTheSameFirstAddressComeToAnEnd) {
  make(300);
  test::Forge forge(disks_);
  ASSERT_GE(forge.nodes[0].level, 1);
  std::vector<std::size_t> changed;
  for (std::size_t i = 1; i < forge.nodes.size(); ++i) {
    test::ForgedNode& node = forge.nodes[i];
    const format::Address shared = forge.nodes[0].places[0];
    node.places[0] = shared;
    store_le<std::uint64_t>(node.bytes, offsetof(mdfs_node_header, address), shared.packed());
    store_le<std::uint64_t>(forge.holder_of(node), forge.pointer_to(node) + offsetof(mdfs_pointer, address),
                            shared.packed());
    changed.push_back(i);
  }
  forge.put_back(changed, disks_);
  auto store = open_disks(disks_, environment_);
  ASSERT_OK(store);
  for (unsigned i = 0; i < 300; ++i) {
    const auto got = (*store)->get(item_key(i));
    ASSERT_OK(got);
    ASSERT_EQ(*got, std::optional(value_of(900, i)));
  }
  EXPECT_EQ(read_all(**store).size(), 300u);
  // It may be refused; it comes to an end and does not abort.
  unsigned done = 0;
  for (unsigned i = 0; i < 300; i += 7) {
    const Status put = (*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      transaction.put(item_key(i), value_of(900, i + 1));
      return {};
    });
    if (put.ok() && (*store)->commit().ok()) ++done;
  }
  test::tried("{} of 43 changes of a tree whose nodes share their first address took effect", done);
}

}  // namespace
}  // namespace mdfs::store
