// Streams of a mount in simulated time: what admission accepts is in time; by force, or unreserved, frames are late.
// SPDX-License-Identifier: Apache-2.0
#include "sim/mount_streams.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "mount_disks.h"
#include "sim/experiment.h"

namespace mdfs::sim {
namespace {

// Disks that take `request_ms` for a request, and move 20 MB/s; a film whose frames are single planes.
System film(unsigned disks, double request_ms = 4, const std::string& shape = "4096x256x512",
            const std::string& extent = "1x128x128") {
  Setup setup = mount_disks(disks, request_ms);
  setup.image = make_image(shape, extent, true, 1).value();
  return System::make(std::move(setup)).value();
}

MountStream tile(std::uint64_t frame, std::uint64_t y, std::uint64_t x, double rate) {
  MountStream stream;
  stream.window.start = {frame, y, x};
  stream.window.length = {1, 128, 128};
  stream.rate = rate;
  return stream;
}

OtherLoad greedy() {
  OtherLoad other;
  other.readers = 2;
  other.reader_length = {8, 256, 512};
  other.writers = 1;
  other.scrub = true;
  return other;
}

// So many streams of tiles, of which admission takes those that fit.
MountStreamsOptions streams_of(unsigned count, double rate, bool unchecked) {
  MountStreamsOptions options;
  for (unsigned i = 0; i < count; ++i) {
    options.streams.push_back(tile(i * 97 % 2048, i % 2 * 128, i / 2 % 4 * 128, rate));
    options.streams.back().unchecked = unchecked;
  }
  options.other = greedy();
  options.seconds = 30;  // the last of 20 is opened after 23 s
  return options;
}

struct Sum {
  std::uint64_t all = 0, late = 0;
};
Sum sum_of(const MountStreamsResult& result) {
  Sum sum;
  for (const StreamFrames& one : result.streams) {
    sum.all += one.all();
    sum.late += one.late();
  }
  return sum;
}

TEST(MountStreamsTest, TheTrialFindsTheTimeOfARequest) {
  const System system = film(4);
  MountStreamsOptions options;
  options.streams = {tile(0, 0, 0, 10)};
  const std::vector<StreamAnswer> answers = ask_admission(system, options).value();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers[0].admission.accepted);
  // A frame is one extent of 16 KiB, on each disk in turn: 4.82 ms of one of four disks.
  double sum = 0;
  for (const double ns : answers[0].cost_ns) {
    EXPECT_NEAR(ns, 4.82e6 / 4, 0.05e6);
    sum += ns;
  }
  EXPECT_NEAR(sum, 4.82e6, 0.05e6);
  EXPECT_EQ(answers[0].lookahead, 5U);  // half a second
}

TEST(MountStreamsTest, AnAcceptedSetHasNoLateFrameBesideGreedyOthers) {
  const System system = film(8);
  const MountStreamsOptions options = streams_of(20, 100, false);
  const std::vector<StreamAnswer> answers = ask_admission(system, options).value();
  const auto running = std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one.runs; });
  EXPECT_GE(running, 12);  // 0.8 of 8 disks at 4.82 ms: 13.3 streams
  EXPECT_LT(running, 20);
  const streams::Loads loads = reserved_loads(options, answers);
  EXPECT_LE(*std::max_element(loads.begin(), loads.end()), 0.8 + 1e-9);
  const MountStreamsResult result = run_mount_streams(system, options, answers, Reservation::kReserved);
  const Sum sum = sum_of(result);
  EXPECT_EQ(sum.late, 0U);
  std::uint64_t wanted = 0;  // an image ends before some of the streams
  for (std::size_t i = 0; i < options.streams.size(); ++i)
    if (answers[i].runs) wanted += std::min<std::uint64_t>(3000, 4096 - options.streams[i].window.start[0]);
  EXPECT_EQ(sum.all, wanted);
  EXPECT_GT(result.windows, 0U);  // others go on
  EXPECT_GT(result.written_bytes, 0);
  EXPECT_GT(result.scrubbed_bytes, 0);
}

TEST(MountStreamsTest, TheSameFramesAreLateWithoutAReservation) {
  const System system = film(8);
  const MountStreamsOptions options = streams_of(12, 100, false);
  const std::vector<StreamAnswer> answers = ask_admission(system, options).value();
  const Sum sum = sum_of(run_mount_streams(system, options, answers, Reservation::kNone));
  EXPECT_GT(sum.late, sum.all / 10);
}

TEST(MountStreamsTest, ARefusedSetThatRunsByForceHasLateFrames) {
  const System system = film(8);
  const MountStreamsOptions options = streams_of(20, 100, true);
  const std::vector<StreamAnswer> answers = ask_admission(system, options).value();
  EXPECT_FALSE(answers.back().admission.accepted);
  EXPECT_TRUE(answers.back().runs);
  const Sum sum = sum_of(run_mount_streams(system, options, answers, Reservation::kReserved));
  EXPECT_GT(sum.late, sum.all / 10);
}

