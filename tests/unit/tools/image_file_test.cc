// Claims about image files read and written as a stream: raw, NPY, PNM, sequences, and the images they become.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/image_file.h"

#include <gtest/gtest.h>

#include "imagefile/sequence.h"
#include "scratch.h"

namespace mdfs::imagefile {
namespace {

using geometry::ElementType;
using ImageFileTest = ScratchTest;

ByteVector bytes_of(const std::string& text) {
  const ConstBytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

TEST_F(ImageFileTest, EveryTypeSurvivesNpy) {
  for (int type = 1; type <= 11; ++type) {
    const ArrayInfo array{{5, 7, 3}, static_cast<ElementType>(type), ""};
    const ByteVector bytes = random_bytes(*array_bytes(array));
    const std::string file = path("a" + std::to_string(type) + ".npy");
    ASSERT_TRUE(write_all(file, array, bytes).ok());
    const auto back = read_all(file);
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(back->first, array);
    EXPECT_EQ(back->second, bytes);
  }
}

TEST_F(ImageFileTest, PgmAndPpmSurviveIn8And16Bits) {
  for (const ElementType type : {ElementType::kU8, ElementType::kU16})
    for (const bool colour : {false, true}) {
      ArrayInfo array{{33, 41}, type, "yx"};
      if (colour) array = {{33, 41, 3}, type, "yxc"};
      const ByteVector bytes = random_bytes(*array_bytes(array));
      const std::string file = path(colour ? "a.ppm" : "a.pgm");
      ASSERT_TRUE(write_all(file, array, bytes, true).ok());
      const auto back = read_all(file);
      ASSERT_TRUE(back.ok()) << back.error().message();
      EXPECT_EQ(back->first, array);
      EXPECT_EQ(back->second, bytes);
    }
}

TEST_F(ImageFileTest, SixteenBitPgmIsBigEndianOnDisk) {
  ASSERT_TRUE(write_all(path("a.pgm"), {{1, 2}, ElementType::kU16, "yx"}, bytes_of("\x01\x02\x03\x04")).ok());
  EXPECT_EQ(get("a.pgm"), "P5\n2 1\n65535\n\x02\x01\x04\x03");
}

TEST_F(ImageFileTest, BigEndianNpyBecomesLittleEndian) {
  std::string header = "{'descr': '>u4', 'fortran_order': False, 'shape': (2,)}\n";
  header.insert(0, std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0');
  put("a.npy", header + std::string("\x01\x02\x03\x04\x05\x06\x07\x08"));
  const auto back = read_all(path("a.npy"));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->second, bytes_of("\x04\x03\x02\x01\x08\x07\x06\x05"));
}

TEST_F(ImageFileTest, AFileCutShortOrTooLongIsRefusedWithBothSizes) {
  const ArrayInfo array{{8, 8}, ElementType::kU16, ""};
  ASSERT_TRUE(write_all(path("a.npy"), array, random_bytes(128)).ok());
  const std::string whole = get("a.npy");
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{9}, std::size_t{40}, whole.size() - 1}) {
    put("cut.npy", whole.substr(0, size));
    const auto source = open_source(path("cut.npy"), {});
    ASSERT_FALSE(source.ok()) << size;
    EXPECT_NE(source.error().where.find("cut.npy"), std::string::npos) << source.error().message();
  }
  put("long.npy", whole + "x");
  const auto source = open_source(path("long.npy"), {});
  ASSERT_FALSE(source.ok());
  EXPECT_NE(source.error().where.find("257 bytes"), std::string::npos) << source.error().message();
  EXPECT_NE(source.error().where.find("256"), std::string::npos) << source.error().message();
}

TEST_F(ImageFileTest, AShapeWhoseBytesOverflowIsRefused) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}\n";
  put("a.npy", std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header);
  EXPECT_EQ(open_source(path("a.npy"), {}).error().code, Errc::kTooBig);
}

