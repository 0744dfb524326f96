// Disks that are out: they failed, commits continue without them, and no part of the volume continues beside another.
// SPDX-License-Identifier: Apache-2.0
#include "store/out_disks.h"

#include <algorithm>
#include <queue>
#include <set>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "check_disks.h"
#include "format/limits.h"
#include "store/commit.h"
#include "store/labels.h"
#include "store/majority.h"
#include "tried.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kOutDiskBytes = 8u << 20;

// ---- the rule

// A volume on a few disks, reduced to what the rule of majorities sees: for each disk the newest commit in which it
// took part, and for each commit the disks that count.
struct Quorum {
  std::vector<unsigned> newest;        // by disk
  std::vector<std::uint64_t> counted;  // by commit
  auto operator<=>(const Quorum&) const = default;

  // Commits that no disk holds any more are forgotten.
  void shorten() {
    const std::set<unsigned> held(newest.begin(), newest.end());
    std::vector<std::uint64_t> kept;
    std::vector<unsigned> number(counted.size());
    for (const unsigned commit : held) {
      number[commit] = static_cast<unsigned>(kept.size());
      kept.push_back(counted[commit]);
    }
    for (unsigned& commit : newest) commit = number[commit];
    counted = kept;
  }
  unsigned last() const { return static_cast<unsigned>(counted.size()) - 1; }
  // Of the disks of the set: the newest commit that they hold.
  unsigned winner(std::uint64_t set) const {
    unsigned found = 0;
    for (std::size_t i = 0; i < newest.size(); ++i)
      if ((set >> i & 1) != 0) found = std::max(found, newest[i]);
    return found;
  }
  std::uint64_t current(std::uint64_t set) const {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < newest.size(); ++i)
      if ((set >> i & 1) != 0 && newest[i] == winner(set)) bits |= std::uint64_t{1} << i;
    return bits;
  }
  Quorum after(std::uint64_t participants, std::uint64_t counts) const {
    Quorum next = *this;
    next.counted.push_back(counts);
    for (std::size_t i = 0; i < newest.size(); ++i)
      if ((participants >> i & 1) != 0) next.newest[i] = next.last();
    next.shorten();
    return next;
  }
};

// Every volume of up to five disks that mounts, commits and failures can lead to, with any disks absent at any time.
TEST(MajorityTest, NoSetOfDisksIsWritableUnlessItHoldsTheNewestCommit) {
  std::uint64_t states = 0, halves = 0;
  for (unsigned disks = 1; disks <= 5; ++disks) {
    const std::uint64_t all = (std::uint64_t{1} << disks) - 1;
    const Quorum made{std::vector<unsigned>(disks), {all}};
    std::set<Quorum> seen{made};
    std::queue<Quorum> next{{made}};
    const auto visit = [&](const Quorum& state) {
      if (seen.insert(state).second) next.push(state);
    };
    for (; !next.empty(); next.pop()) {
      const Quorum state = next.front();
      ++states;
      for (std::uint64_t given = 1; given <= all; ++given) {
        const std::uint64_t counted = state.counted[state.winner(given)];
        const std::uint64_t present = state.current(given) & counted;
        if (!is_majority(counted, present)) continue;
        ASSERT_EQ(state.winner(given), state.last()) << disks << " disks: a fork";
        visit(state.after(present, counted));
        for (std::uint64_t rest = 1; rest < present; ++rest) {
          if (!may_continue(counted, present, rest)) continue;
          if (!is_majority(counted, rest)) ++halves;
          visit(state.after(rest, counted & ~(present & ~rest)));
        }
      }
    }
  }
  EXPECT_GT(halves, 100u);
  test::tried("{} volumes of 1 to 5 disks; {} times half of the disks continue", states, halves);
}

