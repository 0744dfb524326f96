// Windows that are encoded when they are opened, read back with a decoder.
// SPDX-License-Identifier: Apache-2.0
#include "views/rendered_view.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <spng.h>

#include <cmath>
#include <cstdio>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include "small_image.h"
#include "views/jpeg.h"
#include "views/png.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

struct Decoded {
  spng_ihdr header{};
  ByteVector samples;  // in the order of the host
};

Decoded decode(ConstBytes png) {
  Decoded result;
  spng_ctx* const context = spng_ctx_new(0);
  std::size_t size = 0;
  EXPECT_EQ(spng_set_png_buffer(context, png.data(), png.size()), 0);
  EXPECT_EQ(spng_get_ihdr(context, &result.header), 0);
  EXPECT_EQ(spng_decoded_image_size(context, SPNG_FMT_PNG, &size), 0);
  result.samples.resize(size);
  EXPECT_EQ(spng_decode_image(context, result.samples.data(), size, SPNG_FMT_PNG, 0), 0);
  spng_ctx_free(context);
  return result;
}

struct DecodedJpeg {
  geometry::Coord shape{};  // rows, columns, channels
  ByteVector samples;
};

DecodedJpeg decode_jpeg(ConstBytes jpeg) {
  jpeg_error_mgr errors{};
  jpeg_decompress_struct decompress{};
  decompress.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&decompress);
  jpeg_mem_src(&decompress, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  EXPECT_EQ(jpeg_read_header(&decompress, TRUE), JPEG_HEADER_OK);
  jpeg_start_decompress(&decompress);
  DecodedJpeg result;
  result.shape = {decompress.output_height, decompress.output_width,
                  static_cast<std::uint64_t>(decompress.output_components)};
  const std::size_t row_bytes = result.shape[1] * result.shape[2];
  result.samples.resize(result.shape[0] * row_bytes);
  while (decompress.output_scanline < decompress.output_height) {
    auto* row = reinterpret_cast<JSAMPROW>(result.samples.data() + decompress.output_scanline * row_bytes);
    jpeg_read_scanlines(&decompress, &row, 1);
  }
  jpeg_finish_decompress(&decompress);
  jpeg_destroy_decompress(&decompress);
  EXPECT_EQ(errors.num_warnings, 0);
  return result;
}

class RenderedViewTest : public ImagesTest {
 protected:
  Result<std::shared_ptr<View>> open(volume::Ino ino, const Geometry& geometry, std::string_view name,
                                     StagingPool& pool, const engine::Stop& stop = {}) {
    return RenderedView::open(volume_, ino, geometry, *parse_window_name(geometry, name), pool, 0, stop);
  }
};

// 1 to 4 channels of 8 and 16 bits, any window, any piece: a decoder sees the samples of the image.
RC_GTEST_FIXTURE_PROP(RenderedViewTest, APngHoldsTheSamplesOfItsWindow, ()) {
  const unsigned channels = *rc::gen::inRange(1u, 5u);
  const auto type = *rc::gen::element(ElementType::kU8, ElementType::kU16);
  const geometry::Coord shape = {*rc::gen::inRange<std::uint64_t>(1, 5), *rc::gen::inRange<std::uint64_t>(1, 40),
                                 *rc::gen::inRange<std::uint64_t>(1, 40)};
  const Geometry geometry = make("zyx", shape, channels, type);
  const volume::Ino ino = add(geometry);
  WindowName name{geometry::whole(geometry), Format::kPng};
  const unsigned dropped = *rc::gen::inRange(0u, 3u);
  for (unsigned axis = 0; axis < 3; ++axis) {
    name.window.start[axis] = *rc::gen::inRange<std::uint64_t>(0, shape[axis]);
    name.window.length[axis] =
        axis == dropped ? 1 : *rc::gen::inRange<std::uint64_t>(1, shape[axis] - name.window.start[axis] + 1);
    name.window.single[axis] = axis == dropped;
  }
  if (channels > 1 && *rc::gen::arbitrary<bool>()) name.window.channel = *rc::gen::inRange(0u, channels);
  const auto staging = pool();
  const auto view = RenderedView::open(volume_, ino, geometry, name, *staging, 0);
  RC_ASSERT(view.ok());
  RC_ASSERT(!(*view)->may_cache());
  const ByteVector png = bytes_of(**view);
  const Decoded decoded = decode(png);
  ByteVector expected(geometry::window_bytes(geometry, name.window));
  RC_ASSERT(volume_.read_window(ino, name.window, 0, expected).ok());
  RC_ASSERT(decoded.samples == expected);
  RC_ASSERT(decoded.header.bit_depth == 8 * element_bytes(type));
  const Raster raster = *raster_of(geometry, name);
  RC_ASSERT((decoded.header.width == raster.width && decoded.header.height == raster.height));
  RC_ASSERT(png.size() <= max_png_bytes(raster));
  const auto offset = *rc::gen::inRange<std::size_t>(0, png.size() + 3);
  ByteVector piece(*rc::gen::inRange<std::size_t>(0, png.size() + 3));
  const auto count = (*view)->read(offset, piece);
  RC_ASSERT(count.ok());
  RC_ASSERT(*count == std::min(piece.size(), png.size() - std::min(offset, png.size())));
  RC_ASSERT(std::equal(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*count),
                       png.begin() + static_cast<std::ptrdiff_t>(std::min(offset, png.size()))));
}

