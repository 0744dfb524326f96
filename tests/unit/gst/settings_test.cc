// Properties of mdfssrc: what is allowed.
// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <gtest/gtest.h>

#include <climits>

namespace mdfs::gst {
namespace {

Settings good() {
  Settings settings;
  settings.location = "mnt/shot";
  return settings;
}

void expect_complaint(const Settings& settings, const std::string& words) {
  EXPECT_NE(complaint_about(settings).find(words), std::string::npos) << complaint_about(settings);
}

TEST(SettingsTest, WhatIsNotAllowedIsNamedWithItsValue) {
  EXPECT_EQ(complaint_about(good()), "");
  Settings settings;
  expect_complaint(settings, "location is not set");
  for (const int level : {-1, 63, INT_MIN, INT_MAX}) {
    settings = good();
    settings.level = level;
    expect_complaint(settings, "level is " + std::to_string(level) + ": allowed are 0 to 62");
  }
  for (const int lookahead : {-1, 0, 257}) {
    settings = good();
    settings.lookahead = lookahead;
    expect_complaint(settings, "lookahead is " + std::to_string(lookahead) + ": allowed are 1 to 256");
  }
  settings = good();
  settings.coarser = true;
  expect_complaint(settings, "reserve=true is missing");
  settings.reserve = true;
  EXPECT_EQ(complaint_about(settings), "");
  settings = good();
  settings.fps = {-3, 1};
  expect_complaint(settings, "fps is -3/1: allowed are");
  settings.fps = {INT_MAX, 1};
  expect_complaint(settings, "fps is 2147483647/1");
}

TEST(SettingsTest, ARateOf0IsThatOfTheImage) {
  Settings settings = good();
  EXPECT_EQ(chosen_rate(settings), std::nullopt);
  settings.fps = {30000, 1001};
  EXPECT_EQ(chosen_rate(settings), (FrameRate{30000, 1001}));
}

TEST(SettingsTest, TheLevelIsAnItemOfTheWindow) {
  Settings settings = good();
  EXPECT_EQ(window_spec(settings), "all");
  settings.level = 2;
  EXPECT_EQ(window_spec(settings), "l2");
  settings.window = "all";
  EXPECT_EQ(window_spec(settings), "l2");
  settings.window = "y0+10,c1";
  EXPECT_EQ(window_spec(settings), "l2,y0+10,c1");
  settings.level = 0;
  EXPECT_EQ(window_spec(settings), "y0+10,c1");
}

TEST(SettingsTest, TheLookaheadHasAtMostSoManyBytes) {
  Settings settings = good();
  settings.lookahead = 256;
  EXPECT_EQ(frames_ahead(settings, 1000), 256u);
  EXPECT_EQ(frames_ahead(settings, 100u << 20), 10u);
  EXPECT_EQ(frames_ahead(settings, kMaxLookaheadBytes), 1u);
  EXPECT_EQ(frames_ahead(settings, kMaxLookaheadBytes + 1), 1u);
  settings.lookahead = 3;
  EXPECT_EQ(frames_ahead(settings, 100u << 20), 3u);
}

}  // namespace
}  // namespace mdfs::gst
