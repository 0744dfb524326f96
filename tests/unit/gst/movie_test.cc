// Windows as movies: axes, frames, limits.
// SPDX-License-Identifier: Apache-2.0
#include "movie.h"

#include <gtest/gtest.h>
#include <mdfs/ondisk.h>

#include <cstring>
#include <initializer_list>
#include <vector>

namespace mdfs::gst {
namespace {

mdfs_ioc_geometry geometry(const char* axes, std::initializer_list<std::uint64_t> shape, std::uint16_t channels = 1,
                           std::uint8_t type = MDFS_TYPE_U8) {
  mdfs_ioc_geometry made{};
  made.rank = static_cast<std::uint8_t>(shape.size());
  made.type = type;
  made.channels = channels;
  std::copy(shape.begin(), shape.end(), made.shape);
  std::strncpy(made.axes, axes, sizeof made.axes - 1);
  return made;
}

mdfs_ioc_window whole(const mdfs_ioc_geometry& image) {
  mdfs_ioc_window window{};
  window.rank = image.rank;
  window.channel = -1;
  std::copy_n(image.shape, image.rank, window.length);
  return window;
}

struct MovieTest : testing::Test {
  std::string why;
  std::optional<Movie> movie(const mdfs_ioc_geometry& image, const mdfs_ioc_window& window,
                             std::optional<FrameRate> rate = {}) {
    return describe(image, window, false, rate, why);
  }
};

TEST_F(MovieTest, TheAxisOfTimeCountsTheFrames) {
  const auto film = geometry("tyx", {48, 360, 640}, 3);
  const auto found = movie(film, whole(film));
  ASSERT_TRUE(found) << why;
  EXPECT_EQ(found->axis, 0u);
  EXPECT_EQ(found->frames, 48u);
  EXPECT_EQ(found->width, 640u);
  EXPECT_EQ(found->height, 360u);
  EXPECT_EQ(found->pixels.name, std::string("RGB"));
  EXPECT_EQ(found->rate, (FrameRate{24, 1}));
}

TEST_F(MovieTest, WithoutTimeTheFirstAxisCountsThem) {
  const auto stack = geometry("zyx", {64, 20, 30});
  EXPECT_EQ(movie(stack, whole(stack))->axis, 0u);
  const auto slow_columns = geometry("ytx", {20, 7, 30});
  const auto found = movie(slow_columns, whole(slow_columns));
  EXPECT_EQ(found->axis, 1u);
  EXPECT_EQ(found->frames, 7u);
  EXPECT_EQ(found->height, 20u);
}

TEST_F(MovieTest, AFrameIsWhatTheWindowDoesNotFix) {
  const auto volumes = geometry("tzyx", {9, 8, 20, 30});
  auto window = whole(volumes);
  EXPECT_FALSE(movie(volumes, window));
  EXPECT_NE(why.find("the window leaves z, y, x beside t"), std::string::npos) << why;
  EXPECT_NE(why.find("window=z0"), std::string::npos) << why;
  window.start[1] = 3;
  window.length[1] = 1;
  auto found = movie(volumes, window);
  ASSERT_TRUE(found) << why;
  EXPECT_EQ(found->height, 20u);
  EXPECT_EQ(found->width, 30u);
  window.length[1] = 8;
  window.length[2] = 1;
  found = movie(volumes, window);
  ASSERT_TRUE(found) << why;
  EXPECT_EQ(found->rows, 1u);
  EXPECT_EQ(found->columns, 3u);
  window.length[1] = 1;
  window.length[3] = 1;
  found = movie(volumes, window);
  ASSERT_TRUE(found) << why;
  EXPECT_EQ(found->rows, 2u) << "the fastest of the fixed axes";
  EXPECT_EQ(found->columns, 3u);
}

TEST_F(MovieTest, AWindowOfTimeIsAPartOfTheMovie) {
  const auto film = geometry("tyx", {48, 360, 640});
  auto window = whole(film);
  window.start[0] = 10;
  window.length[0] = 5;
  const auto found = movie(film, window);
  EXPECT_EQ(found->frames, 5u);
  const auto frame = window_of_frame(window, *found, 2);
  EXPECT_EQ(frame.start[0], 12u);
  EXPECT_EQ(frame.length[0], 1u);
  EXPECT_EQ(frame.length[2], 640u);
}

TEST_F(MovieTest, AChannelIsGrey) {
  const auto film = geometry("tyx", {48, 360, 640}, 2);
  auto window = whole(film);
  EXPECT_FALSE(movie(film, window));
  EXPECT_NE(why.find("2 channels of u8 cannot be shown: allowed are 1, 3 or 4 channels"), std::string::npos) << why;
  window.channel = 1;
  EXPECT_EQ(movie(film, window)->pixels.name, std::string("GRAY8"));
}

TEST_F(MovieTest, ThePictureOfTwoAxesIsNone) {
  const auto picture = geometry("yx", {360, 640});
  EXPECT_FALSE(movie(picture, whole(picture)));
  EXPECT_NE(why.find("an image of 2 axes is no movie"), std::string::npos) << why;
}

TEST_F(MovieTest, TheRateIsThatOfTheUserOrOfTheImage) {
  auto film = geometry("tyx", {48, 360, 640});
  film.spacing[0] = 40;
  std::strcpy(film.unit[0], "ms");
  EXPECT_EQ(movie(film, whole(film))->rate, (FrameRate{25, 1}));
  EXPECT_EQ(movie(film, whole(film), FrameRate{50, 1})->rate, (FrameRate{50, 1}));
  std::strcpy(film.unit[0], "um");
  EXPECT_EQ(movie(film, whole(film))->rate, (FrameRate{24, 1}));
}

TEST_F(MovieTest, WhatIsTooLargeOrTooLongIsRefused) {
  const auto wide = geometry("tyx", {2, 1, kMaxSide + 1});
  EXPECT_FALSE(movie(wide, whole(wide)));
  EXPECT_NE(why.find("too large"), std::string::npos) << why;
  const auto large = geometry("tyx", {2, 1 << 15, (1 << 15) + 1});
  EXPECT_FALSE(movie(large, whole(large)));
  const auto fits = geometry("tyx", {2, 1 << 15, 1 << 15});
  EXPECT_TRUE(movie(fits, whole(fits))) << why;
  const auto huge = geometry("tyx", {2, std::uint64_t{1} << 40, std::uint64_t{1} << 40});
  EXPECT_FALSE(movie(huge, whole(huge)));
  const auto with_alpha = geometry("tyx", {2, 1 << 14, 1 << 13}, 3, MDFS_TYPE_U16);
  EXPECT_TRUE(movie(with_alpha, whole(with_alpha))) << "1 GiB with the alpha";
  const auto endless = geometry("tyx", {std::uint64_t{1} << 50, 1, 1});
  EXPECT_TRUE(movie(endless, whole(endless), FrameRate{1'000'000, 1})) << why;
  EXPECT_FALSE(movie(endless, whole(endless), FrameRate{1, 1'000'000}));
  EXPECT_NE(why.find("set a higher fps"), std::string::npos) << why;
}

}  // namespace
}  // namespace mdfs::gst
