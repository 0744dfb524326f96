// OpenEXR pictures of windows: their bytes, in any parts.
// SPDX-License-Identifier: Apache-2.0
#include "views/exr.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "small_image.h"
#include "support/fake_volume.h"
#include "views/view_file.h"
#include "views/window_reader.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

// An image with random bytes.
class ExrTest : public ::testing::Test {
 protected:
  void store(const Geometry& geometry) {
    geometry_ = geometry;
    ino_ = volume_.add_image("image" + std::to_string(++images_), geometry);
    bytes_.resize(static_cast<std::size_t>(geometry.size_bytes()));
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random_());
    write();
  }
  void write() {
    const auto source = [&](std::uint64_t offset, MutableBytes into) -> Status {
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
      return {};
    };
    ASSERT_TRUE(volume_.write_window(ino_, geometry::whole(geometry_), source).ok());
  }
  std::shared_ptr<const ViewFile> open(const char* name) {
    const auto parsed = parse_window_name(geometry_, name);
    EXPECT_TRUE(parsed.ok()) << name;
    return std::make_shared<const ViewFile>(*view_window(geometry_, *parsed));
  }
  ByteVector read(const ViewFile& file, std::uint64_t offset, std::size_t length) {
    ByteVector into(length);
    const auto count = read_view(volume_, ino_, file, offset, into);
    EXPECT_TRUE(count.ok());
    into.resize(*count);
    return into;
  }

  std::mt19937_64 random_{7};
  int images_ = 0;
  test::FakeVolume volume_;
  Geometry geometry_;
  volume::Ino ino_ = 0;
  ByteVector bytes_;
};

TEST_F(ExrTest, RowsHoldOneChannelAfterAnother) {
  store(make("yx", {5, 7}, 4, ElementType::kF16));
  const auto file = open("y1+3,x2+4.exr");
  const ByteVector whole = read(*file, 0, file->size_bytes());
  const std::size_t row = 8 + 4 * 4 * 2;
  ASSERT_EQ(whole.size(), file->header.size() + 3 * row);
  for (std::size_t y = 0; y < 3; ++y) {
    const std::size_t at = file->header.size() + y * row;
    EXPECT_EQ(load_le<std::uint64_t>(whole, file->header.size() - 8 * (3 - y)), at) << "the table of rows";
    EXPECT_EQ(load_le<std::uint32_t>(whole, at), y);
    EXPECT_EQ(load_le<std::uint32_t>(whole, at + 4), row - 8);
    for (std::size_t channel = 0; channel < 4; ++channel)  // A, B, G, R
      for (std::size_t x = 0; x < 4; ++x)
        EXPECT_EQ(load_le<std::uint16_t>(whole, at + 8 + 2 * (channel * 4 + x)),
                  load_le<std::uint16_t>(bytes_, 2 * (((y + 1) * 7 + x + 2) * 4 + 3 - channel)));
  }
}

TEST_F(ExrTest, AnyPartEqualsTheWhole) {
  for (const auto& [channels, type] : {std::pair(1u, ElementType::kF32), std::pair(3u, ElementType::kF16),
                                       std::pair(4u, ElementType::kU32), std::pair(1u, ElementType::kF16)}) {
    store(make("yx", {61, 83}, channels, type));
    for (const char* name : {"all.exr", "y3+50,x7+1.exr", "y60+1.exr", "y-4+70,x-3+90,clip.exr"}) {
      const auto file = open(name);
      const ByteVector whole = read(*file, 0, file->size_bytes() + 100);
      ASSERT_EQ(whole.size(), file->size_bytes()) << name;
      WindowReader reader(volume_, ino_, file);
      for (int i = 0; i < 200; ++i) {
        const std::size_t offset = random_() % (whole.size() + 3);
        const std::size_t length = 1 + random_() % (i % 2 == 0 ? 40 : whole.size());
        const std::size_t there = offset < whole.size() ? std::min(length, whole.size() - offset) : 0;
        const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(std::min(offset, whole.size()));
        EXPECT_EQ(read(*file, offset, length), ByteVector(begin, begin + static_cast<std::ptrdiff_t>(there)));
        ByteVector part(length);
        const auto count = reader.read(offset, part);
        ASSERT_TRUE(count.ok());
        part.resize(*count);
        EXPECT_EQ(part, ByteVector(begin, begin + static_cast<std::ptrdiff_t>(there)));
      }
    }
  }
}

// 5 MiB, so that the rows need several reads of the image.
TEST_F(ExrTest, APictureReadInPartsIsOneVersion) {
  store(make("yx", {640, 1024}, 4, ElementType::kF16));
  const auto file = open("all.exr");
  const ByteVector before = read(*file, 0, file->size_bytes());
  WindowReader reader(volume_, ino_, file);
  ByteVector whole(before.size());
  const std::size_t half = whole.size() / 2 + 7;
  ASSERT_TRUE(reader.read(0, MutableBytes(whole).first(half)).ok());
  for (std::byte& byte : bytes_) byte ^= std::byte{0xff};
  write();
  ASSERT_TRUE(reader.read(half, MutableBytes(whole).subspan(half)).ok());
  EXPECT_TRUE(whole == before);
  ASSERT_TRUE(reader.read(0, whole).ok());
  EXPECT_TRUE(whole == read(*file, 0, file->size_bytes()));
  EXPECT_FALSE(whole == before);
}

TEST_F(ExrTest, OnlySamplesThatExrHoldsUnchangedAreAPicture) {
  for (const ElementType type : {ElementType::kF16, ElementType::kF32, ElementType::kU32})
    EXPECT_TRUE(parse_window_name(make("yx", {3, 4}, 3, type), "all.exr").ok());
  for (const ElementType type : {ElementType::kU8, ElementType::kU16, ElementType::kI32, ElementType::kF64}) {
    const auto refused = parse_window_name(make("yx", {3, 4}, 3, type), "all.exr");
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().where.find("exr requires f16, f32 or u32 samples"), std::string::npos);
  }
  EXPECT_FALSE(parse_window_name(make("yx", {3, 4}, 2, ElementType::kF32), "all.exr").ok());
  EXPECT_TRUE(parse_window_name(make("yx", {3, 4}, 2, ElementType::kF32), "c1.exr").ok());
  EXPECT_FALSE(parse_window_name(make("zyx", {2, 3, 4}, 1, ElementType::kF32), "all.exr").ok());
  EXPECT_TRUE(parse_window_name(make("yx", {65536, 1}, 1, ElementType::kF32), "all.exr").ok());
  EXPECT_FALSE(parse_window_name(make("yx", {65537, 1}, 1, ElementType::kF32), "all.exr").ok());
  EXPECT_TRUE(parse_window_name(make("yx", {1, 65536}, 4, ElementType::kU32), "all.exr").ok());
  EXPECT_FALSE(parse_window_name(make("yx", {1, 65537}, 4, ElementType::kU32), "all.exr").ok());
}

}  // namespace
}  // namespace mdfs::views
