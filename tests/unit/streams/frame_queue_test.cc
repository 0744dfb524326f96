// Frames that are read ahead.
// SPDX-License-Identifier: Apache-2.0
#include "streams/frame_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace mdfs::streams {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Ten frames per second, from a second on.
Course course(std::uint64_t frames = 100) { return {frames, 0, 1, 10, 1000 * kMs}; }

FrameBytes bytes_of(std::uint64_t frame) {
  return std::make_shared<const ByteVector>(1, static_cast<std::byte>(frame & 0xff));
}

void end(FrameQueue& queue, const FrameRead& read, std::int64_t now_ns) {
  queue.read_ended(read.ticket, now_ns, {}, bytes_of(read.frame));
}

TEST(FrameQueueTest, ReadsNoFrameEarlierThanTheLookaheadAllows) {
  FrameQueue queue(course(), 4, false);
  for (std::uint64_t frame = 0; frame < 4; ++frame) {
    ASSERT_TRUE(queue.opening());
    EXPECT_EQ(queue.opening()->from_ns, (1000 + 100 * static_cast<std::int64_t>(frame) - 400) * kMs);
    EXPECT_EQ(queue.begin_read(0)->frame, frame);
  }
  EXPECT_FALSE(queue.opening());  // all places are taken
}

TEST(FrameQueueTest, DeliversInOrderWhateverOrderTheReadsEndIn) {
  FrameQueue queue(course(), 3, false);
  const FrameRead a = *queue.begin_read(0), b = *queue.begin_read(0), c = *queue.begin_read(0);
  end(queue, c, 10);
  end(queue, b, 20);
  EXPECT_FALSE(queue.deliver(20));
  end(queue, a, 30);
  for (std::uint64_t frame = 0; frame < 3; ++frame) EXPECT_EQ(queue.deliver(40)->frame, frame);
  EXPECT_FALSE(queue.deliver(40));
}

TEST(FrameQueueTest, CountsFramesInTimeLateAndFailed) {
  FrameQueue queue(course(), 3, false);
  const FrameRead a = *queue.begin_read(0), b = *queue.begin_read(0), c = *queue.begin_read(0);
  end(queue, a, 1000 * kMs);
  end(queue, b, 1107 * kMs);
  queue.read_ended(c.ticket, 0, Error{Errc::kIo, "disk"}, nullptr);
  EXPECT_EQ(queue.counts().in_time + queue.counts().late, 0u);  // none was delivered
  EXPECT_TRUE(queue.deliver(0)->status.ok());
  EXPECT_TRUE(queue.deliver(0)->status.ok());
  EXPECT_EQ(queue.deliver(0)->status.error().code, Errc::kIo);
  EXPECT_EQ(queue.counts().in_time, 1u);
  EXPECT_EQ(queue.counts().late, 1u);
  EXPECT_EQ(queue.counts().failed, 1u);
  EXPECT_EQ(queue.counts().latest_ns, 7 * kMs);
}

TEST(FrameQueueTest, WithoutDroppingEveryFrameIsDeliveredHoweverLate) {
  FrameQueue queue(course(20), 2, false);
  std::vector<std::uint64_t> delivered;
  for (std::int64_t now = 90'000 * kMs; !queue.at_end(); now += 1000 * kMs) {
    if (const auto read = queue.begin_read(now)) end(queue, *read, now);
    if (const auto frame = queue.deliver(now)) delivered.push_back(frame->frame);
  }
  EXPECT_EQ(delivered.size(), 20u);
  EXPECT_EQ(queue.counts().dropped, 0u);
}

TEST(FrameQueueTest, WithDroppingFramesWhoseTimeIsOverAreNotRead) {
  FrameQueue queue(course(), 2, true);
  const auto read = queue.begin_read(1850 * kMs);
  EXPECT_EQ(read->frame, 9u);
  EXPECT_EQ(queue.counts().dropped, 9u);
  end(queue, *read, 1860 * kMs);
  EXPECT_EQ(queue.deliver(1860 * kMs)->dropped, 9u);
}

