// One question for all who ask for the condition of a disk at the same time.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/shared_look.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace mdfs::device {
namespace {

constexpr std::chrono::seconds kLong(60);
constexpr std::chrono::milliseconds kShort(5);

TEST(SharedLookTest, EachCallGetsAnAnswerToAQuestionThatBeganAfterIt) {
  std::atomic<std::uint64_t> size{1};
  SharedLook look([&] { return Condition{size, false}; }, {0, false}, kLong);
  for (std::uint64_t now = 1; now < 200; ++now) {
    size = now;
    const auto found = look.condition();
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->size_bytes, now);
  }
}

TEST(SharedLookTest, ManyCallersShareAFewQuestions) {
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  std::atomic<unsigned> questions{0}, ended{0};
  constexpr unsigned kCallers = 16;
  {
    SharedLook look(
        [&] {
          ++questions;
          open.wait();
          return Condition{7, false};
        },
        {0, false}, kLong);
    std::vector<std::thread> callers;
    for (unsigned i = 0; i < kCallers; ++i)
      callers.emplace_back([&] {
        const auto found = look.condition();
        if (found.ok() && found->size_bytes == 7) ++ended;
      });
    gate.set_value();
    for (std::thread& caller : callers) caller.join();
  }
  EXPECT_EQ(ended, kCallers);
  EXPECT_LE(questions, kCallers);
}

TEST(SharedLookTest, WithoutAnAnswerInTimeTheLastOneCounts) {
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  SharedLook look(
      [&] {
        open.wait();
        return Condition{7, true};
      },
      {5, false}, kShort);
  for (unsigned i = 0; i < 3; ++i) {
    const auto found = look.condition();
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->size_bytes, 5u);
    EXPECT_FALSE(found->deleted);
  }
  gate.set_value();
  while (true) {
    const auto found = look.condition();
    ASSERT_TRUE(found.ok());
    if (found->deleted) break;
  }
}

TEST(SharedLookTest, AnErrorIsTheAnswerAsWell) {
  SharedLook look([] { return Error{Errc::kIo, "its lock was broken"}; }, {5, false}, kLong);
  EXPECT_EQ(look.condition().error().code, Errc::kIo);
}

TEST(SharedLookTest, ItEndsWithoutAQuestion) {
  const SharedLook look([] { return Condition{1, false}; }, {5, false}, kLong);
}

}  // namespace
}  // namespace mdfs::device
