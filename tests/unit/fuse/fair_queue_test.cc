// Queues of long work: turns of users, shares of threads, callers that end while they wait.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/fair_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mdfs::fuse {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kAlice = 1000, kBob = 1001;
constexpr auto kLong = 60s;  // never reached but by a defect

FairQueue::Job job(uid_t user, std::function<void()> work) { return {user, {}, std::move(work), {}}; }

// A job that runs until it is let to end.
struct Held {
  std::promise<void> begun, may_end;
  FairQueue::Job job_of(uid_t user) {
    return job(user, [this] {
      begun.set_value();
      may_end.get_future().wait();
    });
  }
  void wait_until_begun() { ASSERT_EQ(begun.get_future().wait_for(kLong), std::future_status::ready); }
};

TEST(FairQueueTest, AUserOfManyJobsLeavesAThreadToOthers) {
  Held first, second;
  std::atomic<bool> third_ran{false};
  FairQueue queue(3, 2);
  queue.post(first.job_of(kAlice));
  queue.post(second.job_of(kAlice));
  first.wait_until_begun();
  second.wait_until_begun();
  queue.post(job(kAlice, [&] { third_ran = true; }));
  std::promise<bool> bob;
  queue.post(job(kBob, [&] { bob.set_value(third_ran); }));
  auto answer = bob.get_future();
  ASSERT_EQ(answer.wait_for(kLong), std::future_status::ready);
  EXPECT_FALSE(answer.get()) << "the third job of the user waits for one of the others";
  first.may_end.set_value();
  second.may_end.set_value();
}

TEST(FairQueueTest, UsersTakeTurnsAndTheJobsOfOneKeepTheirOrder) {
  Held first;
  std::string order;  // of the jobs of one thread
  {
    FairQueue queue(1, 1);
    queue.post(first.job_of(kAlice));
    first.wait_until_begun();
    for (const char name : {'1', '2', '3', '4'}) queue.post(job(kAlice, [&order, name] { order += name; }));
    for (const char name : {'a', 'b'}) queue.post(job(kBob, [&order, name] { order += name; }));
    queue.post(job(7, [&order] { order += 'x'; }));
    first.may_end.set_value();
  }
  EXPECT_EQ(order, "ax1b234") << "each user once before one has a second turn; all jobs run before the queue ends";
}

TEST(FairQueueTest, ACallerWhoEndsWhileItsJobWaitsIsAnsweredAtOnce) {
  Held first;
  std::atomic<bool> ended{false}, ran{false};
  std::promise<void> cancelled;
  FairQueue queue(1, 1);
  queue.post(first.job_of(kAlice));
  first.wait_until_begun();
  queue.post({kAlice, [&] { return ended.load(); }, [&] { ran = true; }, [&] { cancelled.set_value(); }});
  ended = true;
  EXPECT_EQ(cancelled.get_future().wait_for(kLong), std::future_status::ready) << "although the thread is at work";
  first.may_end.set_value();
  std::promise<void> last;
  queue.post(job(kAlice, [&] { last.set_value(); }));
  EXPECT_EQ(last.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_FALSE(ran);
}

TEST(FairQueueTest, EachJobOfManyUsersIsRunOrCancelledOnce) {
  std::atomic<unsigned> answers{0};
  constexpr unsigned kThreads = 4, kJobs = 500;
  {
    FairQueue queue(3, 2);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&queue, &answers, t] {
        for (unsigned i = 0; i < kJobs; ++i)
          queue.post({t + i % 3, [i] { return i % 5 == 0; }, [&] { ++answers; }, [&] { ++answers; }});
      });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(answers, kThreads * kJobs);
}

}  // namespace
}  // namespace mdfs::fuse
