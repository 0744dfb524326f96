// The bitmaps against a plain array of states.
// SPDX-License-Identifier: Apache-2.0
#include "alloc/space_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "alloc/bits.h"
#include "base/aligned_buffer.h"
#include "format/space.h"

namespace mdfs::alloc {
namespace {

using Kind = Search::Kind;

SpaceMap make_map(const format::DiskLayout& layout, bool load) {
  std::vector<std::uint64_t> free;
  std::vector<AlignedBuffer> pages;
  for (std::uint64_t page = 0; page < layout.space_pages(0); ++page) {
    pages.emplace_back(MDFS_SECTOR);
    format::make_empty_bitmap(layout, page, pages.back().bytes());
    free.push_back(format::bitmap_free(pages.back().bytes()));
  }
  SpaceMap map(layout, 1024, free);
  for (std::uint64_t page = 0; load && page < pages.size(); ++page) map.install(page, pages[page].bytes());
  return map;
}

TEST(BitsTest, RunsOfBitsEqualBitByBit) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> words(8);
  std::vector<bool> plain(512);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t first = random() % 513;
    const std::uint64_t end = first + random() % (513 - first);
    const bool value = random() % 2 == 0;
    if (value)
      set_bits(words, first, end);
    else
      clear_bits(words, first, end);
    std::fill(plain.begin() + static_cast<std::ptrdiff_t>(first), plain.begin() + static_cast<std::ptrdiff_t>(end),
              value);
    const std::uint64_t from = random() % 513;
    const std::uint64_t to = from + random() % (513 - from);
    std::uint64_t expected = from;
    while (expected < to && plain[expected] != value) ++expected;
    ASSERT_EQ(next_bit(words, from, to, value), expected);
    const auto set = std::count(plain.begin() + static_cast<std::ptrdiff_t>(from),
                                plain.begin() + static_cast<std::ptrdiff_t>(to), true);
    ASSERT_EQ(count_set(words, from, to), static_cast<std::uint64_t>(set));
  }
}

TEST(SpaceMapTest, RemembersThatAPageHasNoSuchRunUntilSomethingIsFreedThere) {
  const format::DiskLayout layout(4096, 8 * 32768, 1024);
  SpaceMap map = make_map(layout, true);
  // Every second block of page 3.
  for (std::uint64_t block = 3 * 32768; block < 4 * 32768; block += 2) map.take(block, 1);
  const BlockRange page{3 * 32768, 4 * 32768};
  const AvoidedRanges nothing_near{{5 * 32768, 5 * 32768 + 10}};
  EXPECT_EQ(map.find(page, 2, &nothing_near).kind, Kind::kNone);
  EXPECT_EQ(map.find(page, 1, nullptr).value, 3 * 32768 + 1u);
  map.release(3 * 32768 + 100, 1);
  const Search found = map.find(page, 3, nullptr);
  ASSERT_EQ(found.kind, Kind::kFound);
  EXPECT_EQ(found.value, 3 * 32768 + 99u);
  // A run that is there but avoided is found again without the avoidance.
  const AvoidedRanges all_of_it{{3 * 32768, 4 * 32768}};
  EXPECT_EQ(map.find(page, 3, &all_of_it).kind, Kind::kNone);
  EXPECT_EQ(map.find(page, 3, nullptr).kind, Kind::kFound);
}

enum class State { kFree, kTaken, kPublished, kPendingFree };

