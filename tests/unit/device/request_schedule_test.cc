// The order of a disk's requests while rates are reserved.
// SPDX-License-Identifier: Apache-2.0
#include "device/request_schedule.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "device/disk.h"

namespace mdfs::device {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// A disk that serves one request after another, each for its cost.
class RequestScheduleTest : public testing::Test {
 protected:
  Io* add(Urgency::Kind kind, std::int64_t deadline_ms, std::int64_t cost_ms) {
    Io& io = ios_.emplace_back();
    io.offset = static_cast<std::uint64_t>(cost_ms * kMs);
    schedule_.add(&io, {kind, deadline_ms * kMs, nullptr}, cost_ms * kMs, now_);
    return &io;
  }
  Io* reserved(std::int64_t deadline_ms, std::int64_t cost_ms = 5) {
    return add(Urgency::Kind::kReserved, deadline_ms, cost_ms);
  }
  Io* ordinary(std::int64_t cost_ms = 5) { return add(Urgency::Kind::kOrdinary, 0, cost_ms); }
  Io* background(std::int64_t cost_ms = 5) { return add(Urgency::Kind::kBackground, 0, cost_ms); }

  // Lets the disk serve until a request ends; returns it, or null if there is none.
  Io* serve() {
    while (Io* const io = schedule_.next(now_)) on_disk_.push_back(io);
    if (on_disk_.empty()) return nullptr;
    Io* const io = on_disk_.front();
    on_disk_.pop_front();
    now_ += static_cast<std::int64_t>(io->offset);
    took_ns_ = schedule_.ended(io, now_);
    return io;
  }
  std::vector<Io*> serve_all() {
    std::vector<Io*> order;
    while (Io* const io = serve()) order.push_back(io);
    return order;
  }

  RequestSchedule schedule_;
  std::deque<Io> ios_;
  std::deque<Io*> on_disk_;
  std::int64_t now_ = 1'000'000'000;
  std::int64_t took_ns_ = 0;
};

TEST_F(RequestScheduleTest, ReservedRequestsComeFirstByTheirDeadlines) {
  Io* const scrub = background(1);
  Io* const copy = ordinary(1);
  Io* const late = reserved(300, 1);
  Io* const early = reserved(200, 1);
  Io* const next = reserved(300, 1);
  EXPECT_EQ(serve_all(), (std::vector<Io*>{early, late, next, copy, scrub}));
}

TEST_F(RequestScheduleTest, AnUrgentRequestWaitsForNoMoreThanWhatTheDiskHas) {
  for (int i = 0; i < 100; ++i) ordinary(13);
  serve();
  reserved(0, 1);
  unsigned before = 0;
  while (serve() != &ios_.back()) ++before;
  EXPECT_LE(before, RequestSchedule::kLeastUnderWay);
}

TEST_F(RequestScheduleTest, ShortRequestsAreWithTheDiskTogether) {
  for (int i = 0; i < 1000; ++i) schedule_.add(&ios_.emplace_back(), {}, kMs / 10, now_);
  unsigned started = 0;
  while (schedule_.next(now_) != nullptr) ++started;
  EXPECT_EQ(started, RequestSchedule::kUnderWayNs / (kMs / 10));
}

TEST_F(RequestScheduleTest, OrdinaryAndBackgroundRequestsKeepTheirSharesBesideReservedOnesWithoutEnd) {
  std::int64_t reserved_ms = 0, ordinary_ms = 0, background_ms = 0;
  std::deque<Io*> kinds[2];
  for (int i = 0; i < 4; ++i) reserved(1);
  for (int i = 0; i < 400; ++i) kinds[0].push_back(ordinary());
  for (int i = 0; i < 400; ++i) kinds[1].push_back(background());
  while (now_ < 21'000'000'000) {
    Io* const io = serve();
    if (!kinds[0].empty() && io == kinds[0].front()) {
      kinds[0].pop_front();
      ordinary_ms += 5;
    } else if (!kinds[1].empty() && io == kinds[1].front()) {
      kinds[1].pop_front();
      background_ms += 5;
    } else {
      reserved_ms += 5;
      reserved(1);
    }
  }
  EXPECT_NEAR(static_cast<double>(ordinary_ms), 20'000 * RequestSchedule::kOrdinaryShare, 50);
  EXPECT_NEAR(static_cast<double>(background_ms), 20'000 * RequestSchedule::kBackgroundShare, 50);
  EXPECT_GT(reserved_ms, 18'000);
}

TEST_F(RequestScheduleTest, AnOrdinaryRequestLongerThanWhatIsSavedUpStartsAllTheSame) {
  Io* const huge = ordinary(1000);
  for (int i = 0; i < 20'000; ++i) reserved(1, 1);
  bool found = false;
  while (now_ < 30'000'000'000 && !found) found = serve() == huge;
  EXPECT_TRUE(found);
}

TEST_F(RequestScheduleTest, TheTimeOfARequestBeginsWhenTheOneBeforeHasEnded) {
  reserved(1, 4);
  reserved(2, 6);
  serve();
  EXPECT_EQ(took_ns_, 4 * kMs);
  serve();
  EXPECT_EQ(took_ns_, 6 * kMs);
  now_ += 50 * kMs;  // the disk rests
  reserved(3, 2);
  serve();
  EXPECT_EQ(took_ns_, 2 * kMs);
}

TEST_F(RequestScheduleTest, WithoutALimitAllStartAtOnce) {
  for (int i = 0; i < 50; ++i) ordinary(100);
  unsigned started = 0;
  while (schedule_.next_of_all(now_) != nullptr) ++started;
  EXPECT_EQ(started, 50u);
  EXPECT_FALSE(schedule_.is_waiting());
}

TEST_F(RequestScheduleTest, WhatAReservedReaderWaitsForComesAsEarlyAsItsOwnRequests) {
  ordinary();
  ordinary();
  serve();  // one more is on the disk
  Io* const waits = ordinary();
  Io* const scrub = background();
  Io* const early = reserved(100);
  Io* const late = reserved(900);
  schedule_.hurry([&](const Io& io) { return &io == waits || &io == scrub || &io == late; },
                  {Urgency::Kind::kReserved, 500 * kMs, nullptr}, now_);
  const std::vector<Io*> order = serve_all();
  ASSERT_EQ(order.size(), 5u);
  EXPECT_EQ(order[1], early);
  EXPECT_EQ(order[2], waits);
  EXPECT_EQ(order[3], scrub);
  EXPECT_EQ(order[4], late);
}

}  // namespace
}  // namespace mdfs::device
