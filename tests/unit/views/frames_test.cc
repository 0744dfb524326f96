// Names of sequences, and the headers of their pictures.
// SPDX-License-Identifier: Apache-2.0
#include "views/frames.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "small_image.h"
#include "views/dpx.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

TEST(FramesTest, EachNameIsTheWindowOfItsFrame) {
  const Geometry film = make("tyx", {12, 30, 40}, 3, ElementType::kU8);
  const Frames frames = frames_of(film);
  EXPECT_EQ(frames.formats, (std::vector<Format>{Format::kPng, Format::kDpx}));
  ASSERT_EQ(frames.names(), 24u);
  EXPECT_EQ(frame_name(frames, "film", 11), "film.0011.png");
  EXPECT_EQ(frame_name(frames, "film", 12), "film.0000.dpx");
  for (std::uint64_t number = 0; number < frames.names(); ++number)
    EXPECT_TRUE(parse_frame_name(film, "film", frame_name(frames, "film", number)).ok()) << number;
  EXPECT_EQ(to_key(*parse_frame_name(film, "film", "film.0007.png")), to_key(*parse_window_name(film, "t7.png")));
}

TEST(FramesTest, FramesLieAlongTimeOrTheFirstAxis) {
  EXPECT_EQ(frames_of(make("zyx", {3, 4, 5}, 1, ElementType::kU16)).axis, 0u);
  EXPECT_EQ(frames_of(make("ytx", {3, 4, 5}, 1, ElementType::kU16)).axis, 1u);
  EXPECT_EQ(frames_of(make("zyx", {3, 4, 5}, 1, ElementType::kU16)).formats, std::vector<Format>{Format::kPng});
  EXPECT_EQ(frames_of(make("yx", {4, 5}, 1, ElementType::kU8)).names(), 0u);
  EXPECT_EQ(frames_of(make("tyx", {0, 4, 5}, 1, ElementType::kU8)).names(), 0u);
  EXPECT_EQ(frames_of(make("tyx", {3, 4, 5}, 1, ElementType::kF32)).formats, std::vector<Format>{Format::kExr});
  EXPECT_EQ(frames_of(make("tyx", {3, 4, 5}, 1, ElementType::kF64)).names(), 0u);
}

TEST(FramesTest, NamesInAnotherSpellingDoNotExist) {
  const Geometry film = make("tyx", {12, 30, 40}, 3, ElementType::kU8);
  for (const char* name : {"film.12.png", "film.0012.png", "film.007.png", "film.00007.png", "film.0007.jpg", "film",
                           "film.", "film.-007.png", "film.0x07.png", "movie.0007.png", "film.0007.png.png", "",
                           "film.18446744073709551616.png", "filmx0007.png"})
    EXPECT_EQ(parse_frame_name(film, "film", name).error().code, Errc::kNotFound) << name;
}

TEST(FramesTest, LongSequencesHaveMoreDigits) {
  const Geometry film = make("tyx", {20000, 2, 2}, 1, ElementType::kU8);
  EXPECT_EQ(frame_name(frames_of(film), "f", 12345), "f.12345.png");
  EXPECT_TRUE(parse_frame_name(film, "f", "f.12345.png").ok());
}

TEST(DpxTest, RowsEndAtWords) {
  EXPECT_TRUE(parse_window_name(make("yx", {3, 4}, 3, ElementType::kU8), "all.dpx").ok());
  EXPECT_FALSE(parse_window_name(make("yx", {3, 5}, 3, ElementType::kU8), "all.dpx").ok());
  EXPECT_TRUE(parse_window_name(make("yx", {3, 6}, 3, ElementType::kU16), "all.dpx").ok());
  EXPECT_FALSE(parse_window_name(make("yx", {3, 4}, 1, ElementType::kU8), "all.dpx").ok());
  EXPECT_FALSE(parse_window_name(make("yx", {3, 4}, 3, ElementType::kF32), "all.dpx").ok());
}

TEST(DpxTest, TheHeaderHasTheSizeInBigEndian) {
  const ByteVector header = dpx_header({.width = 0x0102, .height = 0x0304, .channels = 3, .sample_bytes = 2});
  ASSERT_EQ(header.size(), 2048u);
  EXPECT_EQ(as_text(ConstBytes(header).first(4)), "SDPX");
  EXPECT_EQ(as_text(ConstBytes(header).subspan(772, 8)), std::string_view("\0\0\1\2\0\0\3\4", 8));
  EXPECT_EQ(header[803], std::byte{16});
}

// One page of strips, and one with padding.
TEST(ViewFile, ATiffWindowHasItsHeadAndThenItsSamples) {
  test::FakeVolume volume;
  const Geometry geometry = make("zyx", {5, 6, 7}, 1, ElementType::kF64);
  const volume::Ino ino = volume.add_image("image", geometry);
  for (const char* name : {"z2.tif", "all.tif", "z2,y-2+6,clip.tif", "l1,z2.tif", "z1,y3.tif"}) {
    const auto parsed = parse_window_name(geometry, name);
    ASSERT_TRUE(parsed.ok()) << name;
    const auto file = view_window(geometry, *parsed);
    ASSERT_TRUE(file.ok()) << name;
    EXPECT_EQ(file->header.size() % 4096, 0u);
    EXPECT_EQ(as_text(ConstBytes(file->header).first(4)), std::string_view("II\x2b\0", 4));
    if (parsed->level > 0) continue;
    ByteVector whole(file->size_bytes());
    ASSERT_TRUE(read_view(volume, ino, *file, 0, whole).ok());
    WindowName raw = *parsed;
    raw.format = Format::kRaw;
    const auto plain = view_window(geometry, raw);
    ByteVector samples(plain->size_bytes());
    ASSERT_TRUE(read_view(volume, ino, *plain, 0, samples).ok());
    EXPECT_TRUE(
        std::equal(samples.begin(), samples.end(), whole.begin() + static_cast<std::ptrdiff_t>(file->header.size())));
  }
  EXPECT_FALSE(parse_window_name(geometry, "z1,y2,x3.tif").ok()) << "no axis is left";
  const Geometry deep = make("zyx", {60000, 2, 2}, 1, ElementType::kU8);
  EXPECT_FALSE(parse_window_name(deep, "all.tif").ok()) << "too many pages";
  EXPECT_TRUE(parse_window_name(deep, "z0+100.tif").ok());
}

}  // namespace
}  // namespace mdfs::views