TEST_F(RenderedViewTest, AJpegShowsSmoothSamplesWithinAFewSteps) {
  for (const unsigned channels : {1u, 3u})
    for (const auto& [height, width] : {std::pair<std::uint64_t, std::uint64_t>{1, 1}, {37, 61}, {300, 200}}) {
      const Geometry geometry = make("yx", {height, width}, channels, ElementType::kU8);
      const volume::Ino ino = add(geometry);
      ByteVector& samples = volume_.bytes(ino);
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const std::uint64_t x = i / channels % width, y = i / channels / width, c = i % channels;
        samples[i] = static_cast<std::byte>((x + 2 * y) / 5 + 30 * c + 20);
      }
      const auto staging = pool();
      const auto view = open(ino, geometry, "all.jpg", *staging);
      ASSERT_TRUE(view.ok()) << view.error().message();
      const DecodedJpeg decoded = decode_jpeg(bytes_of(**view));
      EXPECT_EQ(decoded.shape, (geometry::Coord{height, width, channels}));
      ASSERT_EQ(decoded.samples.size(), samples.size());
      for (std::size_t i = 0; i < samples.size(); ++i)
        ASSERT_LE(std::abs(std::to_integer<int>(samples[i]) - std::to_integer<int>(decoded.samples[i])), 6) << i;
    }
}

TEST_F(RenderedViewTest, AJpegOfNoiseFitsTheBound) {
  for (const unsigned channels : {1u, 3u})
    for (const auto& [height, width] :
         {std::pair<std::uint64_t, std::uint64_t>{1, 1}, {700, 1}, {1, 60000}, {300, 500}}) {
      const Geometry geometry = make("yx", {height, width}, channels, ElementType::kU8);
      const volume::Ino ino = add(geometry);
      std::uint64_t state = 1;
      for (std::byte& byte : volume_.bytes(ino)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<std::byte>((state >> 63) * 255);  // black and white
      }
      const auto staging = pool();
      const auto view = open(ino, geometry, "all.jpg", *staging);
      ASSERT_TRUE(view.ok()) << view.error().message();
      const ByteVector jpeg = bytes_of(**view);
      EXPECT_LE(jpeg.size(), max_jpeg_bytes({width, height, channels, 1}));
      EXPECT_EQ(decode_jpeg(jpeg).shape, (geometry::Coord{height, width, channels}));
    }
}

TEST(EncodeJpeg, AnErrorOfTheRowsOrOfTheSinkEndsTheEncoding) {
  const Raster raster{500, 500, 3, 1};
  unsigned rows = 0;
  const auto noise = [&](MutableBytes row) -> Status {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::byte>((i * i * 7919 + rows * 31) >> 3);
    return ++rows == 400 ? Status(Errc::kCorrupt, "row") : Status();
  };
  const ByteSink take = [](ConstBytes) { return Status(); };
  EXPECT_EQ(encode_jpeg(raster, noise, take).error().code, Errc::kCorrupt);
  rows = 1000;
  const ByteSink refuse = [](ConstBytes) { return Status(Errc::kNoSpace, "sink"); };
  EXPECT_EQ(encode_jpeg(raster, noise, refuse).error().code, Errc::kNoSpace);
}

// Random bytes are as large as a PNG can become.
TEST_F(RenderedViewTest, SamplesThatDoNotCompressFitTheBound) {
  for (const auto& [height, width] : {std::pair<std::uint64_t, std::uint64_t>{1, 1}, {700, 1}, {1, 70000}, {900, 1500}})
    for (const unsigned channels : {1u, 4u}) {
      const Geometry geometry = make("yx", {height, width}, channels, ElementType::kU8);
      const volume::Ino ino = add(geometry);
      std::uint64_t state = 1;
      for (std::byte& byte : volume_.bytes(ino)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<std::byte>(state >> 56);
      }
      const auto staging = pool();
      const auto view = open(ino, geometry, "all.png", *staging);
      ASSERT_TRUE(view.ok()) << view.error().message();
      EXPECT_EQ(decode(bytes_of(**view)).samples, volume_.bytes(ino));
    }
}

TEST_F(RenderedViewTest, LaterWritesDoNotChangeAnOpenPicture) {
  const Geometry geometry = make("yx", {20, 30}, 3, ElementType::kU8);
  const volume::Ino ino = add(geometry);
  const auto staging = pool();
  const auto view = open(ino, geometry, "all.png", *staging);
  ASSERT_TRUE(view.ok());
  const ByteVector before = bytes_of(**view);
  volume_.bytes(ino)[0] ^= std::byte{0xFF};
  EXPECT_EQ(bytes_of(**view), before);
  const auto again = open(ino, geometry, "all.png", *staging);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(decode(bytes_of(**again)).samples, volume_.bytes(ino));
}