// Random changes of runs, and searches, on a disk of two pages and a bit.
TEST(SpaceMapTest, EqualsAPlainArrayOfStates) {
  const format::DiskLayout layout(4096, 70000 / 16 * 16, 128);
  SpaceMap map = make_map(layout, true);
  std::mt19937_64 random(7);
  std::vector<State> states(layout.blocks(), State::kFree);
  const auto run_is = [&](std::uint64_t block, std::uint64_t blocks, State state) {
    return std::all_of(states.begin() + static_cast<std::ptrdiff_t>(block),
                       states.begin() + static_cast<std::ptrdiff_t>(block + blocks),
                       [&](State s) { return s == state; });
  };
  const auto set_run = [&](std::uint64_t block, std::uint64_t blocks, State state) {
    std::fill_n(states.begin() + static_cast<std::ptrdiff_t>(block), blocks, state);
  };
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t blocks = 1 + random() % (i % 100 == 0 ? 3000 : 40);
    const std::uint64_t begin = layout.first_usable() + random() % layout.usable_blocks();
    const std::uint64_t end = begin + random() % (layout.end_usable() - begin + 1);
    const Search found = map.find({begin, end}, blocks, nullptr);
    std::uint64_t expected = begin;
    std::uint64_t run = 0;
    bool exists = false;
    for (std::uint64_t block = begin; block < end && i % 20 == 0; ++block) {
      if (block % MDFS_BITS_PER_PAGE == 0) run = 0;
      run = states[block] == State::kFree ? run + 1 : 0;
      if (run < blocks) continue;
      expected = block + 1 - blocks;
      exists = true;
      break;
    }
    if (i % 20 == 0) {
      ASSERT_EQ(found.kind, exists ? Kind::kFound : Kind::kNone);
      if (exists) {
        ASSERT_EQ(found.value, expected);
      }
    }
    if (found.kind != Kind::kFound) continue;
    ASSERT_TRUE(run_is(found.value, blocks, State::kFree));
    map.take(found.value, blocks);
    set_run(found.value, blocks, State::kTaken);
    const auto fate = random() % 4;
    if (fate == 0) continue;
    if (fate == 1) {
      map.release(found.value, blocks);
      set_run(found.value, blocks, State::kFree);
      continue;
    }
    map.publish(found.value, blocks);
    set_run(found.value, blocks, State::kPublished);
    if (fate == 2 && i % 3 != 0) continue;
    map.free(found.value, blocks);
    set_run(found.value, blocks, State::kPendingFree);
    ASSERT_FALSE(map.is_free(found.value, blocks));
    if (i % 5 != 0) {
      map.release(found.value, blocks);
      set_run(found.value, blocks, State::kFree);
    }
  }
  std::uint64_t metadata = 0;
  std::uint64_t data = 0;
  std::uint64_t disk = 0;
  for (std::uint64_t block = layout.first_usable(); block < layout.end_usable(); ++block) {
    if (states[block] == State::kFree) ++(block < layout.metadata_end() ? metadata : data);
    if (states[block] != State::kPublished) ++disk;
  }
  EXPECT_EQ(map.metadata_free(), metadata);
  EXPECT_EQ(map.data_free(), data);
  EXPECT_EQ(map.disk_free(), disk);
  AlignedBuffer page(MDFS_SECTOR);
  for (std::uint64_t number = 0; number < layout.space_pages(0); ++number) {
    map.copy_disk_bitmap(number, page.bytes());
    ASSERT_EQ(format::bitmap_free(page.bytes()), map.page_disk_free(number));
    for (std::uint64_t bit = 0; bit < layout.bitmap_blocks(number); ++bit) {
      const std::uint64_t block = number * MDFS_BITS_PER_PAGE + bit;
      if (!layout.is_usable(block, 1)) continue;
      ASSERT_EQ(format::bitmap_get(page.bytes(), bit), states[block] == State::kPublished) << block;
    }
  }
}

