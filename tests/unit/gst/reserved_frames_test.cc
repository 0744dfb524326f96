// Frames of a stream that a test plays, one call after another.
// SPDX-License-Identifier: Apache-2.0
#include "reserved_frames.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace mdfs::gst {
namespace {

using Stream = FrameStream<std::string>;

// What a stream is told, and what it still has. It outlives the frames.
struct Script {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t next = 0, step = 1, frames = 100;
  bool open = true;  // next() has a frame
  bool stopped = false, behind = false;
  std::string broken;  // the error that ends the stream
  std::string refusal, lost;
  std::vector<std::int64_t> delivered, sought;
  std::vector<double> speeds;

  void set(bool Script::*field, bool value) {
    const std::lock_guard lock(mutex);
    this->*field = value;
    changed.notify_all();
  }
  std::vector<std::int64_t> seeks() {
    const std::lock_guard lock(mutex);
    return sought;
  }
  void wait_for_seeks(std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return sought.size() >= count; });
  }
  std::size_t deliveries() {
    const std::lock_guard lock(mutex);
    return delivered.size();
  }
  void wait_for(std::size_t deliveries) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return delivered.size() >= deliveries; });
  }
};

class ScriptedStream final : public Stream {
 public:
  explicit ScriptedStream(Script& script) : script_(script) {}

  std::optional<Arrived> next() override {
    std::unique_lock lock(script_.mutex);
    script_.changed.wait(lock, [&] { return script_.open || script_.stopped; });
    if (script_.stopped || script_.next < 0 || script_.next >= script_.frames) return std::nullopt;
    if (!script_.broken.empty()) return Arrived{0, "", script_.broken, false};
    const std::int64_t number = script_.next;
    script_.next += script_.step;
    script_.delivered.push_back(number);
    script_.changed.notify_all();
    return Arrived{number, "frame " + std::to_string(number), "", std::exchange(script_.behind, false)};
  }
  void stop() override { script_.set(&Script::stopped, true); }
  std::string seek(std::int64_t frame) override {
    const std::lock_guard lock(script_.mutex);
    script_.sought.push_back(frame);
    script_.changed.notify_all();
    script_.next = frame;
    return script_.lost;
  }
  std::string set_pace(double speed, std::int64_t step) override {
    const std::lock_guard lock(script_.mutex);
    if (!script_.refusal.empty()) return script_.refusal;
    script_.speeds.push_back(speed);
    script_.step = step;
    return {};
  }
  std::string failure(std::string error) const override { return "error: " + error; }

 private:
  Script& script_;
};

struct ReservedFramesTest : testing::Test {
  Script script;
  static constexpr std::size_t kAhead = 8;
  ReservedFrames<std::string> frames{std::make_unique<ScriptedStream>(script), kAhead};

  void expect(std::int64_t first, std::int64_t last, std::int64_t step = 1) {
    for (std::int64_t frame = first; (last - frame) * step >= 0; frame += step)
      ASSERT_EQ(frames.take(frame), "frame " + std::to_string(frame));
  }
};

TEST_F(ReservedFramesTest, FramesComeInOrderWithoutASeekBetweenThem) {
  frames.begin({0, 99, 1});
  expect(0, 99);
  EXPECT_EQ(script.seeks(), std::vector<std::int64_t>{0});
  EXPECT_TRUE(script.speeds.empty());
}

TEST_F(ReservedFramesTest, NothingIsReadBeforeAnOrder) {
  frames.resume();
  frames.interrupt(true);
  frames.interrupt(false);
  EXPECT_TRUE(script.seeks().empty());
  EXPECT_TRUE(script.delivered.empty());
}

TEST_F(ReservedFramesTest, ASmallSkipWaitsAndALargeOneSeeks) {
  frames.begin({0, 99, 1});
  expect(0, 3);
  expect(7, 12);
  EXPECT_EQ(script.seeks(), std::vector<std::int64_t>{0});
  expect(60, 70);
  EXPECT_EQ(script.seeks(), (std::vector<std::int64_t>{0, 60}));
}

