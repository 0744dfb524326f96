// Admission, and that what is accepted misses no deadline.
// SPDX-License-Identifier: Apache-2.0
#include "streams/admission.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device/disk.h"
#include "device/request_schedule.h"
#include "streams/frame_queue.h"

namespace mdfs::streams {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(AdmissionTest, TheBusiestDiskLimitsTheRate) {
  // 10 ms of disk 0 and 20 ms of disk 1 for each frame; disk 1 has half of its limit left.
  const Admission answer = admit(std::vector<double>{0, 0.4}, {10.0 * kMs, 20.0 * kMs}, 10, 0.8);
  EXPECT_TRUE(answer.accepted);
  EXPECT_EQ(answer.busiest, 1u);
  EXPECT_NEAR(answer.rate_that_fits, 20 * (1 - kTrialMargin), 1e-9);
  EXPECT_NEAR(answer.load, 0.6, 1e-9);
}

TEST(AdmissionTest, WhatFitsIsAcceptedAndALittleMoreIsNot) {
  const std::vector<double> reserved = {0.3};
  const FrameCost cost = {7.0 * kMs};
  const double rate = admit(reserved, cost, 1, 0.8).rate_that_fits;
  EXPECT_TRUE(admit(reserved, {cost[0] / (1 - 0.99 * kTrialMargin)}, rate, 0.8).accepted);  // of a second trial
  EXPECT_TRUE(admit(reserved, cost, rate, 0.8).accepted);
  EXPECT_FALSE(admit(reserved, cost, rate * 1.15, 0.8).accepted);
}

TEST(AdmissionTest, FramesThatNeedNoDiskFitAtAnyRate) {
  const Admission answer = admit(std::vector<double>{0.8}, {0, 0}, 1e6, 0.8);
  EXPECT_TRUE(answer.accepted);
  EXPECT_EQ(answer.rate_that_fits, std::numeric_limits<double>::infinity());
}

TEST(AdmissionTest, AFullDiskHasNoRateLeft) {
  const Admission answer = admit(std::vector<double>{0.85}, {1.0 * kMs}, 1, 0.8);
  EXPECT_FALSE(answer.accepted);
  EXPECT_EQ(answer.rate_that_fits, 0);
}

RC_GTEST_PROP(AdmissionTest, LoadsThatAreTakenBackLeaveNothing, ()) {
  Loads loads;
  std::vector<std::pair<FrameCost, double>> all;
  for (unsigned i = 0; i < 10; ++i) {
    FrameCost cost(*rc::gen::inRange<std::size_t>(0, 5));
    for (double& one : cost) one = *rc::gen::inRange(0, 20) * 1.0 * kMs;
    all.emplace_back(cost, *rc::gen::inRange(1, 100));
    add_load(loads, all.back().first, all.back().second);
  }
  for (const auto& [cost, rate] : all) take_load(loads, cost, rate);
  for (const double load : loads) RC_ASSERT(std::abs(load) < 1e-9);
}

// One disk that serves a request after another, with the schedule of the mount, in virtual time.
class Machine {
 public:
  struct Stream {
    FrameQueue queue;
    std::int64_t cost_ns;  // of a frame, which is one request
  };

  explicit Machine(std::vector<Stream> streams) : streams_(std::move(streams)) {}

  // Greedy readers and a scrub keep so many requests waiting.
  void run(std::int64_t until_ns, unsigned ordinary, unsigned background, std::int64_t other_ns) {
    while (now_ < until_ns) {
      for (std::size_t i = 0; i < streams_.size(); ++i) begin_reads(i);
      for (; ordinary_ < ordinary; ++ordinary_) add({device::Urgency::Kind::kOrdinary, 0, nullptr}, other_ns, {});
      for (; background_ < background; ++background_)
        add({device::Urgency::Kind::kBackground, 0, nullptr}, other_ns, {});
      while (device::Io* const io = schedule_.next(now_)) on_disk_.push_back(io);
      if (on_disk_.empty()) {
        now_ = std::max(now_ + 1, next_opening());
        continue;
      }
      serve();
    }
  }
  std::uint64_t late() const {
    std::uint64_t sum = 0;
    for (const Stream& stream : streams_) sum += stream.queue.counts().late;
    return sum;
  }
  std::uint64_t in_time() const {
    std::uint64_t sum = 0;
    for (const Stream& stream : streams_) sum += stream.queue.counts().in_time;
    return sum;
  }
  std::uint64_t others() const { return others_; }

 private:
  struct Waiting {
    device::Io io;
    std::int64_t cost_ns = 0;
    device::Urgency::Kind kind = device::Urgency::Kind::kOrdinary;
    std::size_t stream = 0;
    FrameRead read;
  };
  struct Frame {
    std::size_t stream = 0;
    FrameRead read;
  };

