// UUIDs and the seeded environment.
// SPDX-License-Identifier: Apache-2.0
#include "base/uuid.h"

#include <gtest/gtest.h>

#include "base/environment.h"

namespace mdfs {
namespace {

TEST(UuidTest, TextReadsBackAsTheSameUuid) {
  SeededEnvironment environment(7);
  const Uuid uuid = environment.new_uuid();
  EXPECT_EQ(Uuid::parse(uuid.to_string()), uuid);
}

TEST(UuidTest, MalformedTextIsRefused) {
  EXPECT_FALSE(Uuid::parse(""));
  EXPECT_FALSE(Uuid::parse("00000000-0000-0000-0000-00000000000g"));
  EXPECT_FALSE(Uuid::parse("00000000+0000-0000-0000-000000000000"));
}

TEST(SeededEnvironmentTest, EqualSeedsGiveEqualUuids) {
  SeededEnvironment a(1), b(1);
  EXPECT_EQ(a.new_uuid(), b.new_uuid());
  EXPECT_EQ(a.now_ns(), b.now_ns());
}

}  // namespace
}  // namespace mdfs
