// Replies after notifications, and before those that take too long.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/notified_replies.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <vector>

namespace mdfs::fuse {
namespace {

using std::chrono::milliseconds;

TEST(NotifiedRepliesTest, AReplyFollowsItsNotification) {
  WorkQueue queue(1);
  NotifiedReplies replies(queue, milliseconds(3'600'000));
  std::mutex mutex;
  std::string order;
  const auto add = [&](char letter) {
    const std::lock_guard lock(mutex);
    order += letter;
  };
  std::promise<void> last;
  for (int i = 0; i < 100; ++i) replies.post([&] { add('n'); }, [&] { add('r'); });
  replies.post([] {}, [&] { last.set_value(); });
  last.get_future().wait();
  const std::lock_guard lock(mutex);
  ASSERT_EQ(order.size(), 200u);
  for (std::size_t i = 0; i < order.size(); i += 2) EXPECT_EQ(order.substr(i, 2), "nr");
}

// As when the notification waits for reads that wait until these writes are answered.
TEST(NotifiedRepliesTest, RepliesDoNotWaitForeverForANotificationThatNeedsThem) {
  auto queue = std::make_unique<WorkQueue>(1);
  NotifiedReplies replies(*queue, milliseconds(20));
  constexpr int kWrites = 12;
  std::promise<void> all_replied;
  std::shared_future<void> replied = all_replied.get_future().share();
  std::atomic<int> given = 0, notified = 0;
  for (int i = 0; i < kWrites; ++i)
    replies.post(
        [&] {
          replied.wait();
          ++notified;
        },
        [&] {
          if (++given == kWrites) all_replied.set_value();
        });
  replied.wait();
  queue.reset();  // ends when its jobs have
  EXPECT_EQ(given, kWrites);
  EXPECT_EQ(notified, kWrites);
}

TEST(NotifiedRepliesTest, EachReplyIsGivenOnceWhoeverIsFirst) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::atomic<int>> given(50);
    {
      auto queue = std::make_unique<WorkQueue>(1);
      NotifiedReplies replies(*queue, milliseconds(1));
      for (auto& one : given)
        replies.post([] { std::this_thread::sleep_for(std::chrono::microseconds(100)); }, [&one] { ++one; });
      queue.reset();
    }
    for (const auto& one : given) EXPECT_EQ(one, 1);
  }
}

}  // namespace
}  // namespace mdfs::fuse
