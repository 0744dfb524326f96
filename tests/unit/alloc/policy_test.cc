// What holds for every row of the table of allocation policies.
// SPDX-License-Identifier: Apache-2.0
#include "alloc/policy.h"

#include <gtest/gtest.h>

#include <set>

#include "alloc/allocator.h"
#include "made_map.h"

namespace mdfs::alloc {
namespace {

constexpr std::uint64_t kDiskBlocks = 1u << 20;  // 4 GiB, 32 bitmap pages

class EveryPolicyTest : public ::testing::TestWithParam<AllocationPolicy> {
 protected:
  EveryPolicyTest() {
    std::vector<std::unique_ptr<SpaceMap>> maps;
    maps.push_back(make_map(kDiskBlocks));
    allocator_.emplace(std::move(maps), 4096, 5);
  }
  Answer allocate(std::uint64_t owner, std::uint32_t blocks) {
    return allocator_->allocate_data(0, blocks, owner, 0, GetParam());
  }
  std::optional<Allocator> allocator_;
};

TEST_P(EveryPolicyTest, AGroupBeginsInTheDataOfTheDisk) {
  const auto map = make_map(kDiskBlocks);
  SplitMix random(3);
  const BlockRange data = map->data_range();
  for (const std::uint64_t near : {std::uint64_t{0}, data.begin + 77, kDiskBlocks * 2})
    for (const std::uint64_t last : {std::uint64_t{0}, data.begin + 7777, data.end}) {
      const std::uint64_t block = info(GetParam()).begin({*map, 1024, near, last, random});
      EXPECT_GE(block, data.begin);
      EXPECT_LT(block, data.end);
    }
}

TEST_P(EveryPolicyTest, TheChoiceIsTheSameForTheSameSeedAndDisk) {
  const auto map = make_map(kDiskBlocks);
  SplitMix left(11), right(11);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(info(GetParam()).begin({*map, 1024, 0, 0, left}), info(GetParam()).begin({*map, 1024, 0, 0, right}));
}

TEST_P(EveryPolicyTest, BlocksOfOneObjectLieTogetherBesideThoseOfOthers) {
  for (std::uint64_t owner = 16; owner < 24; ++owner) ASSERT_EQ(allocate(owner, 64).kind, Search::Kind::kFound);
  for (std::uint64_t owner = 16; owner < 24; ++owner) {
    const Answer first = allocate(owner, 64);
    const Answer second = allocate(owner, 64);
    ASSERT_EQ(second.kind, Search::Kind::kFound);
    EXPECT_EQ(second.run.block, first.run.block + 64) << owner;
  }
}

TEST_P(EveryPolicyTest, TheDiskIsFilledToItsLastBlockAndNoBlockIsGivenTwice) {
  const std::uint64_t free = allocator_->data_free();
  std::uint64_t taken = 0;
  std::set<std::uint64_t> begins;
  for (std::uint64_t i = 0; allocator_->data_free() >= 256; ++i) {
    const Answer answer = allocate(16 + i % 19, 256);
    if (answer.kind != Search::Kind::kFound) break;
    EXPECT_TRUE(begins.insert(answer.run.block).second);
    taken += 256;
  }
  for (Answer one; (one = allocate(16, 1)).kind == Search::Kind::kFound;) ++taken;
  EXPECT_EQ(taken, free);
  EXPECT_EQ(allocator_->data_free(), 0u);
}

TEST_P(EveryPolicyTest, ItsNameIsReadBackWhereItIsOffered) {
  const PolicyInfo& row = info(GetParam());
  EXPECT_EQ(name(GetParam()), row.name);
  EXPECT_EQ(parse_policy(row.name).ok(), row.offered);
  if (row.offered) {
    EXPECT_EQ(*parse_policy(row.name), GetParam());
  }
  EXPECT_EQ(policy_names().find(row.name) != std::string::npos, row.offered);
  EXPECT_EQ(("," + policy_list() + ",").find("," + std::string(row.name) + ",") != std::string::npos, row.offered);
  EXPECT_FALSE(row.help.empty());
}

std::vector<AllocationPolicy> ids() {
  std::vector<AllocationPolicy> all;
  for (const PolicyInfo& row : policy_table()) all.push_back(row.id);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Table, EveryPolicyTest, ::testing::ValuesIn(ids()),
                         [](const auto& one) { return std::string(alloc::name(one.param)); });

TEST(PolicyTableTest, NamesDifferAndWhatIsInNoRowIsRefusedByName) {
  std::set<std::string_view> names;
  for (const PolicyInfo& row : policy_table()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
  EXPECT_EQ(parse_policy("last").error().where, "allocation policy 'last' is unknown: must be scatter, first or near");
}

}  // namespace
}  // namespace mdfs::alloc