// What a map that is grown and cut says, beside a plain array and beside a map that was made with that size.
TEST(SpaceMapTest, EqualsAPlainArrayWhateverSizesTheDiskIsGiven) {
  constexpr std::uint64_t kUnit = MDFS_LABEL_AREA / 4096, kMost = 5 * 32768;
  std::mt19937_64 random(11);
  format::DiskLayout layout(4096, 3 * 32768 + 5 * kUnit, 1024, kMost);
  SpaceMap map = make_map(layout, true);
  std::vector<State> states(kMost, State::kFree);
  for (int i = 0; i < 120; ++i) {
    for (int j = 0; j < 30; ++j) {
      const std::uint64_t blocks = 1 + random() % 300;
      const Search found =
          map.find({layout.first_usable() + random() % layout.usable_blocks(), kMost}, blocks, nullptr);
      if (found.kind != Kind::kFound) continue;
      map.take(found.value, blocks);
      if (random() % 2 == 0) {
        map.publish(found.value, blocks);
        std::fill_n(states.begin() + static_cast<std::ptrdiff_t>(found.value), blocks, State::kPublished);
      } else {
        map.release(found.value, blocks);
      }
    }
    map.clear_dirty();
    const std::uint64_t size = 32768 + kUnit * (2 + random() % ((kMost - 32768) / kUnit - 2));
    const std::uint64_t change = size > layout.blocks() ? size - layout.blocks() : layout.blocks() - size;
    if (change < 2 * kUnit) continue;
    const format::DiskLayout old = layout, wanted = layout.resized(size);
    if (size < old.blocks()) {
      map.set_end(wanted.end_usable());
      const std::uint64_t free = map.data_free();
      for (std::uint64_t block = wanted.end_usable(); block < old.end_usable(); ++block) {
        if (states[block] != State::kPublished) continue;
        ASSERT_GT(map.busy_behind(), 0u);
        map.free(block, 1);
        map.release(block, 1);
        states[block] = State::kFree;
      }
      ASSERT_EQ(map.busy_behind(), 0u);
      ASSERT_EQ(map.data_free(), free) << "what is freed behind the end is no room";
      ASSERT_EQ(map.find({wanted.end_usable(), kMost}, 1, nullptr).kind, Kind::kNone);
      if (i % 3 == 0) {
        map.set_end(old.end_usable());
      } else {
        map.resize(layout = wanted);
      }
    } else {
      map.resize(layout = wanted);
      for (std::uint64_t block = old.end_usable(); block < old.blocks(); ++block) {
        ASSERT_TRUE(map.is_taken(block, 1)) << "a label may lie there";
        map.release(block, 1);
      }
      for (std::uint64_t page = old.space_pages(0); page < layout.space_pages(0); ++page) {
        AlignedBuffer blank(MDFS_SECTOR);
        format::make_empty_bitmap(layout, page, blank.bytes());
        map.install(page, blank.bytes());
      }
    }
    std::uint64_t free = 0;
    for (std::uint64_t block = layout.metadata_end(); block < layout.end_usable(); ++block) {
      ASSERT_EQ(map.is_free(block, 1), states[block] == State::kFree) << block;
      free += states[block] == State::kFree ? 1 : 0;
    }
    ASSERT_EQ(map.data_free(), free);
    ASSERT_EQ(map.page_count(), layout.space_pages(0));
    ASSERT_EQ(map.end(), layout.end_usable());
    AlignedBuffer page(MDFS_SECTOR), blank(MDFS_SECTOR);
    for (std::uint64_t number = 0; number < layout.space_pages(0); ++number) {
      map.copy_disk_bitmap(number, page.bytes());
      ASSERT_EQ(format::bitmap_free(page.bytes()), map.page_disk_free(number));
      format::make_empty_bitmap(layout, number, blank.bytes());
      for (std::uint64_t bit = 0; bit < MDFS_BITS_PER_PAGE; ++bit) {
        const std::uint64_t block = number * MDFS_BITS_PER_PAGE + bit;
        const bool published = block < kMost && states[block] == State::kPublished;
        ASSERT_EQ(format::bitmap_get(page.bytes(), bit), published || format::bitmap_get(blank.bytes(), bit)) << block;
      }
    }
  }
}

TEST(SpaceMapTest, AsksForThePagesThatItNeedsAndSkipsFullOnes) {
  const format::DiskLayout layout(4096, 8 * 32768, 1024);
  SpaceMap map = make_map(layout, false);
  const Search first = map.find(map.data_range(), 10, nullptr);
  ASSERT_EQ(first.kind, Kind::kNeedPage);
  EXPECT_EQ(first.value, 0u);
  AlignedBuffer full(MDFS_SECTOR);
  std::fill(full.bytes().begin(), full.bytes().end(), std::byte{0xff});
  EXPECT_EQ(map.boundary_page(), std::optional<std::uint64_t>(0));
  map.set_broken(0);
  const Search second = map.find(map.data_range(), 10, nullptr);
  ASSERT_EQ(second.kind, Kind::kNeedPage);
  EXPECT_EQ(second.value, 1u);
}

TEST(SpaceMapTest, ForgetsOnlyPagesThatEqualTheDisk) {
  const format::DiskLayout layout(4096, 8 * 32768, 1024);
  SpaceMap map = make_map(layout, true);
  const std::uint64_t taken = 2 * 32768 + 5;
  const std::uint64_t published = 3 * 32768 + 5;
  map.take(taken, 4);
  map.take(published, 4);
  map.publish(published, 4);
  map.pin(4);
  map.shrink(0);
  EXPECT_TRUE(map.loaded(0)) << "the end of the metadata region";
  EXPECT_TRUE(map.loaded(2));
  EXPECT_TRUE(map.loaded(3));
  EXPECT_TRUE(map.loaded(4));
  EXPECT_EQ(map.loaded_pages(), 4u);
  map.release(taken, 4);
  map.clear_dirty();
  map.unpin(4);
  map.shrink(0);
  EXPECT_EQ(map.loaded_pages(), 1u);
}