TEST(MountStreamsTest, OthersGetTheRestOfTheTimeButNoLessThanTheirShare) {
  const System system = film(8);
  MountStreamsOptions options = streams_of(20, 100, true);
  options.other.writers = 0;
  options.other.scrub = false;
  const std::vector<StreamAnswer> answers = ask_admission(system, options).value();
  const MountStreamsResult full = run_mount_streams(system, options, answers, Reservation::kReserved);
  const double window_bytes = 8 * 256 * 512;
  // 5 % of 8 disks, whose requests of 128 KiB take 10.55 ms.
  const double least = 0.05 * 8 / 10.55e-3 * 131072 * options.seconds;
  EXPECT_GT(static_cast<double>(full.windows) * window_bytes, 0.5 * least);
}

TEST(MountStreamsTest, FramesOfOneSlabAreReadTogetherAndLookaheadIsKept) {
  const System system = film(4, 4, "4096x128x128", "16x64x64");
  MountStreamsOptions options;
  options.streams = {tile(0, 0, 0, 50)};
  options.seconds = 10;
  const std::vector<StreamAnswer> answers = ask_admission(system, options).value();
  ASSERT_TRUE(answers[0].runs);
  const MountStreamsResult result = run_mount_streams(system, options, answers, Reservation::kReserved);
  EXPECT_EQ(result.streams[0].late(), 0U);
  const double most_ahead = *std::max_element(result.streams[0].ahead_s.begin(), result.streams[0].ahead_s.end());
  EXPECT_LE(most_ahead, answers[0].lookahead / 50.0);
  // Read one by one, each frame would take four requests of 4 ms.
  double busy = 0;
  for (const InstanceUse& one : result.use[0].instances) busy += one.busy_s;
  EXPECT_LT(busy, static_cast<double>(result.streams[0].all()) * 4 * 4.8e-3 / 4);
}

TEST(MountStreamsTest, TheSameSeedGivesTheSameFrames) {
  const System system = film(6);
  MountStreamsOptions options = streams_of(8, 60, false);
  const std::vector<StreamAnswer> answers = ask_admission(system, options).value();
  const auto ahead = [&] {
    return run_mount_streams(system, options, answers, Reservation::kReserved).streams[1].ahead_s;
  };
  const std::vector<double> first = ahead();
  EXPECT_EQ(first, ahead());
  options.seed = 2;
  EXPECT_NE(first, ahead());
}

TEST(MountStreamsTest, WhatAMountWouldNotOpenIsRefused) {
  const System system = film(4);
  MountStreamsOptions options;
  options.streams = {tile(4096, 0, 0, 25)};
  EXPECT_FALSE(ask_admission(system, options).ok());  // outside
  options.streams = {tile(0, 0, 0, 0)};
  EXPECT_FALSE(ask_admission(system, options).ok());
  options.streams = {tile(0, 0, 0, 25)};
  options.streams[0].lookahead = 257;
  EXPECT_FALSE(ask_admission(system, options).ok());
  options.streams.assign(65, tile(0, 0, 0, 1));
  EXPECT_FALSE(ask_admission(system, options).ok());
}

RC_GTEST_PROP(MountStreamsTest, NoAcceptedSetOfRandomStreamsHasALateFrame, ()) {
  const System system = film(*rc::gen::inRange(1u, 9u), *rc::gen::inRange(5, 60) / 10.0);
  MountStreamsOptions options;
  const auto count = *rc::gen::inRange(1u, 12u);
  for (unsigned i = 0; i < count; ++i) {
    MountStream stream = tile(*rc::gen::inRange<std::uint64_t>(0, 2000), *rc::gen::inRange<std::uint64_t>(0, 2) * 128,
                              *rc::gen::inRange<std::uint64_t>(0, 4) * 128, *rc::gen::inRange(30, 2000) / 10.0);
    stream.step = *rc::gen::element<std::int64_t>(1, 1, 2, -1);
    options.streams.push_back(stream);
  }
  options.other.readers = *rc::gen::inRange(0u, 4u);
  options.other.reader_length = {1, *rc::gen::inRange<std::uint64_t>(1, 257), *rc::gen::inRange<std::uint64_t>(1, 513)};
  options.other.writers = *rc::gen::inRange(0u, 2u);
  options.other.scrub = *rc::gen::arbitrary<bool>();
  options.seconds = 15;  // the last of 11 is opened after 12 s
  options.seed = *rc::gen::inRange<std::uint64_t>(1, 1000);
  const std::vector<StreamAnswer> answers = ask_admission(system, options).value();
  const Sum sum = sum_of(run_mount_streams(system, options, answers, Reservation::kReserved));
  RC_ASSERT(sum.late == 0U);
}

}  // namespace
}  // namespace mdfs::sim
