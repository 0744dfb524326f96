// Streams of a volume in memory.
// SPDX-License-Identifier: Apache-2.0
#include "streams/streams.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device/read_pace.h"
#include "memory_volume.h"
#include "store/store.h"
#include "views/level_view.h"

namespace mdfs::streams {
namespace {

using volume::Ino;

constexpr std::uint64_t kFrames = 40, kHeight = 32, kWidth = 48;
constexpr std::uint64_t kFrameBytes = kHeight * kWidth;

class StreamsTest : public testing::Test {
 protected:
  StreamsTest() : disks_(test::format_memory_disks(3, 64u << 20, environment_)) {
    auto opened = test::open_volume(test::borrowed(disks_), test::quiet_options(), environment_);
    EXPECT_TRUE(opened.ok());
    volume_ = std::move(*opened);
    const auto file = volume_->make_node(volume::kRootIno, "movie", S_IFREG | 0644, 0, {});
    EXPECT_TRUE(file.ok());
    movie_ = file->ino;
    volume::ImageOptions options;
    options.geometry.rank = 3;
    options.geometry.axes = "tyx";
    options.geometry.shape = {kFrames, kHeight, kWidth};
    options.geometry.extent = {2, 16, 48};
    options.geometry.codec = geometry::Codec::kRaw;
    EXPECT_TRUE(volume_->make_image(movie_, options).ok());
    std::mt19937 random(3);
    data_.resize(kFrames * kFrameBytes);
    for (std::byte& one : data_) one = static_cast<std::byte>(random());
    EXPECT_TRUE(volume_->write(movie_, 0, data_, false).ok());
    EXPECT_TRUE(volume_->sync().ok());
    streams_ = std::make_unique<Streams>(*volume_, quick());
  }
  ~StreamsTest() override {
    streams_.reset();
    EXPECT_TRUE(volume_->close().ok());
  }

  static StreamOptions quick(double limit = 0.8, std::uint64_t memory_bytes = 16u << 20) {
    StreamOptions options;
    options.limit = limit;
    options.memory_bytes = memory_bytes;
    options.trial_ns = 50'000'000;
    return options;
  }
  StreamRequest request(double rate) const {
    StreamRequest request;
    request.ino = movie_;
    request.window.length = {1, kHeight, kWidth};
    request.rate = rate;
    return request;
  }
  std::uint64_t open(const StreamRequest& request) {
    const auto opened = streams_->open(request, {});
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message());
    EXPECT_TRUE(opened.ok() && opened->stream);
    return opened.ok() && opened->stream ? opened->stream->id : 0;
  }
  std::future<Result<std::optional<Delivered>>> begin_next(std::uint64_t id, const engine::Stop& stop = {}) {
    auto answer = std::make_shared<std::promise<Result<std::optional<Delivered>>>>();
    streams_->next(id, stop, [answer](Result<std::optional<Delivered>> frame) { answer->set_value(std::move(frame)); });
    return answer->get_future();
  }
  Errc error_of_next(std::uint64_t id, const engine::Stop& stop = {}) {
    const auto answer = begin_next(id, stop).get();
    EXPECT_FALSE(answer.ok());
    return answer.ok() ? Errc::kExists : answer.error().code;
  }
  // The frame, compared with what was written; UINT64_MAX at the end.
  std::uint64_t take(std::uint64_t id) {
    const auto answer = begin_next(id).get();
    EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message());
    if (!answer.ok() || !*answer) return UINT64_MAX;
    const Delivered& frame = **answer;
    EXPECT_EQ(frame.bytes->size(), kFrameBytes);
    EXPECT_EQ(std::memcmp(frame.bytes->data(), data_.data() + frame.frame * kFrameBytes, kFrameBytes), 0);
    return frame.frame;
  }

  SeededEnvironment environment_{5};
  test::MemoryDisks disks_;
  std::unique_ptr<volume::Volume> volume_;
  Ino movie_ = 0;
  ByteVector data_;
  std::unique_ptr<Streams> streams_;
};

