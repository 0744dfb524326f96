// The table of errors and the way errors travel.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/result.h"

namespace mdfs {
namespace {

TEST(ErrorTest, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const ErrcInfo& row : error_table()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

TEST(ErrorTest, EveryCodeHasAnErrnoAndAFailingExitCode) {
  for (const ErrcInfo& row : error_table()) {
    EXPECT_NE(row.posix_errno, 0) << row.name;
    EXPECT_NE(row.exit_code, 0) << row.name;
  }
}

TEST(ErrorTest, AnUnknownErrnoBecomesIoAndKeepsItsText) {
  const Error error = from_errno(ECHILD, "disk0");
  EXPECT_EQ(error.code, Errc::kIo);
  EXPECT_NE(error.where.find("No child"), std::string::npos);
}

TEST(ErrorTest, WithinAnotherErrorNoCategoryComesTwice) {
  const Error error{Errc::kIo, "/disks/d0: write"};
  EXPECT_EQ(error.within(Errc::kIo), "/disks/d0: write");
  EXPECT_EQ(error.within(Errc::kReadOnly), "input/output error: /disks/d0: write");
  EXPECT_EQ((Error{Errc::kIo, ""}).within(Errc::kIo), "input/output error");
}

Result<int> half(int n) {
  if (n % 2 != 0) return Error{Errc::kInvalidArgument, "odd"};
  return n / 2;
}

Result<int> quarter(int n) {
  MDFS_TRY_ASSIGN(const int h, half(n));
  return half(h);
}

TEST(ResultTest, TryPassesTheValueOrTheErrorOn) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace mdfs
