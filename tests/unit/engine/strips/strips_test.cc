// Extents that are being filled: what goes to strips, what is read out of them, and when they are written whole.
// SPDX-License-Identifier: Apache-2.0
#include "engine/strips/strips.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "engine/strips/strip_choice.h"
#include "engine/write/free_data.h"
#include "engine_fixture.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;

TEST(StripChoiceTest, PiecesOfAtMostHalfAnExtentThatIsBeingFilledGoToStrips) {
  StripFacts facts;
  facts.extent_blocks = 32;
  for (facts.changed_blocks = 1; facts.changed_blocks <= 32; ++facts.changed_blocks)
    EXPECT_EQ(worth_a_strip(facts), facts.changed_blocks <= 16) << facts.changed_blocks;
}

TEST(StripChoiceTest, WhatReplacesStoredBytesIsWrittenWithItsExtent) {
  StripFacts facts;
  facts.extent_blocks = 32;
  facts.changed_blocks = 2;
  facts.has_record = true;
  EXPECT_FALSE(worth_a_strip(facts));
  facts.appends = true;
  EXPECT_TRUE(worth_a_strip(facts));
  facts.overlaps = true;
  EXPECT_FALSE(worth_a_strip(facts));
}

TEST(StripChoiceTest, InStripsAnExtentTakesNoMoreThanWhole) {
  StripFacts facts;
  facts.extent_blocks = 32;
  facts.changed_blocks = 1;
  for (facts.strip_blocks = 0; facts.strip_blocks < 40; ++facts.strip_blocks)
    EXPECT_EQ(worth_a_strip(facts), facts.strip_blocks < 32) << facts.strip_blocks;
}

TEST(StripChoiceTest, APageHasABoundedNumberOfStrips) {
  StripFacts facts;
  facts.extent_blocks = 32;
  facts.changed_blocks = 2;
  facts.strips_in_page = MDFS_STRIPS_PER_PAGE - 1;
  EXPECT_FALSE(worth_a_strip(facts));
}

format::Strip strip_at(std::uint64_t block) {
  format::Strip strip;
  strip.address = {0, block};
  strip.places = strip.live = 1;
  return strip;
}

RC_GTEST_PROP(StripsOfAPageTest, AreThoseOfAPlainMapAndCopiesStayAsTheyWere, ()) {
  Strips strips;
  std::map<unsigned, std::uint64_t> plain;  // blocks by number
  const auto same = [](const Strips& some, const std::map<unsigned, std::uint64_t>& all) {
    auto next = all.begin();
    for (const Strips::Entry& entry : some) {
      RC_ASSERT((next != all.end() && entry.number == next->first && entry.strip->address.block == next->second));
      RC_ASSERT(some.find(entry.number) == entry.strip.get());
      ++next;
    }
    RC_ASSERT((next == all.end() && some.size() == all.size()));
  };
  for (std::uint64_t block = 1; block < 40; ++block) {
    const Strips before = strips;
    const auto plain_before = plain;
    const auto number = *rc::gen::inRange(0u, 8u);
    const unsigned free = strips.free_number();
    RC_ASSERT((!plain.contains(free) && std::ranges::all_of(plain, [&, expected = 0u](const auto& one) mutable {
      return one.first > free || one.first == expected++;
    })));
    if (*rc::gen::arbitrary<bool>()) {
      strips.set(number, strip_at(block));
      plain[number] = block;
    } else {
      strips.erase(number);
      plain.erase(number);
    }
    RC_ASSERT((strips.find(number) != nullptr) == plain.contains(number));
    same(strips, plain);
    same(before, plain_before);
  }
}

constexpr std::uint64_t kDepth = 16, kSide = 200;  // the last extents of a row and of a column are not full
constexpr std::uint64_t kFrame = kSide * kSide;

class StripsTest : public ::testing::TestWithParam<Codec> {
 protected:
  static Setting setting(Codec codec, std::size_t cache_bytes) {
    Setting setting;
    setting.geometry = image_of(3, {0, kSide, kSide}, {kDepth, 64, 64}, codec);
    setting.cache_bytes = cache_bytes;
    return setting;
  }
  void append(Bench& bench, std::uint64_t frames) {
    for (; frames > 0; --frames) {
      const ByteVector frame = noise(random_, kFrame, true);
      ASSERT_TRUE(bench.engine().write(bench.object(), array_.size(), frame).ok());
      array_.insert(array_.end(), frame.begin(), frame.end());
      ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
    }
  }
  static std::uint64_t rows_in_strips(Bench& bench) {
    const auto places = bench.layout();
    MDFS_CHECK(places.ok());
    return static_cast<std::uint64_t>(
        std::count_if(places->begin(), places->end(), [](const layout::ExtentPlace& place) { return place.in_strip; }));
  }
  static std::uint64_t extents(Bench& bench) { return bench.layout()->size() - rows_in_strips(bench); }