TEST(SpaceMapTest, ZonesAreDrawnByTheirFreeSpace) {
  const format::DiskLayout layout(4096, 16 * 32768, 1024);
  SpaceMap map = make_map(layout, true);
  // Pages 4 to 7 are full.
  for (std::uint64_t page = 4; page < 8; ++page) map.take(page * 32768, 32768);
  std::mt19937_64 random(3);
  std::vector<int> drawn(16);
  for (int i = 0; i < 12000; ++i) ++drawn[map.draw_zone(random()) / 32768];
  for (std::size_t page = 0; page < 16; ++page) {
    if (page >= 4 && page < 8) {
      EXPECT_EQ(drawn[page], 0) << page;
    } else {
      EXPECT_NEAR(drawn[page], 1000, 150) << page;
    }
  }
}

TEST(SpaceMapTest, BlocksInUseAreCountedAsTheDiskWillSayAndNamesThePageThatMustBeLoadedFirst) {
  const format::DiskLayout layout(4096, 3 * 32768, 1024);
  SpaceMap map = make_map(layout, true);
  const BlockRange data = map.data_range();
  map.take(data.begin + 100, 50);
  EXPECT_EQ(map.used_in(data).value, 0u) << "taken, and part of nothing yet";
  map.publish(data.begin + 100, 50);
  EXPECT_EQ(map.used_in(data).value, 50u);
  EXPECT_EQ(map.used_in({data.begin + 120, data.begin + 130}).value, 10u);
  EXPECT_EQ(map.used_in({32768, 65536}).value, 0u);
  map.free(data.begin + 100, 20);
  EXPECT_EQ(map.used_in(data).value, 30u);

  SpaceMap unloaded = make_map(layout, false);
  EXPECT_EQ(unloaded.used_in({32768, 65536}).kind, Kind::kFound) << "a whole page: its count is known";
  EXPECT_EQ(unloaded.used_in({32768, 65536}).value, 0u);
  const Search needed = unloaded.used_in({32768, 65535});
  EXPECT_EQ(needed.kind, Kind::kNeedPage);
  EXPECT_EQ(needed.value, 1u);
  unloaded.set_broken(1);
  EXPECT_EQ(unloaded.used_in({32768, 65535}).value, 32767u) << "unknown: in use";
}

// Of the data: up to `most_used` blocks in use, then up to `most_free` free ones, and so on.
void take_some(SpaceMap& map, std::mt19937_64& random, std::uint64_t most_used, std::uint64_t most_free) {
  const BlockRange data = map.data_range();
  for (std::uint64_t at = data.begin; at < data.end;) {
    const std::uint64_t in_page = std::min({1 + random() % most_used, data.end - at, (at / 32768 + 1) * 32768 - at});
    map.take(at, in_page);
    at += in_page + random() % most_free;
  }
}

TEST(SpaceMapTest, TheBestHoleIsTheOneThatLookingAtEachBlockFinds) {
  const format::DiskLayout layout(4096, 2 * 32768, 1024);
  SpaceMap map = make_map(layout, true);
  std::mt19937_64 random(7);
  const BlockRange data = map.data_range();
  take_some(map, random, 40, 60);
  for (int round = 0; round < 300; ++round) {
    BlockRange range{data.begin + random() % data.size(), 0};
    range.end = range.begin + random() % (data.end - range.begin + 1);
    AvoidedRanges avoid;
    for (std::uint64_t at = range.begin; round % 2 == 0 && at < range.end; at += 300 + random() % 300) {
      avoid[at] = at + 1 + random() % 249;
      at += 250;
    }
    const std::uint64_t blocks = 1 + random() % 55;
    std::uint64_t smallest = UINT64_MAX, largest = 0, length = 0;
    const auto end_hole = [&] {
      if (length >= blocks) smallest = std::min(smallest, length);
      if (length >= blocks) largest = std::max(largest, length);
      length = 0;
    };
    for (std::uint64_t block = range.begin; block < range.end; ++block) {
      const auto avoided_range = avoid.upper_bound(block);
      const bool avoided = avoided_range != avoid.begin() && std::prev(avoided_range)->second > block;
      if (avoided || !map.is_free(block, 1) || block % 32768 == 0) end_hole();
      if (!avoided && map.is_free(block, 1)) ++length;
    }
    end_hole();
    const Search small = map.find_hole(range, blocks, &avoid, SpaceMap::Fit::kSmallest);
    const Search large = map.find_hole(range, blocks, &avoid, SpaceMap::Fit::kLargest);
    ASSERT_EQ(small.kind, largest > 0 ? Kind::kFound : Kind::kNone);
    ASSERT_EQ(large.kind, small.kind);
    if (largest == 0) continue;
    ASSERT_EQ(small.blocks, smallest);
    ASSERT_EQ(large.blocks, largest);
    ASSERT_TRUE(map.is_free(small.value, small.blocks));
    ASSERT_TRUE(map.is_free(large.value, large.blocks));
  }
}

