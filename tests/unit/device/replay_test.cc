// What a power cut may leave and what it must keep.
// SPDX-License-Identifier: Apache-2.0
#include "device/testing/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/aligned_buffer.h"

namespace mdfs::device {
namespace {

constexpr std::size_t kBlock = 4096;

AlignedBuffer numbered(std::size_t bytes, std::uint32_t number) {
  AlignedBuffer buffer(bytes);
  for (std::size_t at = 0; at < bytes; at += 4) store_le<std::uint32_t>(buffer.bytes(), at, number);
  return buffer;
}

std::uint32_t number_at(const MemoryDisk& disk, std::uint64_t offset) {
  std::byte bytes[4];
  disk.peek(offset, bytes);
  return load_le<std::uint32_t>(bytes, 0);
}

class ReplayTest : public testing::Test {
 protected:
  void put(std::size_t disk, std::uint64_t block, std::uint32_t number, std::size_t blocks = 1) {
    const auto data = numbered(blocks * kBlock, number);
    ASSERT_TRUE(write(recorders_[disk], block * kBlock, data.bytes()).ok());
  }
  void sync(std::size_t disk) { ASSERT_TRUE(flush(recorders_[disk]).ok()); }

  // The numbers in block 0 of both disks, over all states from `from` on.
  std::set<std::pair<std::uint32_t, std::uint32_t>> states(std::size_t from) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for_each_cut({&base0_, &base1_}, log_.events(), {}, [&](auto disks, const Cut& cut) {
      if (cut.position >= from) seen.emplace(number_at(*disks[0], 0), number_at(*disks[1], 0));
      return true;
    });
    return seen;
  }

