// SPDX-License-Identifier: Apache-2.0
#include "device/rados/pool_room.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mdfs::device {
namespace {

std::string answer(const std::string& stats) {
  return fmt::format(R"({{"stats": {{"total_bytes": 9}}, "pools": [
    {{"name": "other", "id": 1, "stats": {{"max_avail": 7}}}},
    {{"name": "images", "id": 2, "stats": {{{}}}}}]}})",
                     stats);
}

TEST(PoolRoomTest, IsWhatTheOsdsAndTheQuotasLeave) {
  const auto room = [](const std::string& stats) { return pool_room(answer(stats), "images", 100); };
  EXPECT_EQ(room(R"("max_avail": 5000, "stored": 900, "objects": 3, "quota_bytes": 0, "quota_objects": 0)"), 5000U);
  EXPECT_EQ(room(R"("max_avail": 5000, "stored": 900, "objects": 3, "quota_bytes": 1000, "quota_objects": 0)"), 100U);
  EXPECT_EQ(room(R"("max_avail": 50, "stored": 900, "objects": 3, "quota_bytes": 1000, "quota_objects": 0)"), 50U);
  EXPECT_EQ(room(R"("max_avail": 5000, "stored": 1900, "objects": 3, "quota_bytes": 1000, "quota_objects": 0)"), 0U);
  EXPECT_EQ(room(R"("max_avail": 5000, "stored": 900, "objects": 3, "quota_bytes": 0, "quota_objects": 10)"), 700U);
  EXPECT_EQ(room(R"("max_avail": 5000, "objects": 3, "quota_objects": 18446744073709551615)"), 5000U);
  EXPECT_EQ(room(R"("max_avail": 5.5e3)"), 5500U);  // of older monitors
}

TEST(PoolRoomTest, WhatDoesNotSayItIsNoFigure) {
  for (const char* const text :
       {"", "{", "[]", "7", R"({"pools": 7})", R"({"pools": [7]})", R"({"pools": [{"name": "images"}]})",
        R"({"pools": [{"name": "images", "stats": 7}]})", R"({"pools": [{"name": "images", "stats": {}}]})",
        R"({"pools": [{"name": "images", "stats": {"max_avail": "x"}}]})"})
    EXPECT_EQ(pool_room(text, "images", 100), std::nullopt) << text;
  EXPECT_EQ(pool_room(answer(R"("max_avail": 5000)"), "no such pool", 100), std::nullopt);
}

TEST(PoolRoomTest, WritesCountUntilTheMeasurementAfterTheNext) {
  RoomEstimate room;
  room.wrote(10);
  EXPECT_EQ(room.bytes(), UINT64_MAX);
  room.measured(100);
  EXPECT_EQ(room.bytes(), 90U);
  room.wrote(20);
  EXPECT_EQ(room.bytes(), 70U);
  room.measured(90);
  EXPECT_EQ(room.bytes(), 70U);
  room.measured(70);
  EXPECT_EQ(room.bytes(), 70U);
  room.wrote(71);
  EXPECT_EQ(room.bytes(), 0U);
}

}  // namespace
}  // namespace mdfs::device