  std::mt19937_64 random_{5};
  ByteVector array_;
};

TEST_P(StripsTest, EachFrameIsStoredOnceAndReadByWindows) {
  Bench bench(setting(GetParam(), 4u << 20));
  for (std::uint64_t frame = 0; frame < kDepth + 3; ++frame) {
    const std::uint64_t before = bench.store().used_blocks();
    append(bench, 1);
    // 16 extents of a frame of 4 KiB each.
    EXPECT_EQ(bench.store().used_blocks() - before, 16u);
    EXPECT_EQ(extents(bench), 0u);
    ASSERT_TRUE(bench.reopen().ok());
    const geometry::Window window{{frame / 2, 10, 100}, {frame - frame / 2 + 1, 150, 90}, {}, std::nullopt};
    ASSERT_EQ(bench.read_window(window), array_get(bench.geometry_now(), array_, window));
  }
  EXPECT_EQ(rows_in_strips(bench), (kDepth + 3) * 16);
}

TEST_P(StripsTest, ConsolidationWritesCompleteExtentsWholeAndLeavesTheOthers) {
  Bench bench(setting(GetParam(), 4u << 20));
  append(bench, kDepth + 3);
  ASSERT_TRUE(bench.reopen().ok());
  const auto consolidated = bench.engine().consolidate(bench.object(), UINT64_MAX, false);
  ASSERT_TRUE(consolidated.ok());
  EXPECT_EQ(*consolidated, 16 * kDepth * 64 * 64);
  EXPECT_EQ(extents(bench), 16u);
  EXPECT_EQ(rows_in_strips(bench), 3u * 16);
  EXPECT_EQ(bench.read_all(), array_);
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.read_all(), array_);
  EXPECT_EQ(*bench.engine().consolidate(bench.object(), UINT64_MAX, false), 0u);

  EXPECT_EQ(*bench.engine().consolidate(bench.object(), UINT64_MAX, true), 16 * kDepth * 64 * 64);
  EXPECT_EQ(extents(bench), 32u);
  EXPECT_EQ(rows_in_strips(bench), 0u);
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.read_all(), array_);
  // Frames go on behind what has been consolidated before it was full.
  append(bench, 2);
  EXPECT_EQ(rows_in_strips(bench), 2u * 16);
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.read_all(), array_);
}

TEST_P(StripsTest, AnImageWithStripsIsACandidateUntilTheyAreConsolidated) {
  Bench bench(setting(GetParam(), 4u << 20));
  EXPECT_TRUE(bench.engine().relocation_candidates().empty());
  append(bench, kDepth);
  int calls = 0;
  for (auto left = bench.engine().relocation_candidates(); !left.empty(); ++calls) {
    ASSERT_LT(calls, 10);
    EXPECT_EQ(left.size(), 1u);
    EXPECT_EQ(left.front().reason, RelocationReason::kInStrips);
    ASSERT_TRUE(bench.engine().relocate(bench.object(), left.front().reason, {}).ok());
    left = bench.engine().relocation_candidates();
  }
  EXPECT_GT(calls, 0);
  EXPECT_EQ(rows_in_strips(bench), 0u);
  EXPECT_EQ(extents(bench), 16u);
  EXPECT_EQ(bench.read_all(), array_);
}

TEST_P(StripsTest, ASmallEdgeThatIsWrittenAgainAsAWholeIsNotReadBefore) {
  Setting picture = setting(GetParam(), 4u << 20);
  picture.geometry = image_of(2, {70, 70}, {64, 64}, GetParam());
  Bench bench(picture);
  for (unsigned turn = 0; turn < 2; ++turn) {
    array_ = noise(random_, 70 * 70, true);
    ASSERT_TRUE(bench.engine().write(bench.object(), 0, array_).ok());
    ASSERT_TRUE(bench.reopen().ok()) << turn;
    EXPECT_EQ(extents(bench), 4u);
    EXPECT_EQ(bench.read_all(), array_);
    const auto places = bench.layout();
    for (const layout::ExtentPlace& place : *places) {
      std::byte byte{};
      bench.store().memory_disk(place.disk).peek(place.block * 4096, {&byte, 1});
      byte ^= std::byte{1};
      bench.store().memory_disk(place.disk).poke(place.block * 4096, {&byte, 1});
    }
    ASSERT_TRUE(bench.reopen().ok());
  }
}

