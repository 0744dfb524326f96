// SPDX-License-Identifier: Apache-2.0
#include "fuse/standby.h"

#include <gtest/gtest.h>

#include <vector>

namespace mdfs::fuse {
namespace {

struct Outcome {
  Status status;
  std::vector<std::string> notices;
  unsigned pauses = 0;
};

Outcome stand_by_with(std::vector<Status> results) {
  Outcome outcome;
  std::size_t next = 0;
  outcome.status =
      stand_by([&] { return results.at(next++); }, [&](const std::string& line) { outcome.notices.push_back(line); },
               [&] { ++outcome.pauses; });
  EXPECT_EQ(next, results.size());
  return outcome;
}

const Status kInUse = Error{Errc::kBusy, "in use by alpha"};

TEST(StandbyTest, AVolumeThatNobodyUsesIsTakenAtOnce) {
  const Outcome outcome = stand_by_with({Status{}});
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.pauses, 0U);
  EXPECT_TRUE(outcome.notices.empty());
}

TEST(StandbyTest, AReasonIsToldOnceAndANewOneAgain) {
  const Status other = Error{Errc::kBusy, "in use by beta"};
  const Outcome outcome = stand_by_with({kInUse, kInUse, other, other, kInUse, Status{}});
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.pauses, 5U);
  ASSERT_EQ(outcome.notices.size(), 3U);
  EXPECT_NE(outcome.notices[0].find("in use by alpha"), std::string::npos);
  EXPECT_NE(outcome.notices[1].find("in use by beta"), std::string::npos);
}

TEST(StandbyTest, WhatCannotBeReachedIsWaitedForOnceThereWasSomethingToWaitFor) {
  for (const Errc code : {Errc::kIo, Errc::kNotFound, Errc::kMissingDisk}) {
    const Status away = Error{code, "away"};
    EXPECT_TRUE(stand_by_with({kInUse, away, kInUse, away, Status{}}).status.ok());
    const Outcome at_once = stand_by_with({away});
    ASSERT_FALSE(at_once.status.ok());
    EXPECT_EQ(at_once.status.error().code, code);
  }
}

TEST(StandbyTest, WhatDoesNotPassEndsTheWaiting) {
  for (const Errc code : {Errc::kUsage, Errc::kInvalidArgument, Errc::kCorrupt, Errc::kAccessDenied}) {
    const Outcome outcome = stand_by_with({kInUse, Error{code, "no"}});
    ASSERT_FALSE(outcome.status.ok());
    EXPECT_EQ(outcome.status.error().code, code);
  }
}

}  // namespace
}  // namespace mdfs::fuse