  MemoryDisk base0_{"base0", 1u << 20};
  MemoryDisk base1_{"base1", 1u << 20};
  std::unique_ptr<MemoryDisk> now0_ = base0_.clone();
  std::unique_ptr<MemoryDisk> now1_ = base1_.clone();
  RecorderLog log_;
  RecorderDisk recorders_[2] = {{*now0_, log_, 0}, {*now1_, log_, 1}};
};

TEST_F(ReplayTest, UnflushedWritesOfTwoDisksAreLostIndependently) {
  put(0, 0, 1);
  put(1, 0, 2);
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(states(0), (std::set<Pair>{{0, 0}, {1, 0}, {0, 2}, {1, 2}}));
}

TEST_F(ReplayTest, AFlushedWriteIsInEveryLaterStateOfThatDiskOnly) {
  put(0, 0, 1);
  put(1, 0, 2);
  sync(0);
  log_.mark("flushed");
  const std::size_t after_mark = log_.size();
  put(1, 0, 3);
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(states(after_mark), (std::set<Pair>{{1, 0}, {1, 2}, {1, 3}}));
}

TEST_F(ReplayTest, AFlushDoesNotCoverAWriteThatEndedAfterItsStart) {
  auto data = std::make_shared<const ByteVector>(kBlock, std::byte{1});
  std::vector<Event> log(4);
  log[0] = {EventKind::kStart, Op::kWrite, 0, 1, 0, kBlock, data, true, "", 0};
  log[1] = {EventKind::kStart, Op::kFlush, 0, 2, 0, 0, nullptr, true, "", 0};
  log[2] = {EventKind::kEnd, Op::kWrite, 0, 1, 0, 0, nullptr, true, "", 0};
  log[3] = {EventKind::kEnd, Op::kFlush, 0, 2, 0, 0, nullptr, true, "", 0};
  Replayer replayer({&base0_}, log);
  replayer.advance_to(4);
  EXPECT_EQ(replayer.outstanding().size(), 1u);
  std::swap(log[1], log[2]);
  Replayer covered({&base0_}, log);
  covered.advance_to(4);
  EXPECT_TRUE(covered.outstanding().empty());
}

TEST_F(ReplayTest, AFailedFlushMakesNothingDurable) {
  auto data = std::make_shared<const ByteVector>(kBlock, std::byte{1});
  std::vector<Event> log(4);
  log[0] = {EventKind::kStart, Op::kWrite, 0, 1, 0, kBlock, data, true, "", 0};
  log[1] = {EventKind::kEnd, Op::kWrite, 0, 1, 0, 0, nullptr, true, "", 0};
  log[2] = {EventKind::kStart, Op::kFlush, 0, 2, 0, 0, nullptr, true, "", 0};
  log[3] = {EventKind::kEnd, Op::kFlush, 0, 2, 0, 0, nullptr, false, "", 0};
  Replayer replayer({&base0_}, log);
  replayer.advance_to(4);
  EXPECT_EQ(replayer.outstanding().size(), 1u);
}

TEST_F(ReplayTest, AFailedWriteMayShowUntilADurableOneCoversIt) {
  auto bad = std::make_shared<const ByteVector>(kBlock, std::byte{1});
  auto good = std::make_shared<const ByteVector>(kBlock, std::byte{2});
  const std::vector<Event> log = {
      {EventKind::kStart, Op::kWrite, 0, 1, 0, kBlock, bad, true, "", 0},
      {EventKind::kEnd, Op::kWrite, 0, 1, 0, 0, nullptr, false, "", 0},
      {EventKind::kStart, Op::kFlush, 0, 2, 0, 0, nullptr, true, "", 0},
      {EventKind::kEnd, Op::kFlush, 0, 2, 0, 0, nullptr, true, "", 0},
      {EventKind::kStart, Op::kWrite, 0, 3, 0, kBlock, good, true, "", 0},
      {EventKind::kEnd, Op::kWrite, 0, 3, 0, 0, nullptr, true, "", 0},
      {EventKind::kStart, Op::kFlush, 0, 4, 0, 0, nullptr, true, "", 0},
      {EventKind::kEnd, Op::kFlush, 0, 4, 0, 0, nullptr, true, "", 0},
  };
  Replayer replayer({&base0_}, log);
  replayer.advance_to(4);
  EXPECT_EQ(replayer.outstanding().size(), 1u);
  replayer.advance_to(8);
  EXPECT_TRUE(replayer.outstanding().empty());
}

TEST_F(ReplayTest, AWriteIsTornAtSectorsAndAtBlocks) {
  put(0, 0, 7, 2);
  std::set<std::string> patterns;
  for_each_cut({&base0_, &base1_}, log_.events(), {}, [&](auto disks, const Cut&) {
    std::string pattern;
    for (std::uint64_t at = 0; at < 2 * kBlock; at += 512) pattern += number_at(*disks[0], at) == 7 ? '1' : '0';
    patterns.insert(pattern);
    return true;
  });
  const std::set<std::string> expected = {"0000000000000000", "1111111111111111", "1111111100000000",
                                          "0000000011111111", "0111111111111111", "1111111111111110"};
  EXPECT_EQ(patterns, expected);
}

TEST_F(ReplayTest, AnUnflushedDiscardIsLostOrNot) {
  put(0, 0, 1);
  sync(0);
  log_.mark("flushed");
  const std::size_t after_mark = log_.size();
  Io io;
  io.op = Op::kDiscard;
  io.discard_bytes = kBlock;
  const Addressed request{&recorders_[0], &io};
  ASSERT_TRUE(run({&request, 1}).ok());
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(states(after_mark), (std::set<Pair>{{0, 0}, {1, 0}}));
}

TEST_F(ReplayTest, EightOutstandingWritesGiveAllSubsetsAndMoreAreBounded) {
  CutBounds whole;
  whole.torn = false;
  for (std::uint32_t i = 0; i < 8; ++i) put(i % 2, i, i + 1);
  auto visit = [](auto, const Cut&) { return true; };
  EXPECT_EQ(for_each_cut({&base0_, &base1_}, log_.events(), whole, visit), 256u);
  for (std::uint32_t i = 8; i < 500; ++i) put(i % 2, i / 2, i + 1);
  const std::size_t many = for_each_cut({&base0_, &base1_}, log_.events(), whole, visit);
  EXPECT_GT(many, 3 * 64u);
  EXPECT_LT(many, 3 * 64u + 30);
}

TEST_F(ReplayTest, CutsThatLieBeforeWhatIsKnownAreLeftOut) {
  for (std::uint32_t i = 0; i < 3; ++i) put(0, i, i + 1);
  log_.mark("returned", 1);
  CutBounds later;
  later.from = log_.events().size();
  put(1, 0, 4);
  later.torn = false;
  std::size_t least = SIZE_MAX;
  const std::size_t seen = for_each_cut({&base0_, &base1_}, log_.events(), later, [&](auto, const Cut& cut) {
    least = std::min(least, cut.position);
    return true;
  });
  EXPECT_EQ(seen, 16u) << "what was outstanding may still be lost, each write alone";
  EXPECT_EQ(least, later.from);
}

TEST_F(ReplayTest, VisitingStopsWhenAskedTo) {
  for (std::uint32_t i = 0; i < 5; ++i) put(0, i, i + 1);
  std::size_t seen = 0;
  EXPECT_EQ(for_each_cut({&base0_, &base1_}, log_.events(), {}, [&](auto, const Cut&) { return ++seen < 3; }), 3u);
}

// Random writes and flushes; each number is written once, so a block tells which write it shows. After the n-th mark
// no block of any state shows an older write than the last one that was flushed before that mark.
TEST_F(ReplayTest, NoStateLosesWhatWasFlushedBeforeTheLastMark) {
  constexpr std::uint64_t kBlocks = 6;
  std::mt19937 generator(5);
  using Image = std::map<std::pair<std::size_t, std::uint64_t>, std::uint32_t>;
  Image written;
  Image durable;
  std::vector<Image> at_mark;
  std::map<std::uint32_t, std::pair<std::size_t, std::uint64_t>> place_of;
  for (std::uint32_t i = 1; i <= 60; ++i) {
    const std::size_t disk = generator() % 2;
    if (generator() % 5 == 0) {
      sync(disk);
      for (const auto& [place, number] : written) {
        if (place.first == disk) durable[place] = number;
      }
      at_mark.push_back(durable);
      log_.mark("flush", at_mark.size());
    } else {
      const std::uint64_t block = generator() % kBlocks;
      put(disk, block, i);
      written[{disk, block}] = i;
      place_of[i] = {disk, block};
    }
  }
  ASSERT_GT(at_mark.size(), 5u);
  CutBounds bounds;
  bounds.torn = false;
  const auto log = log_.events();
  const std::size_t visited = for_each_cut({&base0_, &base1_}, log, bounds, [&](auto disks, const Cut& cut) {
    std::uint64_t mark = 0;
    for (std::size_t i = 0; i < cut.position; ++i) mark = std::max(mark, log[i].value);
    for (std::size_t disk = 0; disk < 2; ++disk) {
      for (std::uint64_t block = 0; block < kBlocks; ++block) {
        const std::uint32_t number = number_at(*disks[disk], block * kBlock);
        const std::uint32_t least = mark == 0 ? 0 : at_mark[mark - 1][{disk, block}];
        EXPECT_GE(number, least) << cut.text << " at " << cut.position;
        if (number != 0) {
          EXPECT_EQ(place_of[number], std::make_pair(disk, block));
        }
      }
    }
    return !HasFailure();
  });
  EXPECT_GT(visited, 100u);
}

}  // namespace
}  // namespace mdfs::device