TEST_F(StreamsTest, DeliversEveryFrameOfTheCourse) {
  const std::uint64_t id = open(request(2000));
  for (std::uint64_t frame = 0; frame < kFrames; ++frame) EXPECT_EQ(take(id), frame);
  EXPECT_EQ(take(id), UINT64_MAX);
  EXPECT_EQ(take(id), UINT64_MAX);
  ASSERT_TRUE(streams_->seek(id, 30).ok());
  EXPECT_EQ(take(id), 30u);
}

TEST_F(StreamsTest, SeveralStreamsRunAtATime) {
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(open(request(500)));
  for (std::uint64_t frame = 0; frame < kFrames; ++frame)
    for (const std::uint64_t id : ids) EXPECT_EQ(take(id), frame);
  for (const std::uint64_t id : ids) streams_->close(id);
  EXPECT_FALSE(streams_->find_from(0));
}

TEST_F(StreamsTest, ARateThatDoesNotFitIsRefusedWithTheOneThatDoes) {
  streams_ = std::make_unique<Streams>(*volume_, quick(kLeastLimit));
  StreamRequest greedy = request(1e6);
  greedy.lookahead = 1;
  const auto opened = streams_->open(greedy, {});
  ASSERT_TRUE(opened.ok());
  // Disks in memory may be as fast as that.
  if (opened->stream) GTEST_SKIP() << "the disks deliver a million frames per second";
  EXPECT_LT(opened->admission.rate_that_fits, 1e6);
  EXPECT_GT(opened->admission.rate_that_fits, 0);
  EXPECT_FALSE(streams_->find_from(0));
}

TEST_F(StreamsTest, WhatWaitsIsAnsweredWhenTheStreamCloses) {
  StreamRequest slow = request(0.01);
  slow.lookahead = 1;
  const std::uint64_t id = open(slow);
  EXPECT_EQ(take(id), 0u);
  auto waiting = begin_next(id);
  while (waiting.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready) {
    ASSERT_TRUE(waiting.get().ok());
    waiting = begin_next(id);
  }
  EXPECT_EQ(error_of_next(id), Errc::kBusy);  // a second call
  streams_->close(id);
  const auto answer = waiting.get();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Errc::kCancelled);
  EXPECT_EQ(error_of_next(id), Errc::kNoData);
}

TEST_F(StreamsTest, ACallThatIsStoppedEndsAndTheStreamGoesOn) {
  StreamRequest slow = request(0.01);
  slow.lookahead = 1;
  const std::uint64_t id = open(slow);
  EXPECT_EQ(take(id), 0u);
  Result<std::optional<Delivered>> last = std::optional<Delivered>();
  do {
    last = begin_next(id, [] { return true; }).get();
  } while (last.ok());
  EXPECT_EQ(last.error().code, Errc::kCancelled);
  ASSERT_TRUE(streams_->set_pace(id, 100, 1)->accepted);
  EXPECT_NE(take(id), UINT64_MAX);
}