TEST_F(RenderedViewTest, AWindowOverTheLimitIsTooBigAndTakesNothing) {
  const Geometry geometry = make("yx", {20, 30}, 3, ElementType::kU8);
  const volume::Ino ino = add(geometry);
  StagingLimits limits;
  limits.window_bytes = 1799;
  const auto small = pool(limits);
  const auto view = open(ino, geometry, "all.png", *small);
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.error().code, Errc::kTooBig);
  EXPECT_TRUE(open(ino, geometry, "y0+19.png", *small).ok());
}

TEST_F(RenderedViewTest, ThePoolIsGivenBackWithTheView) {
  const Geometry geometry = make("yx", {200, 300}, 3, ElementType::kU8);
  const volume::Ino ino = add(geometry);
  StagingLimits limits;
  limits.memory_bytes = 300'000;
  limits.file_bytes = 0;
  const auto staging = pool(limits);
  auto view = open(ino, geometry, "all.png", *staging);
  ASSERT_TRUE(view.ok()) << view.error().message();
  EXPECT_EQ(open(ino, geometry, "all.png", *staging).error().code, Errc::kNoSpace);
  *view = nullptr;
  EXPECT_TRUE(open(ino, geometry, "all.png", *staging).ok());
}

TEST_F(RenderedViewTest, AnInterruptedCallerGetsNoPicture) {
  const Geometry geometry = make("yx", {20, 30}, 3, ElementType::kU8);
  const volume::Ino ino = add(geometry);
  const auto staging = pool();
  const auto view = open(ino, geometry, "all.png", *staging, [] { return true; });
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.error().code, Errc::kCancelled);
}

TEST(PngName, APictureHasTwoAxesAndUpToFourChannelsOf8Or16Bits) {
  EXPECT_TRUE(parse_window_name(make("yx", {4, 4}, 4, ElementType::kU16), "all.png").ok());
  EXPECT_FALSE(parse_window_name(make("yx", {4, 4}, 5, ElementType::kU8), "all.png").ok());
  EXPECT_TRUE(parse_window_name(make("yx", {4, 4}, 5, ElementType::kU8), "c4.png").ok());
  EXPECT_FALSE(parse_window_name(make("yx", {4, 4}, 1, ElementType::kF32), "all.png").ok());
  EXPECT_FALSE(parse_window_name(make("zyx", {4, 4, 4}, 1, ElementType::kU8), "all.png").ok());
  EXPECT_TRUE(parse_window_name(make("zyx", {4, 4, 4}, 1, ElementType::kU8), "x2.png").ok());
  const Geometry wide = make("yx", {2, kMaxRenderedRowBytes + 1}, 1, ElementType::kU8);
  EXPECT_FALSE(parse_window_name(wide, "all.png").ok());
  EXPECT_TRUE(parse_window_name(wide, "x1+" + std::to_string(kMaxRenderedRowBytes) + ".png").ok());
  const Geometry photo = make("yx", {4, 4}, 3, ElementType::kU8);
  EXPECT_FALSE(known_size(photo, *parse_window_name(photo, "all.png"))->has_value());
  EXPECT_EQ(**known_size(photo, *parse_window_name(photo, "all.raw")), 48u);
}

TEST(JpegName, APictureHasTwoAxesAndOneOrThreeChannelsOf8Bits) {
  const Geometry deep = make("yx", {4, 4}, 1, ElementType::kU16);
  ASSERT_FALSE(parse_window_name(deep, "all.jpg").ok());
  EXPECT_NE(parse_window_name(deep, "all.jpg").error().where.find("jpg requires u8 samples"), std::string::npos);
  EXPECT_FALSE(parse_window_name(make("yx", {4, 4}, 1, ElementType::kF32), "all.jpg").ok());
  EXPECT_FALSE(parse_window_name(make("yx", {4, 4}, 4, ElementType::kU8), "all.jpg").ok());
  EXPECT_TRUE(parse_window_name(make("yx", {4, 4}, 4, ElementType::kU8), "c3.jpg").ok());
  EXPECT_TRUE(parse_window_name(make("yx", {4, 4}, 3, ElementType::kU8), "all.jpg").ok());
  const Geometry high = make("yx", {kMaxJpegSide + 1, 2}, 1, ElementType::kU8);
  EXPECT_FALSE(parse_window_name(high, "all.jpg").ok());
  EXPECT_TRUE(parse_window_name(high, "y1+" + std::to_string(kMaxJpegSide) + ".jpg").ok());
}

TEST(TextView, EveryPieceIsThatOfTheText) {
  TextView view("0123456789");
  ByteVector into(4);
  EXPECT_EQ(view.size_bytes(), 10u);
  EXPECT_EQ(*view.read(8, into), 2u);
  EXPECT_EQ(as_text(ConstBytes(into).first(2)), "89");
  EXPECT_EQ(*view.read(10, into), 0u);
  EXPECT_EQ(*view.read(~std::uint64_t{0}, into), 0u);
}

}  // namespace
}  // namespace mdfs::views
