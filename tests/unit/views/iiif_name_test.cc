// Requests of the IIIF Image API, and the windows that answer them.
// SPDX-License-Identifier: Apache-2.0
#include "views/iiif_name.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "geometry/level.h"
#include "small_image.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;

ZoomPicture photo(std::uint64_t height, std::uint64_t width, unsigned channels = 3) {
  auto picture = zoom_picture(make("yx", {height, width}, channels, ElementType::kU8), {});
  EXPECT_TRUE(picture.ok());
  return *picture;
}

Result<WindowName> find_picture(const ZoomPicture& picture, std::string_view path) {
  IiifName name;
  while (name.kind != IiifKind::kRotation) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    MDFS_TRY_ASSIGN(name, iiif_entry(picture, name, path.substr(0, slash)));
    path.remove_prefix(std::min(path.size(), slash + 1));
  }
  return iiif_picture(picture, name, path);
}

TEST(IiifName, WhatViewersAskForIsAWindowOfALevel) {
  const ZoomPicture picture = photo(2500, 2701);
  const auto expect = [&](std::string_view path, unsigned level, geometry::Coord start, geometry::Coord length) {
    const auto found = find_picture(picture, path);
    ASSERT_TRUE(found.ok()) << path;
    EXPECT_EQ(found->level, level) << path;
    EXPECT_EQ(found->window.start, start) << path;
    EXPECT_EQ(found->window.length, length) << path;
    EXPECT_EQ(found->format, Format::kJpg);
  };
  expect("full/max/0/default.jpg", 0, {0, 0, 0}, {2500, 2701, 0});
  expect("0,0,256,256/256,256/0/default.jpg", 0, {0, 0, 0}, {256, 256, 0});
  expect("2048,0,653,1024/327,512/0/default.jpg", 1, {0, 1024, 0}, {512, 327, 0});
  expect("2048,2048,653,452/164,113/0/default.jpg", 2, {512, 512, 0}, {113, 164, 0});
  expect("0,0,2701,2500/338,313/0/default.jpg", 3, {0, 0, 0}, {313, 338, 0});
  expect("full/338,313/0/default.jpg", 3, {0, 0, 0}, {313, 338, 0});
  expect("full/338,/0/default.jpg", 3, {0, 0, 0}, {313, 338, 0});
  expect("full/,313/0/default.jpg", 3, {0, 0, 0}, {313, 338, 0});
  expect("full/1,1/0/default.jpg", 12, {0, 0, 0}, {1, 1, 0});
  expect("square/max/0/default.jpg", 0, {0, 100, 0}, {2500, 2500, 0});
  expect("2600,2400,1000,1000/max/0/default.jpg", 0, {2400, 2600, 0}, {100, 101, 0});
}

TEST(IiifName, WhatNoLevelHasDoesNotExist) {
  const ZoomPicture picture = photo(300, 500);
  for (const char* path :
       {"full/max/0/default.png", "full/max/90/default.jpg", "full/max/!0/default.jpg", "full/max/0/gray.jpg",
        "full/100,100/0/default.jpg", "full/^1000,600/0/default.jpg", "full/,/0/default.jpg", "full/250/0/default.jpg",
        "1,0,256,256/128,128/0/default.jpg", "0,0,255,256/128,128/0/default.jpg", "500,0,1,1/max/0/default.jpg",
        "0,0,0,1/max/0/default.jpg", "0,0,1/max/0/default.jpg", "0,0,1,1,1/max/0/default.jpg",
        "pct:0,0,50,50/max/0/default.jpg", "-1,0,1,1/max/0/default.jpg", "00,0,1,1/max/0/default.jpg",
        "18446744073709551615,0,1,1/max/0/default.jpg", ",,,/max/0/default.jpg"})
    EXPECT_EQ(find_picture(picture, path).error().code, Errc::kNotFound) << path;
  EXPECT_TRUE(find_picture(picture, "0,0,18446744073709551615,18446744073709551615/max/0/default.jpg").ok());
}

RC_GTEST_PROP(IiifName, EveryTileOfTheDescriptionIsInsideItsLevel, ()) {
  const ZoomPicture picture = photo(*rc::gen::inRange(1, 1500), *rc::gen::inRange(1, 1500), 1);
  const auto info = nlohmann::json::parse(iiif_info(picture, "/scan@/iiif"));
  const std::uint64_t side = info["tiles"][0]["width"], width = info["width"], height = info["height"];
  for (const std::uint64_t scale : info["tiles"][0]["scaleFactors"]) {
    for (std::uint64_t y = 0; y < height; y += side * scale) {
      for (std::uint64_t x = 0; x < width; x += side * scale) {
        const std::uint64_t w = std::min(side * scale, width - x), h = std::min(side * scale, height - y);
        const auto found = find_picture(picture, fmt::format("{},{},{},{}/{},{}/0/default.jpg", x, y, w, h,
                                                             (w + scale - 1) / scale, (h + scale - 1) / scale));
        RC_ASSERT(found.ok());
        RC_ASSERT(geometry::check(geometry::level_geometry(picture.image, found->level), found->window).ok());
      }
    }
  }
  for (const auto& size : info["sizes"])
    RC_ASSERT(find_picture(picture, fmt::format("full/{},{}/0/default.jpg", size["width"].get<std::uint64_t>(),
                                                size["height"].get<std::uint64_t>()))
                  .ok());
}

TEST(IiifName, PicturesThatCannotBeComputedDoNotExist) {
  ShownImage shown(make("yx", {100000, 100000}, 1, ElementType::kU8));
  for (const auto& [stored, scales, sizes] : {std::tuple(0u, 7, 0), {7u, 18, 12}}) {
    shown.stored_levels = stored;
    const ZoomPicture picture = *zoom_picture(shown, {});
    const auto info = nlohmann::json::parse(iiif_info(picture, "/scan@/iiif"));
    EXPECT_EQ(info["tiles"][0]["scaleFactors"].size(), scales);
    EXPECT_EQ(info["sizes"].size(), sizes);
    EXPECT_EQ(find_picture(picture, "full/782,782/0/default.jpg").ok(), stored > 0);
    EXPECT_TRUE(find_picture(picture, "0,0,16384,16384/256,256/0/default.jpg").ok());
    EXPECT_EQ(find_picture(picture, "0,0,32768,32768/256,256/0/default.jpg").ok(), stored > 0);
  }
}

TEST(IiifName, APictureThatHasBecomeSmallerThanItsRegionDoesNotExist) {
  IiifName name{.kind = IiifKind::kRotation, .region = {0, 0, 500, 300}, .level = 2};
  EXPECT_TRUE(iiif_picture(photo(300, 500), name, "default.jpg").ok());
  EXPECT_FALSE(iiif_picture(photo(299, 500), name, "default.jpg").ok());
  name.level = 9;
  EXPECT_FALSE(iiif_picture(photo(200, 200), name, "default.jpg").ok());
}

}  // namespace
}  // namespace mdfs::views
