// Courses of streams.
// SPDX-License-Identifier: Apache-2.0
#include "streams/course.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace mdfs::streams {
namespace {

std::vector<std::uint64_t> all_frames(const Course& course) {
  std::vector<std::uint64_t> frames;
  for (std::uint64_t n = 0; const auto frame = frame_at(course, n); ++n) frames.push_back(*frame);
  return frames;
}

TEST(Course, VisitsEachFrameForwardsAndBackwards) {
  EXPECT_EQ(all_frames({5, 0, 1, 25, 0}), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(all_frames({5, 4, -1, 25, 0}), (std::vector<std::uint64_t>{4, 3, 2, 1, 0}));
  EXPECT_EQ(all_frames({5, 1, 3, 25, 0}), (std::vector<std::uint64_t>{1, 4}));
  EXPECT_EQ(all_frames({5, 3, -2, 25, 0}), (std::vector<std::uint64_t>{3, 1}));
}

RC_GTEST_PROP(Course, VisitsWhatALoopVisits, ()) {
  const auto frames = *rc::gen::inRange<std::uint64_t>(1, 200);
  const auto first = *rc::gen::inRange<std::uint64_t>(0, frames);
  const auto step =
      *rc::gen::suchThat(rc::gen::inRange<std::int64_t>(-250, 250), [](std::int64_t s) { return s != 0; });
  std::vector<std::uint64_t> wanted;
  for (std::int64_t at = static_cast<std::int64_t>(first); at >= 0 && at < static_cast<std::int64_t>(frames);
       at += step)
    wanted.push_back(static_cast<std::uint64_t>(at));
  const Course course{frames, first, step, 25, 0};
  RC_ASSERT(all_frames(course) == wanted);
  RC_ASSERT(frame_count(course) == wanted.size());
}

TEST(Course, DeadlinesDoNotDrift) {
  const Course course{1u << 30, 0, 1, 30000.0 / 1001, 7};
  EXPECT_EQ(deadline_ns(course, 0), 7);
  EXPECT_EQ(deadline_ns(course, 30000), 7 + 1001 * 1'000'000'000LL);
  EXPECT_EQ(deadline_ns(course, 30000 * 1000), 7 + 1001 * 1'000'000'000'000LL);
}

TEST(Course, DeadlinesInTheFarFutureAreTimes) {
  const Course course{UINT64_MAX, 0, 1, 0.001, 1'000'000'000'000'000};
  EXPECT_GT(deadline_ns(course, UINT64_MAX - 2), 1'000'000'000'000'000);
}

TEST(Course, RefusesWhatIsOutOfRange) {
  const Course good{10, 0, 1, 25, 0};
  EXPECT_TRUE(check(good).ok());
  const auto refused = [&](auto change) {
    Course course = good;
    change(course);
    return !check(course).ok();
  };
  EXPECT_TRUE(refused([](Course& c) { c.first = 10; }));
  EXPECT_TRUE(refused([](Course& c) { c.frames = 0; }));
  EXPECT_TRUE(refused([](Course& c) { c.step = 0; }));
  EXPECT_TRUE(refused([](Course& c) { c.step = INT64_MIN; }));
  for (const double rate :
       {0.0, -1.0, 1e7, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_TRUE(refused([&](Course& c) { c.rate = rate; })) << rate;
}

geometry::Geometry movie() {
  geometry::Geometry geometry;
  geometry.rank = 3;
  geometry.axes = "tyx";
  geometry.shape = {103, 64, 80};
  geometry.extent = {4, 32, 32};
  return geometry;
}

TEST(Frames, AreWindowsOfTheSameLengthAlongTheAxis) {
  const geometry::Geometry image = movie();
  geometry::Window window = geometry::whole(image);
  window.start = {10, 8, 0};
  window.length = {5, 16, 80};
  const auto frames = frame_windows(image, window, 0);
  ASSERT_TRUE(frames.ok());
  EXPECT_EQ(frames->frames, 20u);  // the last three samples are no whole frame
  EXPECT_EQ(frames->first, 2u);
  EXPECT_EQ(frames->at(2), window);
  EXPECT_EQ(frames->at(19).start[0], 95u);
  EXPECT_EQ(frames->at(19).start[1], 8u);
}

TEST(Frames, RefuseWindowsBetweenFramesAndOtherAxes) {
  const geometry::Geometry image = movie();
  geometry::Window window = geometry::whole(image);
  window.start[0] = 7;
  window.length[0] = 5;
  EXPECT_FALSE(frame_windows(image, window, 0).ok());
  EXPECT_FALSE(frame_windows(image, geometry::whole(image), 3).ok());
  window.start[0] = 100;
  EXPECT_FALSE(frame_windows(image, window, 0).ok());
}

}  // namespace
}  // namespace mdfs::streams