TEST(MajorityTest, HalfOfTheDisksContinuesOnlyIfAllWerePresent) {
  EXPECT_TRUE(may_continue(0b11, 0b11, 0b01));
  EXPECT_TRUE(may_continue(0b1111, 0b1111, 0b1010));
  EXPECT_FALSE(may_continue(0b1111, 0b0111, 0b0011));
  EXPECT_TRUE(may_continue(0b1111, 0b0111, 0b0111));
  EXPECT_FALSE(may_continue(0b111, 0b111, 0b001));
  EXPECT_FALSE(may_continue(0b1, 0b1, 0));
  EXPECT_FALSE(may_continue(0b011, 0b111, 0b101)) << "a disk that does not count";
}

// A second disk fails the commit that marks the first one.
TEST(WithoutDisksTest, EveryDiskThatIsNewlyMarkedHasTheTimeOfTheCommit) {
  format::CommitSlot parent;
  parent.participants = 0b1111;
  parent.membership = 3;
  for (unsigned i = 0; i < 4; ++i) {
    format::Member& member = parent.members.emplace_back();
    member.uuid.octets[0] = static_cast<std::uint8_t>(1 + i);
    member.blocks = 100;
  }
  parent.space.resize(4);
  parent.states = format::member_states(parent, nullptr);
  format::CommitSlot slot = without_disks(parent, parent, 0b0001, {5, {}, 77});
  EXPECT_EQ(slot.participants, 0b1110u);
  EXPECT_EQ(slot.states[0].out_ns, 77u);
  slot = without_disks(slot, parent, 0b0100, {6, {}, 78});
  EXPECT_EQ(slot.participants, 0b1010u);
  EXPECT_TRUE(slot.members[0].is_out() && slot.members[2].is_out());
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(slot.states[i].out_ns, i % 2 == 0 ? 78u : 0u) << i;
  const format::CommitSlot next = without_disks(slot, slot, 0b1000, {7, {}, 79});
  EXPECT_EQ(next.states[0].out_ns, 78u) << "marked before";
  EXPECT_EQ(next.states[3].out_ns, 79u);
}

// ---- volumes

format::CommitSlot newest_on(device::Disk& disk) {
  format::CommitSlot newest;
  for (const format::CommitSlot& slot : read_labels(disk).slots)
    if (slot.generation > newest.generation || (slot.generation == newest.generation && slot.state > newest.state))
      newest = slot;
  return newest;
}

class OutDisksTest : public testing::Test {
 protected:
  void make_empty(std::size_t count) {
    disks_ = make_disks(count, kOutDiskBytes);
    ASSERT_OK(format_disks(disks_, environment_));
  }
  void make(std::size_t count) {
    make_empty(count);
    put(disks_, 1);
  }

  // The commit that a writer makes when these disks have failed.
  void mark_out(std::uint64_t failed) {
    const auto first = static_cast<std::size_t>(std::countr_one(failed));
    const format::CommitSlot parent = newest_on(*disks_[first]);
    SealedCommit sealed;
    sealed.slot = without_disks(parent, parent, failed, {parent.generation + 1, environment_.new_uuid(), 77});
    std::vector<Participant> participants;
    for (std::size_t i = 0; i < disks_.size(); ++i)
      if ((sealed.slot.participants >> i & 1) != 0)
        participants.push_back(
            {static_cast<std::uint16_t>(i), disks_[i].get(), layout_of(*read_labels(*disks_[i]).label)});
    ASSERT_OK(write_commit(sealed, participants, 4096));
  }