// The thread that reads calls the answer. What is asked for within that call it must find itself.
TEST_F(StreamsTest, AnAnswerAtTheEndMayGoBackAndAskForAFrame) {
  StreamRequest asked = request(1000);
  asked.drops = true;
  asked.lookahead = 1;  // one thread
  asked.unchecked = true;
  const std::uint64_t id = open(asked);
  const auto again = std::make_shared<std::promise<std::uint64_t>>();
  bool went_back = false;
  std::function<void(Result<std::optional<Delivered>>)> answer = [&, again](Result<std::optional<Delivered>> frame) {
    if (!frame.ok() || (went_back && *frame)) return again->set_value(frame.ok() ? (*frame)->frame : UINT64_MAX);
    if (*frame) {  // until the time of all the others is over
      while (device::ReadPace::now_ns() < (*frame)->deadline_ns + std::int64_t{kFrames} * 1'000'000)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else {
      went_back = true;
      EXPECT_TRUE(streams_->seek(id, 0).ok());
    }
    streams_->next(id, {}, answer);
  };
  streams_->next(id, {}, answer);
  auto frame = again->get_future();
  const bool answered = frame.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  if (!answered) streams_->close(id);  // it answers with an error
  EXPECT_TRUE(answered) << "no thread reads the frame";
  EXPECT_NE(frame.get(), UINT64_MAX);
}

TEST_F(StreamsTest, TheEndOfAllStreamsAnswersWhoWaits) {
  StreamRequest slow = request(0.01);
  slow.lookahead = 1;
  const std::uint64_t id = open(slow);
  std::vector<std::future<Result<std::optional<Delivered>>>> calls;
  calls.push_back(begin_next(id));
  while (calls.back().wait_for(std::chrono::milliseconds(50)) == std::future_status::ready)
    calls.push_back(begin_next(id));
  streams_.reset();
  EXPECT_EQ(calls.back().get().error().code, Errc::kCancelled);
}

TEST_F(StreamsTest, FramesThatNeedMoreMemoryThanThereIsAreRefused) {
  streams_ = std::make_unique<Streams>(*volume_, quick(0.8, 10 * kFrameBytes));
  StreamRequest large = request(10);
  large.lookahead = 10;
  const auto opened = streams_->open(large, {});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Errc::kTooBig);
  large.lookahead = 5;
  const std::uint64_t id = open(large);
  EXPECT_FALSE(streams_->open(large, {}).ok());
  streams_->close(id);
  EXPECT_NE(open(large), 0u);
}

TEST_F(StreamsTest, AUserLeavesStreamsAndMemoryToOthers) {
  streams_ = std::make_unique<Streams>(*volume_, quick(0.8, 24 * kFrameBytes));
  StreamRequest of_user = request(1);
  of_user.lookahead = 4;
  of_user.uid = 1000;
  EXPECT_NE(open(of_user), 0u);
  EXPECT_NE(open(of_user), 0u);
  EXPECT_EQ(streams_->open(of_user, {}).error().code, Errc::kTooBig);
  StreamRequest other = of_user;
  other.uid = 1001;
  EXPECT_NE(open(other), 0u);
  other.uid = 0;
  EXPECT_NE(open(other), 0u);
}

TEST_F(StreamsTest, FramesThatWereJustWrittenHaveTheirPrice) {
  ASSERT_TRUE(volume_->allocate(movie_, 0x03 /* punch a hole, keep the size */, 0, data_.size()).ok());
  ASSERT_TRUE(volume_->sync().ok());
  ASSERT_TRUE(volume_->write(movie_, 0, data_, false).ok());
  const auto opened = streams_->open(request(10), {});
  ASSERT_TRUE(opened.ok() && opened->stream);
  EXPECT_GT(opened->admission.load, 0);
}

TEST_F(StreamsTest, HolesAreFramesOfZerosThatNeedNoDisk) {
  data_.assign(data_.size(), std::byte{0});
  ASSERT_TRUE(volume_->allocate(movie_, 0x03 /* punch a hole, keep the size */, 0, data_.size()).ok());
  ASSERT_TRUE(volume_->sync().ok());
  const std::uint64_t id = open(request(1e5));
  for (std::uint64_t frame = 0; frame < kFrames; ++frame) EXPECT_EQ(take(id), frame);
}

TEST_F(StreamsTest, AFrameThatCannotBeReadIsAnErrorAndTheNextOneFollows) {
  const std::uint64_t id = open(request(200));
  for (const auto& disk : disks_) disk->zero(8u << 20, 48u << 20);
  volume_->engine().trim_cache(0);
  ASSERT_TRUE(streams_->seek(id, 20).ok());
  unsigned failed = 0;
  for (std::uint64_t frame = 20; frame < kFrames; ++frame) failed += (*begin_next(id).get())->status.ok() ? 0 : 1;
  EXPECT_GT(failed, 0u);
  EXPECT_EQ(take(id), UINT64_MAX);
  EXPECT_EQ(streams_->find(id)->counts.failed, failed);
}