TEST_F(ImageFileTest, RawNeedsShapeTypeAndTheExactSize) {
  put("a.bin", std::string(24, 'x'));
  SourceOptions options;
  options.raw_lengths = {2, 3};
  EXPECT_EQ(open_source(path("a.bin"), options).error().code, Errc::kUsage);
  options.raw_type = ElementType::kU32;
  const auto back = read_all(path("a.bin"), options);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->second, ByteVector(24, std::byte{'x'}));
  options.raw_lengths = {2, 4};
  EXPECT_NE(open_source(path("a.bin"), options).error().where.find("truncated"), std::string::npos);
}

TEST_F(ImageFileTest, AMissingFileAFolderAndGarbageAreOneLineEach) {
  put("garbage.png", std::string(500, '\x07'));
  put("empty.npy", "");
  std::filesystem::create_directory(path("folder"));
  for (const char* name : {"none.npy", "folder", "garbage.png", "empty.npy"}) {
    const auto source = open_source(path(name), {});
    ASSERT_FALSE(source.ok()) << name;
    EXPECT_NE(source.error().where.find(name), std::string::npos) << source.error().message();
    EXPECT_EQ(source.error().where.find('\n'), std::string::npos);
  }
}

TEST_F(ImageFileTest, WhatIsNotFinishedLeavesNothingBehind) {
  {
    auto sink = create_sink(path("a.npy"), {{8, 8}, ElementType::kU8, ""}, false);
    ASSERT_TRUE(sink.ok());
    ASSERT_TRUE((*sink)->write(random_bytes(8)).ok());
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(ImageFileTest, AnExistingFileIsReplacedOnlyWhenAsked) {
  const ArrayInfo array{{4}, ElementType::kU8, ""};
  put("a.raw", "old");
  EXPECT_EQ(create_sink(path("a.raw"), array, false).error().code, Errc::kExists);
  EXPECT_EQ(get("a.raw"), "old");
  ASSERT_TRUE(write_all(path("a.raw"), array, bytes_of("new!"), true).ok());
  EXPECT_EQ(get("a.raw"), "new!");
}

TEST_F(ImageFileTest, ASequenceIsOneImageWithFramesAsItsSlowestAxis) {
  const ArrayInfo array{{4, 6, 5, 3}, ElementType::kU16, "tyxc"};
  const ByteVector bytes = random_bytes(*array_bytes(array));
  ASSERT_TRUE(write_all(path("shot.%03d.ppm"), array, bytes).ok());
  EXPECT_EQ(files(), 4u);
  const auto back = read_all(path("shot.%03d.ppm"));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->first, array);
  EXPECT_EQ(back->second, bytes);

  SourceOptions two;
  two.frames = {1, 2};
  const auto part = read_all(path("shot.%03d.ppm"), two);
  ASSERT_TRUE(part.ok()) << part.error().message();
  EXPECT_EQ(part->first.lengths, (std::vector<std::uint64_t>{2, 6, 5, 3}));
  EXPECT_EQ(part->second, ByteVector(bytes.begin() + 180, bytes.begin() + 540));
}

TEST_F(ImageFileTest, AMissingFrameAndAFrameOfAnotherShapeAreNamed) {
  for (const int frame : {3, 4, 6}) put("s" + std::to_string(frame) + ".pgm", "P5\n2 1\n255\nab");
  const auto gap = open_source(path("s%d.pgm"), {});
  ASSERT_FALSE(gap.ok());
  EXPECT_NE(gap.error().where.find("s5.pgm"), std::string::npos) << gap.error().message();
  put("s5.pgm", "P5\n1 1\n255\na");
  const auto other = read_all(path("s%d.pgm"));
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().where.find("s5.pgm"), std::string::npos) << other.error().message();
  SourceOptions options;
  options.frames = {6, 7};
  EXPECT_NE(read_all(path("s%d.pgm"), options).error().where.find("s7.pgm"), std::string::npos);
  options.frames = {7, 6};
  EXPECT_EQ(read_all(path("s%d.pgm"), options).error().code, Errc::kUsage);
}