// Holes go on over the ends of bitmap pages, so that four pages are enough for all cases.
TEST(SpaceMapTest, TheNextHoleIsTheOneThatLookingAtEachBlockFinds) {
  const format::DiskLayout layout(4096, 4 * 32768, 1024);
  std::mt19937_64 random(6);
  for (int round = 0; round < 20; ++round) {
    SpaceMap map = make_map(layout, true);
    std::vector<bool> free(layout.blocks());
    for (std::uint64_t block = layout.first_usable(); block < layout.end_usable(); ++block) free[block] = true;
    for (std::uint64_t i = random() % 40; i > 0; --i) {
      const std::uint64_t block = layout.first_usable() + random() % layout.usable_blocks();
      if (!free[block]) continue;
      map.take(block, 1);
      free[block] = false;
    }
    AvoidedRanges avoid;
    std::vector<bool> wanted = free;
    for (std::uint64_t begin = random() % 50000; begin < layout.blocks(); begin += 1 + random() % 50000) {
      const std::uint64_t end = std::min(begin + 1 + random() % 3000, layout.blocks());
      avoid[begin] = end;
      for (; begin < end; ++begin) wanted[begin] = false;
    }
    for (int i = 0; i < 20; ++i) {
      const BlockRange range{random() % layout.blocks(), 1 + random() % layout.blocks()};
      const std::uint64_t blocks = 1 + random() % 40000;
      const bool avoiding = random() % 2 == 0;
      const std::vector<bool>& there = avoiding ? wanted : free;
      Search expected;
      for (std::uint64_t begin = range.begin; begin < range.end && expected.kind == Kind::kNone;) {
        std::uint64_t end = begin;
        while (end < range.end && there[end]) ++end;
        if (end - begin >= blocks) expected = {Kind::kFound, begin, end - begin};
        begin = end + 1;
      }
      const Search found = map.next_hole(range, blocks, avoiding ? &avoid : nullptr);
      ASSERT_EQ(found.kind, expected.kind);
      ASSERT_EQ(found.value, expected.value);
      ASSERT_EQ(found.blocks, expected.blocks);
    }
  }
}

TEST(SpaceMapTest, TheEmptiestRangeIsTheOneThatLookingAtEachBlockFinds) {
  const format::DiskLayout layout(4096, 2 * 32768, 1024);
  SpaceMap map = make_map(layout, true);
  std::mt19937_64 random(8);
  const BlockRange data = map.data_range();
  take_some(map, random, 90, 40);
  for (int round = 0; round < 40; ++round) {
    AvoidedRanges avoid;
    for (std::uint64_t at = data.begin; round % 2 == 0 && at < data.end; at += 900 + random() % 900)
      avoid[at] = at + random() % 600;
    const std::uint64_t page = random() % 2;
    const std::uint64_t blocks = 1 + random() % 500;
    const BlockRange range{std::max(data.begin, page * 32768), std::min(data.end, (page + 1) * 32768)};
    std::optional<std::uint64_t> fewest;
    for (std::uint64_t first = range.begin; first + blocks <= range.end; ++first) {
      const auto other = avoid.lower_bound(first + blocks);
      if (other != avoid.begin() && std::prev(other)->second > first) continue;
      std::uint64_t in_use = 0;
      for (std::uint64_t block = first; block < first + blocks; ++block) in_use += !map.is_free(block, 1);
      if (!fewest || in_use < *fewest) fewest = in_use;
    }
    const Search found = map.emptiest_range(page, blocks, avoid);
    ASSERT_EQ(found.kind == Kind::kFound, fewest.has_value());
    if (!fewest) continue;
    ASSERT_EQ(found.blocks, *fewest);
    std::uint64_t in_use = 0;
    for (std::uint64_t block = found.value; block < found.value + blocks; ++block) in_use += !map.is_free(block, 1);
    ASSERT_EQ(in_use, *fewest);
  }
}

}  // namespace
}  // namespace mdfs::alloc
