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
  EXPECT_EQ(queue.counts().in_time, 1u);
  EXPECT_EQ(queue.counts().late, 1u);
  EXPECT_EQ(queue.counts().failed, 1u);
  EXPECT_EQ(queue.counts().latest_ns, 7 * kMs);
  EXPECT_TRUE(queue.deliver(0)->status.ok());
  EXPECT_TRUE(queue.deliver(0)->status.ok());
  EXPECT_EQ(queue.deliver(0)->status.error().code, Errc::kIo);
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
  FrameQueue queue(course(frames), lookahead, drops);
  std::map<std::uint64_t, FrameRead> under_way;
  std::int64_t now = 0;
  std::uint64_t next = 0, dropped = 0;
  for (unsigned tries = 0; !queue.at_end() && tries < 100'000; ++tries) {
    now += random() % 120 * kMs;
    const auto what = random() % 3;
    if (what == 0) {
      if (const auto read = queue.begin_read(now)) under_way.emplace(read->ticket, *read);
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
  RC_ASSERT(drops || (dropped == 0 && next == frames));
  RC_ASSERT(queue.counts().dropped == dropped + (frames - next));
}

}  // namespace
}  // namespace mdfs::streams