TEST(PatternTest, OnlyOnePlaceForANumberInTheLastPartIsAPattern) {
  EXPECT_FALSE(parse_pattern("plain.dpx")->has_value());
  EXPECT_EQ((*parse_pattern("a/b%d.dpx"))->path(7), "a/b7.dpx");
  EXPECT_EQ((*parse_pattern("%04d"))->path(12345), "12345");
  for (const char* wrong : {"a%s", "%5d", "%00d", "%04x", "%d%d", "%", "a%0", "a%d/b", "%012d"})
    EXPECT_FALSE(parse_pattern(wrong).ok()) << wrong;
}

geometry::Geometry chosen(const ArrayInfo& array, std::string_view axes) {
  const auto geometry = choose_geometry(array, axes);
  EXPECT_TRUE(geometry.ok()) << (geometry.ok() ? "" : geometry.error().message());
  return geometry.ok() ? *geometry : geometry::Geometry{};
}

TEST(AxesTest, TheLastDimensionIsChannelsWhenItIs2To4LongBehindTwoOthers) {
  EXPECT_EQ(chosen({{9, 8, 3}, ElementType::kU8, ""}, "").channels, 3u);
  EXPECT_EQ(chosen({{9, 8, 3}, ElementType::kU8, ""}, "").axes, "yx");
  EXPECT_EQ(chosen({{9, 8, 5}, ElementType::kU8, ""}, "").axes, "zyx");
  EXPECT_EQ(chosen({{9, 8, 1}, ElementType::kU8, ""}, "").axes, "zyx");
  EXPECT_EQ(chosen({{9, 3}, ElementType::kU8, ""}, "").axes, "yx");
  EXPECT_EQ(chosen({{9, 9, 8, 4}, ElementType::kU8, ""}, "").axes, "zyx");
  EXPECT_EQ(chosen({{7}, ElementType::kU8, ""}, "").axes, "x");
}

TEST(AxesTest, NamedAxesWinOverTheGuessAndTheFile) {
  const auto movie = chosen({{9, 8, 3}, ElementType::kU8, "yxc"}, "tyx");
  EXPECT_EQ(movie.axes, "tyx");
  EXPECT_EQ(movie.channels, 1u);
  EXPECT_EQ(chosen({{9, 8, 100}, ElementType::kU8, ""}, "yxc").channels, 100u);
}

TEST(AxesTest, ALastCIsInterleavedAndAnotherOneAnAxis) {
  const auto cells = chosen({{5, 2, 9, 8, 7}, ElementType::kU16, ""}, "tczyx");
  EXPECT_EQ(cells.axes, "tczyx");
  EXPECT_EQ(cells.channels, 1u);
  EXPECT_EQ(chosen({{2, 9, 8}, ElementType::kU16, ""}, "cyx").rank, 3u);
  EXPECT_EQ(chosen({{5, 9, 8, 7}, ElementType::kU8, ""}, "").axes, "tzyx");
}

TEST(AxesTest, NonsenseIsRefused) {
  const ArrayInfo array{{9, 8, 3}, ElementType::kU8, ""};
  for (const char* axes : {"yx", "zyxc", "lyx", "zzx", "ZYX", "z x", "c"})
    EXPECT_FALSE(choose_geometry(array, axes).ok()) << axes;
  EXPECT_FALSE(choose_geometry({{2, 3, 5, 9, 8, 7}, ElementType::kU8, ""}, "").ok());
  EXPECT_FALSE(choose_geometry({{9, 0, 7}, ElementType::kU8, ""}, "").ok());
  EXPECT_FALSE(choose_geometry({{9, 8, 70000}, ElementType::kU8, ""}, "yxc").ok());
}

}  // namespace
}  // namespace mdfs::imagefile
