// The lines of traces, written and read.
// SPDX-License-Identifier: Apache-2.0
#include "model/trace.h"

#include <gtest/gtest.h>

#include <random>

namespace mdfs::model {
namespace {

template <typename T>
T read_back(const std::string& line) {
  const auto parsed = parse_trace_line(line.substr(0, line.find('\n')));
  EXPECT_TRUE(parsed.ok()) << line << parsed.error().message();
  EXPECT_TRUE(std::holds_alternative<T>(*parsed)) << line;
  return std::get<T>(*parsed);
}

TEST(TraceTest, AnImageIsReadAsItWasWritten) {
  geometry::Geometry geometry;
  geometry.rank = 3;
  geometry.shape = {10, 2160, 4096};
  geometry.extent = {1, 512, 512};
  geometry.channels = 3;
  geometry.type = geometry::ElementType::kU16;
  geometry.axes = "tyx";
  const auto image =
      read_back<TraceImage>(to_line(TraceImage{.object = 7, .geometry = geometry, .base = 5, .compressed_share = {}}));
  EXPECT_EQ(image.object, 7U);
  EXPECT_EQ(image.base, 5U);
  ASSERT_TRUE(image.geometry);
  EXPECT_EQ(image.geometry->shape, geometry.shape);
  EXPECT_EQ(image.geometry->extent, geometry.extent);
  EXPECT_EQ(image.geometry->axes, "tyx");
  EXPECT_EQ(image.geometry->sample_bytes(), 6U);
  EXPECT_FALSE(image.compressed_share);
  const auto compressed = read_back<TraceImage>(
      to_line(TraceImage{.object = 7, .geometry = geometry, .base = 5, .compressed_share = 0.4375}));
  EXPECT_EQ(compressed.compressed_share, 0.4375);
  const auto file =
      read_back<TraceImage>(to_line(TraceImage{.object = 9, .geometry = {}, .base = 0, .compressed_share = {}}));
  EXPECT_EQ(file.object, 9U);
  EXPECT_FALSE(file.geometry);
}

TEST(TraceTest, ARequestIsReadAsItWasWritten) {
  TraceRequest wanted;
  wanted.time_s = 12.25;
  wanted.window = "y50+30,x100+40";
  wanted.client = 4711;
  wanted.object = 7;
  wanted.write = true;
  wanted.bytes = 3600;
  const auto window = read_back<TraceRequest>(to_line(wanted));
  EXPECT_EQ(window.window, wanted.window);
  EXPECT_EQ(window.time_s, 12.25);
  EXPECT_EQ(window.client, 4711U);
  EXPECT_EQ(window.object, 7U);
  EXPECT_TRUE(window.write);
  EXPECT_EQ(window.bytes, 3600U);
  wanted.window.clear();
  wanted.range = ByteRange{4096, 8192};
  const auto range = read_back<TraceRequest>(to_line(wanted));
  ASSERT_TRUE(range.range);
  EXPECT_EQ(range.range->offset, 4096U);
  EXPECT_EQ(range.range->length, 8192U);
}

TEST(TraceTest, ALineByHandNeedsTimeAndWindowOnly) {
  const auto request = read_back<TraceRequest>("0.5 0,0,512,512  # the first");
  EXPECT_EQ(request.window, "0,0,512,512");
  EXPECT_EQ(request.client, 0U);
  EXPECT_FALSE(request.object);
  EXPECT_EQ(read_back<TraceRequest>("3 y1+2 8").client, 8U);
  for (const char* line : {"", "   ", "# all comment"}) read_back<std::monostate>(line);
}

TEST(TraceTest, NonsenseIsRefusedWithTheReason) {
  for (const char* line : {"soon 0,0,5,5",
                           "-1 0,0,5,5",
                           "1",
                           "1 @5",
                           "1 @5+0",
                           "1 @x+5",
                           "1 @18446744073709551615+5",
                           "1 a b",
                           "1 a 2 object=x",
                           "1 a 2 op=erase",
                           "1 a 2 3",
                           "image",
                           "image x",
                           "image 1",
                           "image 1 shape=4x4 extent=2x2",
                           "image 1 shape=4x4 extent=2 bytes=1",
                           "image 1 shape=4x4 extent=2x2 bytes=0",
                           "image 1 shape=4x4 extent=0x2 bytes=1",
                           "image 1 shape=4x4 extent=2x2 bytes=1 axes=q",
                           "image 1 shape=4x4 extent=2x2 bytes=1 colour=red",
                           "image 1 shape=4x4 extent=2x2 bytes=1 compressed=0",
                           "image 1 shape=4x4 extent=2x2 bytes=1 compressed=2.01",
                           "image 1 shape=4x4 extent=2x2 bytes=1 compressed=nan",
                           "image 1 shape=4x4 extent=2x2 bytes=1 compressed=half",
                           "file",
                           "file 1 2",
                           "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"}) {
    const auto parsed = parse_trace_line(line);
    EXPECT_FALSE(parsed.ok()) << line;
    EXPECT_TRUE(parsed.ok() || !parsed.error().where.empty()) << line;
  }
}

TEST(TraceTest, GarbageIsReadOrRefusedAndNothingElse) {
  const std::string characters = "image file 0123456789+@=,x.yze-#\t\xff object=shape=extent=bytes=";
  std::mt19937 generator(1);
  for (int i = 0; i < 20000; ++i) {
    std::string line = i % 2 == 0 ? "" : "image 1 shape=4x4 extent=2x2 bytes=1 ";
    for (std::size_t length = generator() % 60; length > 0; --length)
      line += characters[generator() % characters.size()];
    (void)parse_trace_line(line).ok();
  }
}

}  // namespace
}  // namespace mdfs::model