  void put(const Disks& disks, std::uint64_t value) {
    auto store = open_disks(disks, environment_);
    ASSERT_OK(store);
    ASSERT_FALSE((*store)->read_only()) << (*store)->read_only_reason();
    ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      for (std::uint64_t i = 0; i < 40; ++i) transaction.put({20 + i, 1, 0}, value_of(600, value));
      return {};
    }));
    ASSERT_OK((*store)->commit());
    ASSERT_OK((*store)->finalize());
  }

  // The value that all items have; 0: the volume cannot be read.
  std::uint64_t value(const Disks& disks, bool* read_only = nullptr) {
    auto store = open_disks(disks, environment_);
    EXPECT_OK(store);
    if (!store.ok()) return 0;
    if (read_only != nullptr) *read_only = (*store)->read_only();
    for (std::uint64_t value = 1; value < 20; ++value) {
      bool all = true;
      for (std::uint64_t i = 0; i < 40 && all; ++i) {
        const auto got = (*store)->get({20 + i, 1, 0});
        all = got.ok() && *got == std::optional(value_of(600, value));
      }
      if (all) return value;
    }
    return 0;
  }

  // Clones of these disks; the others are absent.
  Disks only(std::uint64_t bits) {
    Disks some(disks_.size());
    for (std::size_t i = 0; i < some.size(); ++i)
      if ((bits >> i & 1) != 0) some[i] = disks_[i]->clone();
    return some;
  }

  SeededEnvironment environment_{24};
  Disks disks_;
};

TEST_F(OutDisksTest, TheRestIsWritableWithTheDiskAndWithoutAndNeverWritesIt) {
  struct Case {
    std::size_t disks;
    std::uint64_t out;
  };
  for (const Case& one : {Case{2, 0b10}, Case{2, 0b01}, Case{3, 0b100}, Case{4, 0b1100}, Case{4, 0b0001}}) {
    make(one.disks);
    mark_out(one.out);
    const std::uint64_t all = (std::uint64_t{1} << one.disks) - 1;
    for (const bool attached : {true, false}) {
      Disks given = only(attached ? all : all & ~one.out);
      std::vector<std::uint64_t> before(one.disks);
      for (std::size_t i = 0; i < one.disks; ++i) before[i] = given[i] ? given[i]->digest() : 0;
      for (std::uint64_t n = 2; n < 9; ++n) put(given, n);
      EXPECT_EQ(value(given), 8u);
      auto store = open_disks(given, environment_);
      ASSERT_OK(store);
      for (unsigned i = 0; i < one.disks; ++i) {
        const bool out = (one.out >> i & 1) != 0;
        const DiskInfo info = (*store)->disk_info(i);
        EXPECT_EQ(info.is_out, out);
        EXPECT_EQ(info.state, !out ? DiskState::kHealthy : attached ? DiskState::kOut : DiskState::kMissing);
        EXPECT_EQ(info.out_ns, out ? 77 : 0);
        EXPECT_EQ(info.out_generation != 0, out);
        EXPECT_TRUE(!out || !attached || given[i]->digest() == before[i]) << "disk " << i << " was written";
      }
    }
  }
}

TEST_F(OutDisksTest, TheOtherHalfIsReadOnlyAndHasWhatWasAcknowledgedBefore) {
  for (const std::size_t disks : {2u, 4u}) {
    make(disks);
    const std::uint64_t all = (std::uint64_t{1} << disks) - 1;
    const std::uint64_t out = all & ~((std::uint64_t{1} << disks / 2) - 1);
    mark_out(out);
    bool read_only = false;
    EXPECT_EQ(value(only(out), &read_only), 1u);
    EXPECT_TRUE(read_only);
  }
}

TEST_F(OutDisksTest, ADiskThatIsOutDoesNotCountForTheMajority) {
  make(4);
  mark_out(0b1000);
  bool read_only = true;
  value(only(0b0011), &read_only);
  EXPECT_FALSE(read_only) << "two of three";
  value(only(0b1001), &read_only);
  EXPECT_TRUE(read_only) << "one of three, and the disk that is out";
  mark_out(0b0100);
  value(only(0b0001), &read_only);
  EXPECT_TRUE(read_only) << "one of two";
  value(only(0b1101), &read_only);
  EXPECT_TRUE(read_only) << "one of two, and two that are out";
}

