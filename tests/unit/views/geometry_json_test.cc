// The text of the attribute user.mdfs.geometry.
// SPDX-License-Identifier: Apache-2.0
#include "views/geometry_json.h"

#include <gtest/gtest.h>

namespace mdfs::views {
namespace {

geometry::Geometry stack() {
  geometry::Geometry geometry;
  geometry.rank = 3;
  geometry.shape = {7, 100, 90};
  geometry.extent = {2, 32, 64};
  geometry.channels = 3;
  geometry.type = geometry::ElementType::kU16;
  geometry.codec_level = -5;
  geometry.policy = geometry::AllocationPolicy::kNear;
  geometry.axes = "tyx";
  geometry.spacing = {0.1, 1.0 / 3, 0};
  geometry.unit = {"s", "\xC2\xB5m", ""};
  return geometry;
}

TEST(GeometryJsonTest, ReadsBackAsItWasWritten) {
  geometry::Geometry raw = stack();
  raw.codec = geometry::Codec::kRaw;
  raw.codec_level = geometry::Geometry{}.codec_level;
  for (const geometry::Geometry& geometry : {stack(), raw}) {
    for (const std::uint64_t missing : {0u, 1u, 53999u}) {  // of the last step of 54000 bytes
      const SizedGeometry sized{geometry, geometry.size_bytes() - missing};
      const auto read = parse_geometry_json(geometry_json(sized));
      ASSERT_TRUE(read.ok()) << read.error().message();
      EXPECT_EQ(*read, sized);
    }
  }
}

TEST(GeometryJsonTest, WhatIsLeftOutIsChosenAndWhatIsNotKnownIsSkipped) {
  const auto read = parse_geometry_json(R"({"shape": [3, 2000, 1000], "type": "u16", "levels": [1, 2]})");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->geometry.axes, "zyx");
  EXPECT_EQ(read->geometry.channels, 1u);
  EXPECT_GE(read->geometry.extent_bytes(), 48u << 10);
  EXPECT_EQ(read->size_bytes, 12'000'000u);
}

TEST(GeometryJsonTest, RefusesWhatMakesNoSenseByTheNameOfItsField) {
  const struct {
    const char *text, *field;
  } cases[] = {
      {"", "JSON"},
      {"[]", "JSON"},
      {"{", "JSON"},
      {R"({"type": "u8"})", "shape"},
      {R"({"shape": [], "type": "u8"})", "shape"},
      {R"({"shape": [1, 2, 3, 4, 5, 6], "type": "u8"})", "shape"},
      {R"({"shape": [-1, 2], "type": "u8"})", "shape"},
      {R"({"shape": [1.5, 2], "type": "u8"})", "shape"},
      {R"({"shape": [2, 0], "type": "u8"})", "axis"},
      {R"({"shape": [18446744073709551615, 18446744073709551615], "type": "u8"})", "2^62"},
      {R"({"shape": [2, 2]})", "type"},
      {R"({"shape": [2, 2], "type": "u9"})", "type"},
      {R"({"shape": [2, 2], "type": 8})", "type"},
      {R"({"shape": [2, 2], "type": "u8", "channels": 0})", "channels"},
      {R"({"shape": [2, 2], "type": "u8", "channels": 65536})", "channels"},
      {R"({"shape": [2, 2], "type": "u8", "axes": "yy"})", "ax"},
      {R"({"shape": [2, 2], "type": "u8", "axes": 3})", "axes"},
      {R"({"shape": [2, 2], "type": "u8", "extent": [2]})", "extent"},
      {R"({"shape": [2, 2], "type": "u8", "extent": [0, 2]})", "extent"},
      {R"({"shape": [2, 2], "type": "u8", "extent": [65536, 65536]})", "extent"},
      {R"({"shape": [2, 2], "type": "u8", "codec": "lz4"})", "codec"},
      {R"({"shape": [2, 2], "type": "u8", "codec_level": 23})", "codec_level"},
      {R"({"shape": [2, 2], "type": "u8", "policy": "far"})", "policy"},
      {R"({"shape": [2, 2], "type": "u8", "spacing": [1, -1]})", "spacing"},
      {R"({"shape": [2, 2], "type": "u8", "unit": ["micrometre", "m"]})", "unit"},
      {R"({"shape": [2, 2], "type": "u8", "size_bytes": 2})", "size_bytes"},
      {R"({"shape": [2, 2], "type": "u8", "size_bytes": 5})", "size_bytes"},
      {R"({"shape": [2, 2], "type": "u8", "size_bytes": "4"})", "size_bytes"},
  };
  for (const auto& [text, field] : cases) {
    const auto read = parse_geometry_json(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.error().where.find(field), std::string::npos) << text << ": " << read.error().where;
  }
  EXPECT_FALSE(parse_geometry_json(std::string(65000, '[')).ok());
}

}  // namespace
}  // namespace mdfs::views