TEST_F(ReservedFramesTest, BackwardsAndFasterIsAnotherPace) {
  EXPECT_EQ(frames.set_speed(-2), "");
  frames.begin({90, 10, -1});
  expect(90, 10, -1);
  EXPECT_EQ(script.speeds, std::vector<double>{-2});
  EXPECT_EQ(frames.set_speed(1), "");
  EXPECT_EQ(frames.set_speed(1), "");
  frames.begin({10, 20, 1});
  expect(10, 20);
  EXPECT_EQ(script.speeds, (std::vector<double>{-2, 1}));
}

TEST_F(ReservedFramesTest, ARefusedPaceSaysWhyAndTheOrderBeforeContinues) {
  frames.begin({0, 99, 1});
  expect(0, 4);
  script.refusal = "disk 3 has time for 20";
  EXPECT_EQ(frames.set_speed(4), "disk 3 has time for 20");
  expect(5, 20);
  EXPECT_EQ(script.seeks(), std::vector<std::int64_t>{0});
}

TEST_F(ReservedFramesTest, AnOrderBehindTheEndOfTheStreamBeginsAgain) {
  frames.begin({95, 99, 1});
  expect(95, 99);
  frames.begin({10, 20, 1});
  expect(10, 20);
}

TEST_F(ReservedFramesTest, AFrameThatTheStreamDoesNotHaveIsAnErrorAndNoEndlessSearch) {
  script.frames = 50;
  frames.begin({48, 99, 1});
  expect(48, 49);
  EXPECT_EQ(frames.take(50), "error: frame 50 is missing");
}

TEST_F(ReservedFramesTest, TheEndOfTheStreamIsTheErrorOfEveryFrameFromThereOn) {
  frames.begin({0, 99, 1});
  script.wait_for(2);
  script.set(&Script::open, false);
  {
    const std::lock_guard lock(script.mutex);
    script.broken = "the stream was closed";
  }
  script.set(&Script::open, true);
  std::int64_t frame = 0;
  while (frames.take(frame) == "frame " + std::to_string(frame)) ++frame;
  EXPECT_LT(frame, 40);
  EXPECT_EQ(frames.take(frame), "error: the stream was closed");
  EXPECT_EQ(frames.take(frame + 1), "error: the stream was closed");
}

TEST_F(ReservedFramesTest, ASeekThatFailsIsTheErrorOfTheNextFrame) {
  script.lost = "frame 7: the axis has fewer frames";
  frames.begin({7, 9, 1});
  EXPECT_EQ(frames.take(7), "error: frame 7: the axis has fewer frames");
}

TEST_F(ReservedFramesTest, NoFrameIsHandedOutBeforeAsManyAreThereAsTheStreamReadsAhead) {
  frames.begin({0, 99, 1});
  expect(0, 0);
  EXPECT_GE(script.deliveries(), kAhead);
  frames.begin({96, 99, 1});  // there are fewer
  expect(96, 99);
}

TEST_F(ReservedFramesTest, AnInterruptEndsTheWaitForAFrame) {
  script.open = false;
  frames.begin({0, 99, 1});
  std::optional<std::string> taken = "nothing yet";
  std::thread taker([&] { taken = frames.take(0); });
  frames.interrupt(true);
  taker.join();
  EXPECT_FALSE(taken);
  frames.interrupt(false);
  script.set(&Script::open, true);
  expect(0, 10);
}

TEST_F(ReservedFramesTest, ItEndsWhileTheStreamHasNoFrame) {
  script.open = false;
  frames.begin({0, 99, 1});
}

TEST_F(ReservedFramesTest, TimesBeginAnewAfterAPauseAndWhenFramesAreTakenSlowlyAndNoFrameIsMissed) {
  frames.begin({0, 99, 1});
  expect(0, 9);
  script.wait_for(10 + 2 * kAhead);
  while (script.seeks().size() < 2) frames.resume();  // once the last of these is there
  expect(10, 19);
  script.set(&Script::behind, true);
  expect(20, 49);
  script.wait_for_seeks(3);
  expect(50, 99);
}

TEST_F(ReservedFramesTest, SeeksAndPausesAtOnceEndWithTheRightFrames) {
  for (int round = 0; round < 200; ++round) {
    const std::int64_t first = round * 37 % 90;
    frames.begin({first, 99, 1});
    std::thread plays([&] { frames.resume(); });
    expect(first, first + round % 7);
    plays.join();
  }
}

}  // namespace
}  // namespace mdfs::gst