TEST(FrameQueueTest, WithDroppingALateClientGetsTheNewestFrameWhoseTimeHasCome) {
  FrameQueue queue(course(), 4, true);
  for (int i = 0; i < 4; ++i) end(queue, *queue.begin_read(0), 10);
  const auto frame = queue.deliver(1250 * kMs);
  EXPECT_EQ(frame->frame, 2u);
  EXPECT_EQ(frame->dropped, 2u);
  EXPECT_EQ(queue.deliver(1250 * kMs)->frame, 3u);
}

TEST(FrameQueueTest, IsAtItsEndWhenTheRestIsDropped) {
  FrameQueue queue(course(5), 2, true);
  EXPECT_FALSE(queue.begin_read(100'000 * kMs));
  EXPECT_TRUE(queue.at_end());
  EXPECT_EQ(queue.counts().dropped, 5u);
}

TEST(FrameQueueTest, ReadsFromBeforeAChangeAreIgnored) {
  FrameQueue queue(course(), 2, false);
  const FrameRead old = *queue.begin_read(0);
  Course other = course();
  other.first = 50;
  queue.change(other);
  EXPECT_EQ(queue.begin_read(0)->frame, 50u);
  end(queue, old, 1);
  EXPECT_FALSE(queue.deliver(1));
  EXPECT_EQ(queue.next_frame(), 50u);
}

TEST(FrameQueueTest, APauseKeepsThePlaceInTheCourse) {
  FrameQueue queue(course(), 2, false);
  end(queue, *queue.begin_read(0), 1);
  EXPECT_EQ(queue.deliver(1)->frame, 0u);
  end(queue, *queue.begin_read(0), 1);
  queue.pause();
  EXPECT_FALSE(queue.opening());
  EXPECT_FALSE(queue.begin_read(0));
  EXPECT_FALSE(queue.deliver(1));
  queue.resume(9000 * kMs);
  const FrameRead next = *queue.begin_read(0);
  EXPECT_EQ(next.frame, 1u);
  EXPECT_EQ(next.deadline_ns, 9000 * kMs);
}

// Any order of reads, deliveries and times: frames come in the order of the course, each once, with their own bytes,
// and those that do not come are counted as dropped.
RC_GTEST_PROP(FrameQueueTest, EveryFrameIsDeliveredOrDroppedInOrder, (unsigned seed)) {
  std::mt19937 random(seed);
  const auto frames = random() % 40 + 1;
  const auto lookahead = static_cast<unsigned>(random() % 5 + 1);
  const bool drops = random() % 2 == 0;
  FrameQueue queue(course(frames), lookahead, drops, 0, {1, random() % 5 + 1});
  std::map<std::uint64_t, FrameRead> under_way;  // one frame each
  std::int64_t now = 0;
  std::uint64_t next = 0, dropped = 0;
  for (unsigned tries = 0; !queue.at_end() && tries < 100'000; ++tries) {
    now += random() % 120 * kMs;
    const auto what = random() % 3;
    if (what == 0) {
      const auto read = queue.begin_read(now);
      for (unsigned i = 0; read && i < read->count; ++i)
        under_way.emplace(read->ticket + i, FrameRead{read->ticket + i, read->frame_number(i), 0});
      RC_ASSERT(under_way.size() <= lookahead);
    } else if (what == 1 && !under_way.empty()) {
      const auto one = std::next(under_way.begin(), static_cast<std::ptrdiff_t>(random() % under_way.size()));
      end(queue, one->second, now);
      under_way.erase(one);
    } else if (what == 2) {
      const auto frame = queue.deliver(now);
      if (!frame) continue;
      RC_ASSERT(frame->frame == next + frame->dropped);
      RC_ASSERT((*frame->bytes)[0] == static_cast<std::byte>(frame->frame));
      dropped += frame->dropped;
      next = frame->frame + 1;
    }
  }
  RC_ASSERT(queue.at_end());
  RC_ASSERT((drops || (dropped == 0 && next == frames)));
  RC_ASSERT(queue.counts().dropped == dropped + (frames - next));
}

TEST(FrameQueueTest, FramesOfTheSameExtentsAreReadTogetherOnceThereIsRoomForThem) {
  FrameQueue queue(course(), 8, false, 0, {1, 4});
  Course odd = course();
  odd.first = 2;
  queue.change(odd);
  const FrameRead rest = *queue.begin_read(0);
  EXPECT_EQ(rest.frame, 2u);
  EXPECT_EQ(rest.count, 2u);  // the rest of the slab
  const FrameRead whole = *queue.begin_read(0);
  EXPECT_EQ(whole.frame, 4u);
  EXPECT_EQ(whole.count, 4u);
  EXPECT_FALSE(queue.opening());  // two places are left, and four frames are wanted
  for (unsigned i = 0; i < 2; ++i) queue.read_ended(rest.ticket + i, 10, {}, bytes_of(rest.frame_number(i)));
  EXPECT_EQ(queue.deliver(10)->frame, 2u);
  EXPECT_FALSE(queue.opening());
  EXPECT_EQ(queue.deliver(10)->frame, 3u);
  ASSERT_TRUE(queue.opening());
  EXPECT_EQ(queue.opening()->from_ns, 1000 * kMs + 900 * kMs - 800 * kMs);  // as early as the last of the four
  EXPECT_EQ(queue.begin_read(0)->frame, 8u);
}

TEST(FrameQueueTest, BackwardsASlabIsReadTogetherToo) {
  Course backwards = course();
  backwards.first = 9;
  backwards.step = -1;
  FrameQueue queue(backwards, 8, false, 0, {2, 8});
  const FrameRead first = *queue.begin_read(0);
  EXPECT_EQ(first.count, 2u);  // 9 and 8
  EXPECT_EQ(first.frame_number(1), 8u);
  EXPECT_EQ(queue.begin_read(0)->count, 4u);
  backwards.step = -2;
  queue.change(backwards);
  EXPECT_EQ(queue.begin_read(0)->count, 1u);  // they do not lie together
}

TEST(FrameQueueTest, AFrameWithLessTimeThanFramesTakeIsReadFromACoarserLevel) {
  EXPECT_EQ(levels_coarser(100, 100, 3), 0u);
  EXPECT_EQ(levels_coarser(99, 100, 3), 1u);
  EXPECT_EQ(levels_coarser(24, 100, 3), 2u);
  EXPECT_EQ(levels_coarser(-5, 100, 3), 3u);
  EXPECT_EQ(levels_coarser(-5, 100, 0), 0u);
  FrameQueue queue(course(), 3, false, 2);
  const FrameRead first = *queue.begin_read(800 * kMs);
  EXPECT_EQ(first.coarser, 0u);  // what frames take is not known
  queue.read_ended(first.ticket, 950 * kMs, {}, bytes_of(0));
  const FrameRead second = *queue.begin_read(950 * kMs);
  EXPECT_EQ(second.coarser, 0u);  // 150 ms left
  const FrameRead third = *queue.begin_read(1060 * kMs);
  EXPECT_EQ(third.coarser, 1u);
  queue.read_ended(third.ticket, 1100 * kMs, {}, bytes_of(2), 1);
  end(queue, second, 1000 * kMs);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.deliver(1100 * kMs));
  EXPECT_EQ(queue.counts().coarser, 1u);
  EXPECT_EQ(queue.counts().in_time, 3u);
}

// A disk that has become slow: frames of the full size take longer than the whole lookahead.
TEST(FrameQueueTest, AfterSomeCoarserFramesOneOfFullSizeIsTriedAgain) {
  FrameQueue queue(course(1000), 2, false, 1);
  std::int64_t now = 0;
  unsigned full = 0, coarser = 0, in_row = 0, most_in_row = 0;
  while (queue.opening()) {
    now = std::max(now, queue.opening()->from_ns);
    const FrameRead read = *queue.begin_read(now);
    now += (read.coarser > 0 ? 20 : 500) * kMs;
    queue.read_ended(read.ticket, now, {}, bytes_of(read.frame), read.coarser);
    ASSERT_TRUE(queue.deliver(now));
    in_row = read.coarser > 0 ? in_row + 1 : 0;
    most_in_row = std::max(most_in_row, in_row);
    ++(read.coarser > 0 ? coarser : full);
  }
  EXPECT_EQ(full + coarser, 1000u);
  EXPECT_GT(full, 10u);
  EXPECT_LT(most_in_row, 60u);
  EXPECT_LE(queue.counts().late, 4 * full);  // the frames behind a slow one catch up
}

}  // namespace
}  // namespace mdfs::streams