  void add(const device::Urgency& urgency, std::int64_t cost_ns, const Frame& frame) {
    auto waiting = std::make_unique<Waiting>();
    waiting->cost_ns = cost_ns;
    waiting->kind = urgency.kind;
    waiting->stream = frame.stream;
    waiting->read = frame.read;
    schedule_.add(&waiting->io, urgency, cost_ns, now_);
    waiting_.emplace(&waiting->io, std::move(waiting));
  }
  void begin_reads(std::size_t i) {
    FrameQueue& queue = streams_[i].queue;
    while (queue.opening() && queue.opening()->from_ns <= now_) {
      const auto read = queue.begin_read(now_);
      if (read) add({device::Urgency::Kind::kReserved, read->deadline_ns, nullptr}, streams_[i].cost_ns, {i, *read});
    }
  }
  std::int64_t next_opening() const {
    std::int64_t next = INT64_MAX;
    for (const Stream& stream : streams_)
      if (const auto opening = stream.queue.opening()) next = std::min(next, opening->from_ns);
    return next;
  }
  void serve() {
    device::Io* const io = on_disk_.front();
    on_disk_.pop_front();
    const auto found = waiting_.find(io);
    const Waiting& one = *found->second;
    now_ += one.cost_ns;
    schedule_.ended(io, now_);
    if (one.kind == device::Urgency::Kind::kReserved) {
      FrameQueue& queue = streams_[one.stream].queue;
      queue.read_ended(one.read.ticket, now_, {}, nullptr);
      while (queue.deliver(now_)) {  // a client that takes every frame at once
      }
    } else {
      --(one.kind == device::Urgency::Kind::kOrdinary ? ordinary_ : background_);
      ++others_;
    }
    waiting_.erase(found);
  }

  std::vector<Stream> streams_;
  device::RequestSchedule schedule_;
  std::map<const device::Io*, std::unique_ptr<Waiting>> waiting_;
  std::deque<device::Io*> on_disk_;
  std::int64_t now_ = 0;
  unsigned ordinary_ = 0, background_ = 0;
  std::uint64_t others_ = 0;
};

// Streams of random rates and frames, until no further one is accepted; each reads half a second ahead, as streams do
// by default.
std::vector<Machine::Stream> random_streams(double limit) {
  std::vector<Machine::Stream> streams;
  Loads loads;
  const auto count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    const double rate = *rc::gen::inRange(10, 1000) / 10.0;
    const std::int64_t cost_ns = *rc::gen::inRange<std::int64_t>(100, 15'000) * 1000;
    const FrameCost cost = {static_cast<double>(cost_ns)};
    const Admission answer = admit(loads, cost, rate, limit);
    const double accepted = answer.accepted ? rate : answer.rate_that_fits;
    if (accepted < 1) continue;
    add_load(loads, cost, accepted);
    const auto lookahead = static_cast<unsigned>(std::clamp(std::ceil(accepted * 0.5), 3.0, 64.0));
    const Course course{1u << 30, 0, 1, accepted, 1'000'000'000};
    streams.push_back({FrameQueue(course, lookahead, false), cost_ns});
  }
  return streams;
}

RC_GTEST_PROP(AdmissionTest, NoAcceptedSetMissesADeadlineBesideAnyOtherLoad, ()) {
  std::vector<Machine::Stream> streams = random_streams(0.8);
  RC_PRE(!streams.empty());
  Machine machine(std::move(streams));
  const auto other_ns = *rc::gen::inRange<std::int64_t>(50, 15'000) * 1000;
  machine.run(6'000'000'000, *rc::gen::inRange(0u, 20u), *rc::gen::inRange(0u, 5u), other_ns);
  RC_ASSERT(machine.late() == 0u);
  RC_ASSERT(machine.in_time() > 0u);
}

TEST(AdmissionTest, ASetBeyondTheDiskMissesDeadlines) {
  std::vector<Machine::Stream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back({FrameQueue({1u << 30, 0, 1, 25, 1'000'000'000}, 13, false), 15 * kMs});
  Machine machine(std::move(streams));
  machine.run(6'000'000'000, 0, 0, kMs);
  EXPECT_GT(machine.late(), 50u);
}

TEST(AdmissionTest, OtherWorkGoesOnBesideAFullReservation) {
  std::vector<Machine::Stream> streams;
  streams.push_back({FrameQueue({1u << 30, 0, 1, 80, 1'000'000'000}, 40, false), 10 * kMs});
  Machine machine(std::move(streams));
  machine.run(11'000'000'000, 4, 0, 10 * kMs);
  EXPECT_EQ(machine.late(), 0u);
  EXPECT_GT(machine.others(), 190u);  // a fifth of ten seconds
}

}  // namespace
}  // namespace mdfs::streams
