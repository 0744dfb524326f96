// A program that cannot continue prints the reason, whatever the exception has met on its way.
// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace mdfs {
namespace {

[[noreturn]] void no_thread() {
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "thread");
}

// As where the second of two threads cannot be started: the first one still runs when it is destroyed.
void start_two_threads() {
  const std::thread first([] { std::this_thread::sleep_for(std::chrono::hours(1)); });
  no_thread();
}

TEST(CheckDeathTest, AThreadThatCannotBeStartedEndsTheProgramInWords) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto end = [](void (*what)()) {
    end_when_out_of_memory();
    [what]() noexcept { what(); }();
  };
  EXPECT_DEATH(end(no_thread), "out of memory or of threads");
  EXPECT_DEATH(end(start_two_threads), "out of memory or of threads");
  EXPECT_DEATH(end([] { throw std::runtime_error("a library"); }), "an exception \\(a library\\)");
}

}  // namespace
}  // namespace mdfs