TEST_F(OutDisksTest, BlocksAreAllocatedOnTheRestAlone) {
  make(3);
  mark_out(0b010);
  auto store = open_disks(disks_, environment_);
  ASSERT_OK(store);
  for (int i = 0; i < 20; ++i) {
    const auto run = (*store)->allocate({1, 4, 50, 0, true}, nullptr);
    ASSERT_OK(run);
    EXPECT_NE(run->disk, 1u);
  }
  AlignedBuffer buffer(4096);
  EXPECT_OK(device::read((*store)->disk(1), 0, buffer.bytes())) << "it is read where it answers";
  EXPECT_EQ(device::write((*store)->disk(1), 1u << 20, buffer.bytes()).error().code, Errc::kMissingDisk);
}

TEST_F(OutDisksTest, RemovingTheDiskClearsTheMark) {
  for (const std::uint64_t given : {0b111u, 0b101u}) {
    make(3);
    mark_out(0b010);
    const Disks some = only(given);
    {
      auto store = open_disks(some, environment_);
      ASSERT_OK(store);
      ASSERT_OK((*store)->set_draining(1, true, nullptr));
      move_all_nodes_off(**store, 1);
      ASSERT_OK((*store)->remove_disk(1));
      EXPECT_FALSE((*store)->disk_info(1).is_out);
    }
    Disks rest = clone_disks(some);
    rest[1].reset();
    EXPECT_EQ(newest_on(*rest[0]).members[1], format::Member::hole());
    EXPECT_EQ(value(rest), 1u);
    put(rest, 2);
  }
}

TEST_F(OutDisksTest, TheCheckerNamesTheDiskAndCallsNothingDamaged) {
  for (const std::uint64_t given : {0b111u, 0b101u}) {
    make_empty(3);
    mark_out(0b010);
    const Disks some = only(given);
    for (const RepairMode mode : {RepairMode::kNothing, RepairMode::kAll}) {
      const auto report = check_disks(some, mode, environment_);
      ASSERT_OK(report);
      EXPECT_EQ(report->exit_code(), 0);
      ASSERT_EQ(report->findings.size(), 1u);
      EXPECT_EQ(report->findings.front().id, FindingId::kDiskOut);
    }
    put(some, 2);
  }
}

TEST_F(OutDisksTest, ASlotInWhichADiskThatIsOutTakesPartIsRefused) {
  make(2);
  mark_out(0b10);
  format::CommitSlot slot = newest_on(*disks_[0]);
  AlignedBuffer bytes = encode_slot(slot);
  MDFS_CHECK(format::decode_commit_slot(bytes.bytes(), slot.volume_uuid).ok());
  store_le<std::uint64_t>(bytes.bytes(), offsetof(mdfs_commit_slot, participants), 0b11);
  store_le<std::uint32_t>(bytes.bytes(), offsetof(mdfs_commit_slot, crc32c), 0);
  store_le<std::uint32_t>(bytes.bytes(), offsetof(mdfs_commit_slot, crc32c), crc32c(bytes.bytes()));
  const auto refused = format::decode_commit_slot(bytes.bytes(), slot.volume_uuid);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("commit.participants"), std::string::npos);
}

// A cut in the middle of the commit that marks the disk: before a committed slot the disk counts, then it does not.
TEST_F(OutDisksTest, ACutBeforeTheCommittedSlotLeavesTheDiskAsItWas) {
  make(2);
  const Disks before = clone_disks(disks_);
  mark_out(0b10);
  const format::CommitSlot marked = newest_on(*disks_[0]);
  const auto layout = layout_of(*read_labels(*disks_[0]).label);
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i)
    disks_[0]->zero(layout.slot_offset(i, format::ring_slot(marked.generation, MDFS_SLOT_COMMITTED)), MDFS_SLOT_SIZE);
  auto store = open_disks(disks_, environment_);
  ASSERT_OK(store);
  EXPECT_EQ((*store)->disk_info(1).state, DiskState::kHealthy);
  EXPECT_FALSE((*store)->read_only());
}

}  // namespace
}  // namespace mdfs::store