TEST_P(StripsTest, SlabsLargerThanTheCacheAreNotReadWhileTheyAreWritten) {
  Bench bench(setting(GetParam(), 1u << 20));  // a slab has 1 MiB
  append(bench, 2 * kDepth);
  EXPECT_EQ(rows_in_strips(bench), 2 * kDepth * 16);
  EXPECT_EQ(bench.read_all(), array_);
  ASSERT_TRUE(bench.engine().consolidate(bench.object(), UINT64_MAX, false).ok());
  EXPECT_EQ(extents(bench), 32u);
  EXPECT_EQ(bench.read_all(), array_);
}

TEST_P(StripsTest, AWindowOverBytesInStripsReplacesThem) {
  Bench bench(setting(GetParam(), 4u << 20));
  append(bench, 5);
  const geometry::Window window{{1, 60, 60}, {3, 10, 10}, {}, std::nullopt};  // of four extents
  const ByteVector bytes = noise(random_, 300);
  ASSERT_TRUE(bench.write_window(window, bytes).ok());
  array_put(bench.geometry_now(), array_, window, bytes);
  EXPECT_EQ(extents(bench), 4u);
  EXPECT_EQ(rows_in_strips(bench), 5u * 12);
  EXPECT_EQ(bench.read_all(), array_);
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.read_all(), array_);
}

TEST_P(StripsTest, AFrameWrittenAgainReplacesItsBytes) {
  Bench bench(setting(GetParam(), 4u << 20));
  append(bench, 4);
  const ByteVector frame = noise(random_, kFrame, true);
  ASSERT_TRUE(bench.engine().write(bench.object(), kFrame, frame).ok());
  std::copy(frame.begin(), frame.end(), array_.begin() + kFrame);
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(rows_in_strips(bench), 0u);
  EXPECT_EQ(bench.read_all(), array_);
}

TEST_P(StripsTest, TruncatingAndDeletingFreeStrips) {
  Bench bench(setting(GetParam(), 4u << 20));
  append(bench, kDepth + 4);
  ASSERT_TRUE(bench.engine().truncate(bench.object(), kDepth * kFrame).ok());
  array_.resize(kDepth * kFrame);
  EXPECT_EQ(rows_in_strips(bench), kDepth * 16);
  ASSERT_TRUE(bench.engine().truncate(bench.object(), 2 * kFrame + 77).ok());
  array_.resize(2 * kFrame + 77);
  EXPECT_EQ(rows_in_strips(bench), 2u * 16 + 2);
  EXPECT_EQ(bench.store().used_blocks(), 2u * 16 + 2);
  ASSERT_TRUE(bench.engine().truncate(bench.object(), 3 * kFrame).ok());
  array_.resize(3 * kFrame);
  ASSERT_TRUE(bench.reopen().ok());
  EXPECT_EQ(bench.read_all(), array_);
  append(bench, 1);
  EXPECT_GT(rows_in_strips(bench), 0u);

  Bench deleted(setting(GetParam(), 4u << 20));
  array_.clear();
  append(deleted, kDepth + 4);
  const auto geometry = std::optional(deleted.geometry_now());
  const std::uint64_t object = 77;
  for (bool done = false; !done;)
    ASSERT_TRUE(deleted.store()
                    .transact(store::Purpose::kFreeing,
                              [&](store::Transaction& transaction) -> Status {
                                MDFS_TRY_ASSIGN(done, free_some_data(transaction, object, geometry, 4096, 7));
                                return {};
                              })
                    .ok());
  EXPECT_EQ(deleted.store().used_blocks(), 0u);
}

