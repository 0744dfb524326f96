// Which descriptors hear of a failed write.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/failed_writes.h"

#include <gtest/gtest.h>

namespace mdfs::fuse {
namespace {

using Seen = std::atomic<std::uint64_t>;

TEST(FailedWrites, EachDescriptorThatWasOpenHearsOfAFailureOnce) {
  FailedWrites writes;
  Seen first{writes.last()}, second{writes.last()};
  EXPECT_EQ(writes.take(7, first), std::nullopt);
  writes.note(7, Errc::kNoSpace);
  Seen later{writes.last()};
  EXPECT_EQ(writes.take(7, first), Errc::kNoSpace);
  EXPECT_EQ(writes.take(7, first), std::nullopt);
  EXPECT_EQ(writes.take(7, second), Errc::kNoSpace);
  EXPECT_EQ(writes.take(7, later), std::nullopt) << "opened after the failure";
  writes.note(7, Errc::kIo);
  EXPECT_EQ(writes.take(7, first), Errc::kIo);
  EXPECT_EQ(writes.take(7, later), Errc::kIo);
}

TEST(FailedWrites, AFailureOfAnotherFileIsNone) {
  FailedWrites writes;
  Seen seen{writes.last()};
  writes.note(8, Errc::kNoSpace);
  EXPECT_EQ(writes.take(7, seen), std::nullopt);
  writes.note(7, Errc::kNoSpace);
  EXPECT_EQ(writes.take(7, seen), Errc::kNoSpace);
}

TEST(FailedWrites, AFileThatTheKernelHasForgottenHasNone) {
  FailedWrites writes;
  Seen seen{writes.last()};
  writes.note(7, Errc::kNoSpace);
  writes.forget(7);
  EXPECT_EQ(writes.take(7, seen), std::nullopt);
}

}  // namespace
}  // namespace mdfs::fuse