TEST_F(StreamsTest, AFrameThatCannotBeReadIsMadeFromACoarserLevel) {
  StreamRequest coarser = request(200);
  coarser.coarser = true;
  EXPECT_EQ(streams_->open(coarser, {}).error().code, Errc::kInvalidArgument);  // there is none
  ASSERT_TRUE(volume_->set_levels(movie_, 1, geometry::Reduction::kMean).ok());
  const std::size_t kLevelBytes = kFrameBytes / 4;
  ByteVector level(kFrames * kLevelBytes);
  const geometry::Window all{{0, 0, 0}, {kFrames, kHeight / 2, kWidth / 2}};
  ASSERT_TRUE(views::read_stored_level(*volume_, movie_, 1, all, 0, level, 3, {}).ok());
  ASSERT_TRUE(volume_->sync().ok());
  const std::uint64_t id = open(coarser);
  const auto page = volume_->layout(movie_, {0, 0}, 1000, {});
  ASSERT_TRUE(page.ok());
  for (const layout::ExtentPlace& row : page->rows)
    if (row.stored_bytes > 0) disks_[row.disk]->zero(row.block * page->block_size, row.stored_bytes);
  volume_->engine().trim_cache(0);
  ASSERT_TRUE(streams_->seek(id, 20).ok());
  for (std::uint64_t number = 20; number < kFrames; ++number) {
    const auto answer = begin_next(id).get();
    ASSERT_TRUE(answer.ok() && *answer && (*answer)->status.ok());
    const Delivered& frame = **answer;
    EXPECT_EQ(frame.coarser, 1u);
    for (std::uint64_t y = 0; y < kHeight; ++y)
      for (std::uint64_t x = 0; x < kWidth; ++x)
        ASSERT_EQ((*frame.bytes)[y * kWidth + x], level[number * kLevelBytes + y / 2 * (kWidth / 2) + x / 2]);
  }
  EXPECT_EQ(streams_->find(id)->counts.coarser, kFrames - 20);
  EXPECT_EQ(streams_->find(id)->counts.failed, 0u);
}

TEST_F(StreamsTest, AStreamAtItsEndDeliversNothingAgainAtAnotherPace) {
  const std::uint64_t id = open(request(2000));
  for (std::uint64_t frame = 0; frame < kFrames; ++frame) EXPECT_EQ(take(id), frame);
  ASSERT_TRUE(streams_->set_pace(id, 1000, 1).ok());
  EXPECT_EQ(take(id), UINT64_MAX);
  ASSERT_TRUE(streams_->set_pace(id, 1000, -1).ok());
  EXPECT_EQ(take(id), kFrames - 2);
}

TEST_F(StreamsTest, BackwardsAndAlongAnotherAxisFramesThatAreReadTogetherAreCutRight) {
  StreamRequest columns = request(2000);
  columns.axis = 2;
  columns.step = -1;
  columns.window.start = {0, 0, kWidth - 3};
  columns.window.length = {kFrames, kHeight, 3};
  columns.lookahead = 8;
  const std::uint64_t id = open(columns);
  for (std::uint64_t number = kWidth / 3; number-- > 0;) {
    const auto answer = begin_next(id).get();
    ASSERT_TRUE(answer.ok() && *answer && (*answer)->status.ok());
    EXPECT_EQ((*answer)->frame, number);
    for (std::uint64_t row = 0; row < kFrames * kHeight; ++row)
      ASSERT_EQ(std::memcmp((*answer)->bytes->data() + row * 3, data_.data() + row * kWidth + number * 3, 3), 0);
  }
}

}  // namespace
}  // namespace mdfs::streams