TEST_P(StripsTest, TruncationOfExtentsInStripsWritesNoneOfThemAgain) {
  Setting large = setting(GetParam(), 4u << 20);
  large.geometry = image_of(3, {0, kSide, kSide}, {1024, 64, 64}, GetParam());  // 4 MiB an extent
  Bench bench(large);
  append(bench, 6);
  for (std::uint64_t size = array_.size(); size > 5; size = size * 5 / 7) {
    const std::uint64_t before = bench.store().used_blocks();
    ASSERT_TRUE(bench.engine().truncate(bench.object(), size).ok());
    array_.resize(size);
    EXPECT_LE(bench.store().used_blocks(), before) << size;
    EXPECT_EQ(extents(bench), 0u) << size;
    if (size % 2 == 0) {
      ASSERT_TRUE(bench.reopen().ok());
    }
    ASSERT_EQ(bench.read_all(), array_) << size;
  }
}

TEST_P(StripsTest, WhatIsCutOffIsZeroWhenTheImageGrowsAgain) {
  for (unsigned turn = 0; turn < 40; ++turn) {
    Bench bench(setting(GetParam(), 4u << 20));
    array_.clear();
    for (unsigned step = 0; step < 12; ++step) {
      const std::uint64_t size = random_() % (array_.size() + 1);
      switch (random_() % 5) {
        case 0:
          append(bench, 1 + random_() % 3);
          break;
        case 1: {  // parts of several blocks
          const ByteVector frames = noise(random_, 3 * kFrame, true);
          ASSERT_TRUE(bench.engine().write(bench.object(), array_.size(), frames).ok());
          array_.insert(array_.end(), frames.begin(), frames.end());
          ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
          break;
        }
        case 2:
          ASSERT_TRUE(bench.engine().truncate(bench.object(), size).ok());
          array_.resize(size);
          break;
        case 3:
          ASSERT_TRUE(bench.engine().truncate(bench.object(), array_.size() + size).ok());
          array_.resize(array_.size() + size);
          break;
        default:
          ASSERT_TRUE(bench.engine().consolidate(bench.object(), UINT64_MAX, random_() % 2 == 0).ok());
      }
      if (random_() % 3 == 0) {
        ASSERT_TRUE(bench.reopen().ok());
      }
      ASSERT_EQ(bench.read_all(), array_) << turn << " " << step;
    }
  }
}

TEST_P(StripsTest, ABitFlippedInAStripIsDamageAndNeverWrongBytes) {
  Bench bench(setting(GetParam(), 4u << 20));
  append(bench, 3);
  ASSERT_TRUE(bench.reopen().ok());
  const layout::ExtentPlace place = bench.layout()->front();
  ASSERT_TRUE(place.in_strip);
  std::byte byte{};
  bench.store().memory_disk(place.disk).peek(place.block * 4096 + 100, {&byte, 1});
  byte ^= std::byte{1};
  bench.store().memory_disk(place.disk).poke(place.block * 4096 + 100, {&byte, 1});
  ByteVector into(array_.size());
  const Result<std::size_t> got = bench.engine().read(bench.object(), 0, into);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, Errc::kCorrupt);
  EXPECT_NE(got.error().where.find("strip.checksum"), std::string::npos) << got.error().where;
}

TEST_P(StripsTest, ADamagedStripHoldsBackItsOwnExtentAlone) {
  Bench bench(setting(GetParam(), 4u << 20));
  append(bench, kDepth);
  ASSERT_TRUE(bench.reopen().ok());
  const layout::ExtentPlace place = bench.layout()->front();
  std::byte byte{};
  bench.store().memory_disk(place.disk).peek(place.block * 4096 + 100, {&byte, 1});
  byte ^= std::byte{1};
  bench.store().memory_disk(place.disk).poke(place.block * 4096 + 100, {&byte, 1});
  EXPECT_EQ(*bench.engine().consolidate(bench.object(), UINT64_MAX, false), 15 * kDepth * 64 * 64);
  EXPECT_EQ(extents(bench), 15u);
  EXPECT_EQ(rows_in_strips(bench), kDepth);
  const auto again = bench.engine().consolidate(bench.object(), UINT64_MAX, false);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::kCorrupt);
  // Repaired, it follows.
  byte ^= std::byte{1};
  bench.store().memory_disk(place.disk).poke(place.block * 4096 + 100, {&byte, 1});
  EXPECT_EQ(*bench.engine().consolidate(bench.object(), UINT64_MAX, false), kDepth * 64 * 64);
  EXPECT_EQ(bench.read_all(), array_);
}

INSTANTIATE_TEST_SUITE_P(Codecs, StripsTest, ::testing::Values(Codec::kRaw, Codec::kZstd),
                         [](const auto& codec) { return codec.param == Codec::kRaw ? "raw" : "zstd"; });

}  // namespace
}  // namespace mdfs::engine::testing
