// Scatter, groups and the places of tree nodes.
// SPDX-License-Identifier: Apache-2.0
#include "alloc/allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "made_map.h"

namespace mdfs::alloc {
namespace {

using Kind = Search::Kind;

Allocator make_allocator(std::size_t disks, std::uint64_t blocks, std::uint64_t seed = 1) {
  std::vector<std::unique_ptr<SpaceMap>> maps;
  for (std::size_t i = 0; i < disks; ++i) maps.push_back(make_map(blocks));
  return {std::move(maps), 4096, seed};
}

Run must(const Answer& answer) {
  EXPECT_EQ(answer.kind, Kind::kFound);
  return answer.run;
}

// Contiguous ranges of these runs, in the order of the disk.
std::size_t ranges(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end());
  std::size_t count = 0;
  for (std::size_t i = 0; i < runs.size(); ++i)
    count += i == 0 || runs[i - 1].disk != runs[i].disk || runs[i - 1].block + runs[i - 1].blocks != runs[i].block;
  return count;
}

constexpr std::uint64_t kGiBBlocks = 262144;

TEST(AllocatorTest, OwnersThatWriteInTurnsKeepTheirBlocksTogether) {
  Allocator allocator = make_allocator(1, 4 * kGiBBlocks);
  std::map<std::uint64_t, std::vector<alloc::Run>> runs;
  // 8 owners, 200 extents of 24 blocks each: 18.75 MiB an owner.
  for (int i = 0; i < 200; ++i)
    for (std::uint64_t owner = 16; owner < 24; ++owner)
      runs[owner].push_back(must(allocator.allocate_data(0, 24, owner, 0)));
  for (const auto& [owner, list] : runs) EXPECT_LE(ranges(list), 8u) << owner;
}

TEST(AllocatorTest, GroupsOfDifferentOwnersAreScatteredOverTheWholeDisk) {
  Allocator allocator = make_allocator(1, 4 * kGiBBlocks);
  std::set<std::uint64_t> eighths;
  for (std::uint64_t owner = 16; owner < 80; ++owner)
    eighths.insert(must(allocator.allocate_data(0, 64, owner, 0)).block * 8 / (4 * kGiBBlocks));
  EXPECT_EQ(eighths.size(), 8u);
}

// Extents of 64 blocks for owner after owner, until a part of the disk is full; where each began.
std::vector<std::uint64_t> fill(Allocator& allocator, Allocator::Policy policy, std::uint64_t owners) {
  std::vector<std::uint64_t> begins;
  for (std::uint64_t owner = 16; owner < 16 + owners; ++owner)
    for (int i = 0; i < 16; ++i) {
      const alloc::Run run = must(allocator.allocate_data(0, 64, owner, 0, policy));
      if (i == 0) begins.push_back(run.block);
    }
  return begins;
}

// How often a group begins elsewhere than behind the one before it.
std::size_t jumps(const std::vector<std::uint64_t>& begins) {
  std::size_t count = 0;
  for (std::size_t i = 1; i < begins.size(); ++i) count += begins[i] != begins[i - 1] + 1024;
  return count;
}

TEST(AllocatorTest, GroupsByFirstFillTheDiskFromItsBeginning) {
  Allocator allocator = make_allocator(1, 4 * kGiBBlocks);
  const std::uint64_t begin = allocator.map(0)->data_range().begin;
  const std::vector<std::uint64_t> begins = fill(allocator, Allocator::Policy::kFirst, 500);
  // 2 GiB in 500 groups of 4 MiB, one behind the other but where a bitmap page ends.
  EXPECT_EQ(begins[0], begin);
  EXPECT_LE(jumps(begins), 500 * 1024 / MDFS_BITS_PER_PAGE + 1);
  EXPECT_LT(*std::max_element(begins.begin(), begins.end()), begin + 520 * 1024);
  // What becomes free in front is taken first.
  for (std::uint64_t owner = 16; owner < 516; ++owner) allocator.release_preallocations(owner);
  allocator.map(0)->release(begins[7], 1024);
  EXPECT_EQ(must(allocator.allocate_data(0, 64, 5000, 0, Allocator::Policy::kFirst)).block, begins[7]);
}

TEST(AllocatorTest, GroupsByNearLieBehindWhatWasStoredLastOrBehindTheirOwnObject) {
  Allocator allocator = make_allocator(1, 4 * kGiBBlocks);
  (void)must(allocator.allocate_data(0, 64, 16, 0));
  const std::vector<std::uint64_t> begins = fill(allocator, Allocator::Policy::kNear, 200);
  EXPECT_LE(jumps(begins), 200 * 1024 / MDFS_BITS_PER_PAGE + 2);  // ends of bitmap pages, and of the disk
  for (std::uint64_t owner = 16; owner < 216; ++owner) allocator.release_preallocations(owner);
  const BlockRange data = allocator.map(0)->data_range();
  const Search room = allocator.map(0)->find({data.begin + data.size() / 2, data.end}, 2048, nullptr);
  ASSERT_EQ(room.kind, Kind::kFound);
  const std::uint64_t own = room.value;
  allocator.map(0)->take(own, 64);  // where the object would go on
  EXPECT_EQ(must(allocator.allocate_data(0, 64, 9000, own, Allocator::Policy::kNear)).block, own + 64);
}

TEST(AllocatorTest, ObjectsWhoseSizeIsKnownFillADiskWithoutGapsBetweenThem) {
  for (const Allocator::Policy policy :
       {Allocator::Policy::kScatter, Allocator::Policy::kFirst, Allocator::Policy::kNear}) {
    Allocator allocator = make_allocator(1, kGiBBlocks);
    constexpr std::uint32_t kBlocks = 768;  // three quarters of a preallocation
    const auto request_of = [&](std::uint64_t owner, std::uint32_t blocks, std::uint32_t expected) {
      DataRequest request;
      request.blocks = blocks;
      request.owner = owner;
      request.expected_blocks = expected;
      request.policy = policy;
      return request;
    };
    std::uint64_t owner = 16;
    for (; allocator.data_free() > allocator.map(0)->data_range().size() / 10; ++owner) {
      const alloc::Run first = must(allocator.allocate_data(request_of(owner, kBlocks / 4, kBlocks)));
      for (std::uint32_t part = 1; part < 4; ++part) {
        const alloc::Run next =
            must(allocator.allocate_data(request_of(owner, kBlocks / 4, kBlocks - part * kBlocks / 4)));
        ASSERT_EQ(next.block, first.block + part * kBlocks / 4) << "policy " << name(policy) << ", object " << owner;
      }
    }
  }
}

TEST(AllocatorTest, WhatReplacesBlocksStaysNearThemAndOutOfThePreallocationsOfOthers) {
  Allocator allocator = make_allocator(1, kGiBBlocks);
  const alloc::Run own = must(allocator.allocate_data(0, 600, 16, 0));
  const alloc::Run other = must(allocator.allocate_data(0, 600, 17, 0, Allocator::Policy::kNear));
  ASSERT_EQ(other.block, own.block + 1024) << "the next preallocation";
  DataRequest request;
  request.owner = 16;
  request.blocks = 40;
  request.around_block = own.block + 100;
  EXPECT_EQ(must(allocator.allocate_data(request)).block, own.block + 600) << "in the own preallocation";
  request.blocks = 500;
  const std::uint64_t place = must(allocator.allocate_data(request)).block;
  EXPECT_TRUE(place + 500 <= other.block || place >= other.block + 1024) << "in the other's preallocation";
  EXPECT_LT(place, own.block + 4096);
  EXPECT_GT(place + 4096, own.block);
  request.blocks = 30;
  request.near_block = other.block + 700;
  request.around_block = 0;
  EXPECT_NE(must(allocator.allocate_data(request)).block, other.block + 700) << "free, but preallocated for another";
}

TEST(AllocatorTest, ObjectsOfEveryPolicyShareTheDiskWithoutLosingABlock) {
  Allocator allocator = make_allocator(1, 4096);
  std::set<std::uint64_t> seen;
  constexpr Allocator::Policy kPolicies[] = {Allocator::Policy::kDefault, Allocator::Policy::kScatter,
                                             Allocator::Policy::kFirst, Allocator::Policy::kNear};
  for (std::uint64_t i = 0;; ++i) {
    const Answer answer =
        allocator.allocate_data(0, static_cast<std::uint32_t>(1 + i % 5), 16 + i % 37, 0, kPolicies[i % 4]);
    if (answer.kind != Kind::kFound) break;
    for (std::uint64_t block = 0; block < answer.run.blocks; ++block)
      EXPECT_TRUE(seen.insert(answer.run.block + block).second);
  }
  for (Answer one; (one = allocator.allocate_data(0, 1, 16, 0, Allocator::Policy::kNear)).kind == Kind::kFound;)
    EXPECT_TRUE(seen.insert(one.run.block).second);
  EXPECT_EQ(seen.size(), allocator.map(0)->data_range().size());
}

TEST(AllocatorTest, SmallObjectsShareOneGroup) {
  Allocator allocator = make_allocator(1, 4 * kGiBBlocks);
  std::vector<alloc::Run> runs;
  for (std::uint64_t owner = 16; owner < 516; ++owner) runs.push_back(must(allocator.allocate_data(0, 1, owner, 0)));
  EXPECT_EQ(ranges(runs), 1u);
}

TEST(AllocatorTest, ContinuesExactlyWhereItIsAskedToIfThatIsFree) {
  Allocator allocator = make_allocator(1, kGiBBlocks);
  const alloc::Run first = must(allocator.allocate_data(0, 8, 16, 0));
  const std::uint64_t near = first.block + 5000;
  EXPECT_EQ(must(allocator.allocate_data(0, 8, 16, near)).block, near);
  EXPECT_NE(must(allocator.allocate_data(0, 8, 16, near)).block, near);
}

TEST(AllocatorTest, NoBlockIsGivenTwiceAndAllAreGivenBeforeItSaysFull) {
  Allocator allocator = make_allocator(2, 2048);
  std::set<std::pair<unsigned, std::uint64_t>> seen;
  std::uint64_t data = 0;
  for (std::uint16_t disk = 0; disk < 2; ++disk) {
    data += allocator.map(disk)->data_range().size();
    for (std::uint64_t owner = 16;; ++owner) {
      const Answer answer = allocator.allocate_data(disk, static_cast<std::uint32_t>(1 + owner % 3), owner, 0);
      if (answer.kind != Kind::kFound) break;
      for (std::uint64_t i = 0; i < answer.run.blocks; ++i) {
        EXPECT_TRUE(seen.emplace(disk, answer.run.block + i).second);
        EXPECT_GE(answer.run.block, allocator.map(disk)->data_range().begin) << "data in the metadata region";
      }
    }
    for (;;) {
      const Answer answer = allocator.allocate_data(disk, 1, 16, 0);
      if (answer.kind != Kind::kFound) break;
      EXPECT_TRUE(seen.emplace(disk, answer.run.block).second);
    }
  }
  EXPECT_EQ(seen.size(), data);
}

TEST(AllocatorTest, TheTableOfPreallocationsIsBounded) {
  Allocator allocator = make_allocator(1, 4 * kGiBBlocks);
  for (std::uint64_t owner = 16; owner < 16 + 3 * Allocator::kMaxPreallocations; ++owner)
    must(allocator.allocate_data(0, 20, owner, 0));
  EXPECT_LE(allocator.preallocations(), Allocator::kMaxPreallocations);
}

TEST(AllocatorTest, NodesComeFromTheMetadataRegionAndTwoOnOneDiskFromItsTwoHalves) {
  Allocator allocator = make_allocator(1, kGiBBlocks);
  const BlockRange region = allocator.map(0)->metadata_range();
  const alloc::Run low = must(allocator.allocate_node(0, 4, 0, false));
  const alloc::Run high = must(allocator.allocate_node(0, 4, 1, false));
  EXPECT_GE(low.block, region.begin);
  EXPECT_LT(high.block, region.end);
  EXPECT_GE(high.block - low.block, region.size() / 2 - 4);
  std::uint64_t nodes = 2;
  while (allocator.allocate_node(0, 4, 0, false).kind == Kind::kFound) ++nodes;
  EXPECT_EQ(nodes, region.size() / 4);
  EXPECT_GE(must(allocator.allocate_node(0, 4, 0, true)).block, region.end);
}

TEST(AllocatorTest, TheSameSeedAndCallsGiveTheSamePlaces) {
  Allocator one = make_allocator(1, 4 * kGiBBlocks, 5);
  Allocator two = make_allocator(1, 4 * kGiBBlocks, 5);
  Allocator other = make_allocator(1, 4 * kGiBBlocks, 6);
  bool differs = false;
  for (std::uint64_t owner = 16; owner < 40; ++owner) {
    const alloc::Run run = must(one.allocate_data(0, 64, owner, 0));
    EXPECT_EQ(run, must(two.allocate_data(0, 64, owner, 0)));
    differs |= run != must(other.allocate_data(0, 64, owner, 0));
  }
  EXPECT_TRUE(differs);
}

// Holes of 10, 20, .. 100 blocks on an otherwise full disk; where each one begins.
std::map<std::uint64_t, std::uint64_t> make_holes(Allocator& allocator) {
  SpaceMap& map = *allocator.map(0);
  std::map<std::uint64_t, std::uint64_t> holes;
  std::uint64_t at = map.data_range().begin;
  for (const std::uint64_t length : {30, 10, 100, 20, 60, 90, 40, 80, 50, 70}) {
    holes[length] = at + 5;
    map.take(at, 5);
    at += 5 + length;
  }
  while (at < map.data_range().end) {
    const std::uint64_t end = std::min(map.data_range().end, (at / MDFS_BITS_PER_PAGE + 1) * MDFS_BITS_PER_PAGE);
    map.take(at, end - at);
    at = end;
  }
  return holes;
}

TEST(AllocatorTest, WhereNoWholePreallocationFitsNewObjectsGetTheLargestHole) {
  Allocator allocator = make_allocator(1, kGiBBlocks);
  const auto holes = make_holes(allocator);
  EXPECT_EQ(must(allocator.allocate_data(0, 20, 16, 0)).block, holes.at(100));
  EXPECT_EQ(must(allocator.allocate_data(0, 20, 17, 0)).block, holes.at(90));
  EXPECT_EQ(must(allocator.allocate_data(0, 20, 16, 0)).block, holes.at(100) + 20);
}

TEST(AllocatorTest, UnusedPreallocationsDoNotKeepNewObjectsOut) {
  // Room for 64 preallocations of 1 MiB, each for an object that used a little of it.
  Allocator allocator = make_allocator(1, 16384);
  for (std::uint64_t owner = 16; owner < 200; ++owner) (void)allocator.allocate_data(0, 17, owner, 0);
  std::vector<alloc::Run> runs;
  for (int i = 0; i < 8; ++i) runs.push_back(must(allocator.allocate_data(0, 24, 999, 0)));
  EXPECT_LE(ranges(runs), 2u);
}

TEST(AllocatorTest, PreallocationsOfADeletedObjectAreAvailableToAll) {
  for (const bool deleted : {false, true}) {
    Allocator allocator = make_allocator(1, 16384);
    SpaceMap& map = *allocator.map(0);
    const alloc::Run first = must(allocator.allocate_data({.blocks = 100, .owner = 16, .expected_blocks = 300}));
    // Of all the rest, as many blocks are free farther back as are preallocated for this object.
    const std::uint64_t hole = map.data_range().end - 300;
    ASSERT_LT(first.block + 300, hole);
    for (std::uint64_t block = map.data_range().begin; block < map.data_range().end; ++block)
      if ((block < first.block || block >= first.block + 300) && (block < hole || block >= hole + 200))
        map.take(block, 1);
    if (deleted) allocator.release_preallocations(16);
    const alloc::Run next = must(allocator.allocate_data({.blocks = 200, .owner = 17, .expected_blocks = 200}));
    EXPECT_EQ(next.block, deleted ? first.block + 100 : hole);
  }
}

TEST(AllocatorTest, WhatAnObjectHasFreedOfItsPreallocationIsAvailableToAll) {
  Allocator allocator = make_allocator(1, 16384);
  const DataRequest request{.disk = 0, .blocks = 300, .owner = 16, .expected_blocks = 300};
  const alloc::Run first = must(allocator.allocate_data(request));
  SpaceMap& map = *allocator.map(0);
  // All else is in use.
  for (std::uint64_t block = map.data_range().begin; block < map.data_range().end; ++block)
    if (map.is_free(block, 1)) map.take(block, 1);
  map.release(first.block, first.blocks);
  EXPECT_EQ(must(allocator.allocate_data(0, 300, 17, 0)).block, first.block);
}

// All blocks but every tenth.
void take_most(SpaceMap& map) {
  for (std::uint64_t block = map.data_range().begin; block < map.data_range().end; ++block)
    if (block % 10 != 0) map.take(block, 1);
}

TEST(AllocatorTest, NothingNewComesIntoAFrozenRangeAsLongAsThereIsOtherRoom) {
  Allocator allocator = make_allocator(1, 16384);
  take_most(*allocator.map(0));
  const alloc::Run range = must(allocator.freeze_range(0, 1000, {}));
  const std::uint64_t free_inside = 100;
  const auto inside = [&](const alloc::Run& run) {
    return run.block >= range.block && run.block < range.block + range.blocks;
  };
  const std::uint64_t others = allocator.map(0)->data_free() - free_inside;
  for (std::uint64_t i = 0; i < others; ++i) {
    const DataRequest request{.blocks = 1, .owner = 16 + i % 7, .fits = i % 2 == 0};
    ASSERT_FALSE(inside(must(allocator.allocate_data(request)))) << i;
  }
  // What is moved stays outside; what is written goes where there is room.
  EXPECT_EQ(allocator.allocate_data({.blocks = 1, .owner = 16, .fits = true}).kind, Kind::kNone);
  EXPECT_TRUE(inside(must(allocator.allocate_data(0, 1, 16, 0))));
}

TEST(AllocatorTest, AFrozenRangeIsFilledByAddressAndAvailableToAllWhenThawed) {
  Allocator allocator = make_allocator(1, 16384);
  SpaceMap& map = *allocator.map(0);
  take_most(map);
  const alloc::Run range = must(allocator.freeze_range(0, 1000, {}));
  const DataRequest whole{.blocks = 1000, .owner = 16, .at_block = range.block};
  EXPECT_EQ(allocator.allocate_data(whole).kind, Kind::kNone);
  for (std::uint64_t block = range.block; block < range.block + 1000; ++block)
    if (!map.is_free(block, 1)) map.release(block, 1);
  EXPECT_EQ(must(allocator.allocate_data(whole)).block, range.block);
  map.release(range.block, 1000);
  EXPECT_EQ(allocator.allocate_data({.blocks = 900, .owner = 16, .fits = true}).kind, Kind::kNone);
  allocator.thaw_range(range);
  EXPECT_EQ(must(allocator.allocate_data({.blocks = 900, .owner = 16, .fits = true})).block, range.block);
}

TEST(AllocatorTest, FrozenRangesDoNotOverlapAndLeaveHalfOfTheFreeBlocksToOthers) {
  Allocator allocator = make_allocator(1, 16384);
  take_most(*allocator.map(0));
  const std::uint64_t free = allocator.map(0)->data_free();
  const BlockRange data = allocator.map(0)->data_range();
  const AvoidedRanges keep = {{data.begin + 2000, data.begin + 5000}};
  std::vector<alloc::Run> ranges;
  std::uint64_t closed_free = 0;
  while (true) {
    const Answer answer = allocator.freeze_range(0, 500, keep);
    if (answer.kind != Kind::kFound) break;
    for (const alloc::Run& other : ranges)
      EXPECT_TRUE(answer.run.block + 500 <= other.block || other.block + 500 <= answer.run.block);
    EXPECT_TRUE(answer.run.block + 500 <= data.begin + 2000 || answer.run.block >= data.begin + 5000);
    ranges.push_back(answer.run);
    closed_free += 50;
  }
  EXPECT_LE(2 * closed_free, free);
  EXPECT_GT(2 * closed_free, free - 200);
  for (const alloc::Run& range : ranges) allocator.thaw_range(range);
  EXPECT_EQ(must(allocator.freeze_range(0, 500, keep)).block, ranges.front().block);
}

TEST(AllocatorTest, AReservedRunIsGivenToOthersLast) {
  Allocator allocator = make_allocator(1, 16384);
  SpaceMap& map = *allocator.map(0);
  const alloc::Run place = must(allocator.allocate_data(0, 24, 16, 0));
  allocator.release_preallocations(16);
  ASSERT_TRUE(allocator.reserve_run(place));
  map.release(place.block, place.blocks);
  const auto inside = [&](const alloc::Run& run) {
    return run.block < place.block + place.blocks && place.block < run.block + run.blocks;
  };
  const std::uint64_t others = map.data_free() - place.blocks;
  for (std::uint64_t i = 0; i < others; ++i) {
    const DataRequest request{
        .blocks = 1, .owner = 16 + i % 7, .around_block = i % 3 == 0 ? place.block : 0, .fits = i % 2 == 0};
    ASSERT_FALSE(inside(must(allocator.allocate_data(request)))) << i << " of " << others;
  }
  EXPECT_EQ(map.data_free(), place.blocks);
  EXPECT_TRUE(inside(must(allocator.allocate_data(0, 1, 16, 0)))) << "there is no other";
}

TEST(AllocatorTest, AReservedRunIsGivenByAddress) {
  Allocator allocator = make_allocator(1, 16384);
  SpaceMap& map = *allocator.map(0);
  const alloc::Run place = must(allocator.allocate_data(0, 24, 16, 0));
  const DataRequest again{.blocks = 20, .owner = 16, .at_block = place.block};
  ASSERT_TRUE(allocator.reserve_run(place));
  EXPECT_FALSE(allocator.reserve_run(place)) << "it is reserved already";
  EXPECT_EQ(allocator.allocate_data(again).kind, Kind::kNone) << "it is in use";
  map.release(place.block, place.blocks);
  EXPECT_EQ(must(allocator.allocate_data(again)).block, place.block);
  map.release(place.block, 20);
  allocator.release_run(place);
  allocator.release_run(place);
  EXPECT_TRUE(allocator.reserve_run({0, place.block + 4, 4})) << "nothing of it is reserved any more";
}

TEST(AllocatorTest, HalfOfWhatIsFreeIsReservedAndNoMore) {
  Allocator allocator = make_allocator(1, 16384);
  SpaceMap& map = *allocator.map(0);
  for (std::uint64_t block = map.data_range().begin; block < map.data_range().end; ++block)
    if (block % 2 == 0) map.take(block, 1);
  std::uint64_t kept = 0;
  for (std::uint64_t block = map.data_range().begin; block < map.data_range().end; ++block)
    if (block % 2 == 0 && allocator.reserve_run({0, block, 1})) ++kept;
  EXPECT_EQ(kept, map.data_free() / 2);
}

TEST(AllocatorTest, AFrozenRangeAndAnAvoidedDiskReleaseReservedRuns) {
  Allocator allocator = make_allocator(2, 16384);
  take_most(*allocator.map(0));
  std::vector<alloc::Run> places;
  const BlockRange data = allocator.map(0)->data_range();
  for (std::uint64_t block = data.begin; block < data.end; block += 40) {
    const alloc::Run place{0, block, 1};
    if (allocator.reserve_run(place)) places.push_back(place);
  }
  const alloc::Run range = must(allocator.freeze_range(0, 1000, {}));
  const auto inside = [&](const alloc::Run& run) {
    return run.block >= range.block && run.block < range.block + range.blocks;
  };
  ASSERT_TRUE(std::any_of(places.begin(), places.end(), inside));
  allocator.thaw_range(range);
  for (const alloc::Run& place : places) EXPECT_EQ(allocator.reserve_run(place), inside(place)) << place.block;
  allocator.set_avoided(0, true);
  EXPECT_FALSE(allocator.reserve_run(places.front())) << "it is not given out at all";
  allocator.set_avoided(0, false);
  EXPECT_TRUE(allocator.reserve_run(places.front()));
}

}  // namespace
}  // namespace mdfs::alloc
