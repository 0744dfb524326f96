// Claims about pictures through OpenImageIO.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "imagefile/image_file.h"
#include "made_tiff.h"
#include "scratch.h"

namespace mdfs::imagefile {
namespace {

using geometry::ElementType;
using OiioTest = ScratchTest;

struct Case {
  const char* file;
  ArrayInfo array;
};

// Samples that every float format holds exactly.
ByteVector samples(const ArrayInfo& array) {
  ByteVector bytes = ByteVector(*array_bytes(array));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 7919 + i / 256) & 0x3f);
  return bytes;
}

TEST_F(OiioTest, LosslessFormatsReturnEverySampleUnchanged) {
  const Case cases[] = {
      {"grey.png", {{70, 131}, ElementType::kU8, "yx"}},      {"alpha.png", {{70, 131, 4}, ElementType::kU8, "yxc"}},
      {"deep.png", {{70, 131, 3}, ElementType::kU16, "yxc"}}, {"float.tif", {{70, 131}, ElementType::kF32, "yx"}},
      {"many.tif", {{70, 131, 6}, ElementType::kU16, "yxc"}}, {"pages.tif", {{5, 70, 131}, ElementType::kU16, "zyx"}},
      {"half.exr", {{70, 131, 3}, ElementType::kF16, "yxc"}}, {"film.dpx", {{70, 131, 3}, ElementType::kU16, "yxc"}},
      {"small.bmp", {{70, 131, 3}, ElementType::kU8, "yxc"}}, {"small.tga", {{70, 131, 4}, ElementType::kU8, "yxc"}},
      {"old.sgi", {{70, 131, 3}, ElementType::kU16, "yxc"}},
  };
  for (const Case& one : cases) {
    const ByteVector bytes = samples(one.array);
    const Status written = write_all(path(one.file), one.array, bytes);
    ASSERT_TRUE(written.ok()) << one.file << ": " << written.error().message();
    const auto back = read_all(path(one.file));
    ASSERT_TRUE(back.ok()) << one.file << ": " << back.error().message();
    EXPECT_EQ(back->first, one.array) << one.file;
    EXPECT_TRUE(back->second == bytes) << one.file;
  }
}

// The first bytes of the one file in this folder that this process has open; it may have no name yet.
std::string start_of_open_file(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(entry.path(), error);
    if (error || !target.string().starts_with(folder)) continue;
    std::string start(4, '?');
    std::ifstream(entry.path(), std::ios::binary).read(start.data(), 4);
    return start;
  }
  return "";
}

TEST_F(OiioTest, ATiffFileOfMoreThanFourGibibytesIsBigTiffFromItsFirstBytes) {
  const struct {
    ArrayInfo array;
    bool big;
  } cases[] = {
      {{{3, 20, 30}, ElementType::kU8, "zyx"}, false},
      {{{30000, 30000, 3}, ElementType::kU8, "yxc"}, false},
      {{{30000, 30000, 3}, ElementType::kU16, "yxc"}, true},
      {{{5, 30000, 30000}, ElementType::kU8, "zyx"}, true},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(needs_big_tiff(one.array), one.big);
    const auto sink = create_sink(path("a.tif"), one.array, false);
    ASSERT_TRUE(sink.ok()) << sink.error().message();
    EXPECT_EQ(start_of_open_file(path("")), std::string(one.big ? "II+\0" : "II*\0", 4));
  }
}

TEST_F(OiioTest, APageCanBePicked) {
  const ArrayInfo array{{3, 20, 30}, ElementType::kU8, "zyx"};
  const ByteVector bytes = samples(array);
  ASSERT_TRUE(write_all(path("a.tif"), array, bytes).ok());
  SourceOptions options;
  options.page = 1;
  const auto page = read_all(path("a.tif"), options);
  ASSERT_TRUE(page.ok()) << page.error().message();
  EXPECT_EQ(page->second, ByteVector(bytes.begin() + 600, bytes.begin() + 1200));
  options.page = 3;
  EXPECT_EQ(open_source(path("a.tif"), options).error().code, Errc::kOutOfRange);
}

TEST_F(OiioTest, WhatAFormatWouldChangeIsRefusedAndLeavesNoFile) {
  const Case cases[] = {
      {"a.png", {{8, 8}, ElementType::kF32, "yx"}},    {"a.jpg", {{8, 8}, ElementType::kU16, "yx"}},
      {"a.jpg", {{8, 8, 4}, ElementType::kU8, "yxc"}}, {"a.png", {{2, 8, 8}, ElementType::kU8, "zyx"}},
      {"a.exr", {{8, 8}, ElementType::kU8, "yx"}},     {"a.png", {{8, 8, 7}, ElementType::kU8, "yxc"}},
      {"a.png", {{64}, ElementType::kU8, "x"}},        {"a.unknown", {{8, 8}, ElementType::kU8, "yx"}},
      {"a.png", {{0, 8}, ElementType::kU8, "yx"}},
  };
  for (const Case& one : cases) {
    const auto sink = create_sink(path(one.file), one.array, false);
    ASSERT_FALSE(sink.ok()) << one.file;
    EXPECT_NE(sink.error().where.find(one.file), std::string::npos) << sink.error().message();
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(OiioTest, ADamagedPictureIsAnErrorNotSilence) {
  const ArrayInfo array{{200, 300, 3}, ElementType::kU8, "yxc"};
  ASSERT_TRUE(write_all(path("a.png"), array, random_bytes(180000)).ok());
  put("cut.png", get("a.png").substr(0, 60000));
  const auto back = read_all(path("cut.png"));
  ASSERT_FALSE(back.ok());
  EXPECT_NE(back.error().where.find("cut.png"), std::string::npos) << back.error().message();
}

TEST_F(OiioTest, ASequenceOfDpxFramesIsOneImage) {
  const ArrayInfo array{{3, 20, 30, 3}, ElementType::kU16, "tyxc"};
  const ByteVector bytes = samples(array);
  ASSERT_TRUE(write_all(path("shot.%04d.dpx"), array, bytes).ok());
  const auto back = read_all(path("shot.%04d.dpx"));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->first, array);
  EXPECT_TRUE(back->second == bytes);
}

// ---- resolutions

geometry::Geometry spaced(double y, const std::string& y_unit, double x, const std::string& x_unit) {
  geometry::Geometry geometry;
  geometry.rank = 3;
  geometry.axes = "zyx";
  geometry.shape = {2, 20, 30};
  geometry.type = ElementType::kU8;
  geometry.spacing = {0, y, x};
  geometry.unit = {"", y_unit, x_unit};
  return geometry;
}

// The spacing of rows and columns, as people write it; "0, 0" if it is not known.
std::string spacing_of(const ArrayInfo& array) {
  const auto geometry = choose_geometry(array, "");
  if (!geometry.ok()) return geometry.error().message();
  const unsigned x = geometry->rank - 1;
  return fmt::format("{}{}, {}{}", geometry->spacing[x - 1], geometry->unit[x - 1], geometry->spacing[x],
                     geometry->unit[x]);
}

TEST_F(OiioTest, TheSpacingOfAnExportedImageComesBackWithTheFile) {
  const struct {
    geometry::Geometry geometry;
    const char* png;  // it holds whole numbers of samples for a metre
  } cases[] = {
      {spaced(0.5, "um", 0.2, "um"), "0.5um, 0.2um"},     {spaced(0.3, "um", 0.3, "um"), "0.3um, 0.3um"},
      {spaced(4, "nm", 9.7, "nm"), "4nm, 9.7nm"},         {spaced(1, "mm", 1, "mm"), "1mm, 1mm"},
      {spaced(25.4, "um", 3.7, "um"), "25.4um, 3.7um"},   {spaced(700, "um", 0.3, "um"), "700um, 0.3um"},
      {spaced(9.5, "mm", 0.125, "um"), "9.5mm, 0.125um"}, {spaced(352.8, "um", 352.8, "um"), "352.9um, 352.9um"},
  };
  for (const auto& [geometry, in_png] : cases) {
    ArrayInfo array{{2, 20, 30}, ElementType::kU8, "zyx"};
    set_resolution(array, geometry);
    ASSERT_TRUE(write_all(path("a.tif"), array, samples(array), true).ok());
    const auto tiff = read_all(path("a.tif"));
    ASSERT_TRUE(tiff.ok()) << tiff.error().message();
    EXPECT_EQ(spacing_of(tiff->first),
              fmt::format("{}{}, {}{}", geometry.spacing[1], geometry.unit[1], geometry.spacing[2], geometry.unit[2]));
    ArrayInfo page = array;
    page.lengths.erase(page.lengths.begin());
    page.axes = "yx";
    ASSERT_TRUE(write_all(path("a.png"), page, samples(page), true).ok());
    const auto png = read_all(path("a.png"));
    ASSERT_TRUE(png.ok()) << png.error().message();
    EXPECT_EQ(spacing_of(png->first), in_png);
  }
}

TEST_F(OiioTest, SpacingsOfUpToSixDigitsPassThroughTiff) {
  std::mt19937 generator(3);
  for (int i = 0; i < 40; ++i) {
    const double um = std::strtod(
        fmt::format("{:.6g}", std::exp(std::uniform_real_distribution(-4.0, 6.8)(generator))).c_str(), nullptr);
    const geometry::Geometry geometry = spaced(um, "um", um, "um");
    ArrayInfo array{{20, 30}, ElementType::kU8, "yx"};
    set_resolution(array, geometry);
    ASSERT_TRUE(write_all(path("a.tif"), array, samples(array), true).ok());
    const auto back = read_all(path("a.tif"));
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(spacing_of(back->first), fmt::format("{0}um, {0}um", um));
  }
}

void put_number(std::string& bytes, std::uint32_t value, unsigned width) {
  for (unsigned i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
}

// A picture of 2x2 samples that says it has so many samples in its unit: 1 none, 2 inch, 3 cm.
std::string tiff_of(std::pair<std::uint32_t, std::uint32_t> x, std::pair<std::uint32_t, std::uint32_t> y,
                    std::uint32_t unit) {
  constexpr std::uint32_t kShort = 3, kLong = 4, kRational = 5, kBehind = 8 + 2 + 12 * 12 + 4;
  const std::array<std::array<std::uint32_t, 3>, 12> fields = {{{256, kShort, 2},
                                                                {257, kShort, 2},
                                                                {258, kShort, 8},
                                                                {259, kShort, 1},
                                                                {262, kShort, 1},
                                                                {273, kLong, kBehind + 16},
                                                                {277, kShort, 1},
                                                                {278, kShort, 2},
                                                                {279, kLong, 4},
                                                                {282, kRational, kBehind},
                                                                {283, kRational, kBehind + 8},
                                                                {296, kShort, unit}}};
  std::string bytes = "II*";
  bytes += '\0';
  put_number(bytes, 8, 4);
  put_number(bytes, fields.size(), 2);
  for (const auto& [tag, type, value] : fields) {
    put_number(bytes, tag, 2);
    put_number(bytes, type, 2);
    put_number(bytes, 1, 4);
    put_number(bytes, value, 4);
  }
  put_number(bytes, 0, 4);
  for (const std::uint32_t number : {x.first, x.second, y.first, y.second}) put_number(bytes, number, 4);
  return bytes + "abcd";
}

TEST_F(OiioTest, OnlyAResolutionThatIsAMeasurementBecomesASpacing) {
  const struct {
    std::string tiff, spacing;
  } cases[] = {
      {tiff_of({300, 1}, {300, 1}, 2), "84.66667um, 84.66667um"},
      {tiff_of({300, 1}, {600, 1}, 2), "42.33333um, 84.66667um"},
      {tiff_of({50000, 1}, {20000, 1}, 3), "0.5um, 0.2um"},
      {tiff_of({1, 50}, {1, 50}, 3), "0.5m, 0.5m"},
      {tiff_of({50000, 1}, {20000, 1}, 1), "0, 0"},  // of no unit
      {tiff_of({0, 1}, {0, 1}, 3), "0, 0"},
      {tiff_of({50000, 1}, {0, 1}, 3), "0, 0"},
      {tiff_of({1, 0}, {1, 0}, 3), "0, 0"},
      {tiff_of({0, 0}, {0, 0}, 2), "0, 0"},
      {tiff_of({4294967295, 1}, {4294967295, 1}, 3), "0, 0"},
      {tiff_of({72, 1}, {72, 1}, 2), "0, 0"},
      {tiff_of({96, 1}, {96, 1}, 2), "0, 0"},
      {tiff_of({10, 1}, {10, 1}, 3), "0, 0"},
      {tiff_of({72, 1}, {144, 1}, 2), "176.3889um, 352.7778um"},
  };
  for (const auto& one : cases) {
    put("a.tif", one.tiff);
    const auto back = read_all(path("a.tif"));
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(spacing_of(back->first), one.spacing);
  }
}

// The JPEG file with nothing beside its picture but a density in dots per inch and, of a camera, an f-number.
std::string jpeg_of(const std::string& jpeg, std::uint16_t dpi, bool camera) {
  const auto big = [](std::size_t value) {
    return std::string{static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
  };
  std::string bytes = jpeg.substr(0, 2) + "\xff\xe0" + big(16) + std::string("JFIF\0\1\1\1", 8) + big(dpi) + big(dpi) +
                      std::string(2, '\0');
  if (camera) {
    std::string exif = std::string("Exif\0\0II*\0", 10);
    put_number(exif, 8, 4);
    for (const auto& [tag, type, at] : {std::array{0x8769u, 4u, 26u}, std::array{0x829du, 5u, 44u}}) {
      put_number(exif, 1, 2);
      put_number(exif, tag, 2);
      put_number(exif, type, 2);
      put_number(exif, 1, 4);
      put_number(exif, at, 4);
      put_number(exif, 0, 4);
    }
    put_number(exif, 28, 4);
    put_number(exif, 10, 4);
    bytes += "\xff\xe1" + big(exif.size() + 2) + exif;
  }
  std::size_t at = 2;
  while (at + 4 < jpeg.size()) {
    const auto marker = static_cast<unsigned char>(jpeg[at + 1]);
    const std::size_t length =
        2 + 256u * static_cast<unsigned char>(jpeg[at + 2]) + static_cast<unsigned char>(jpeg[at + 3]);
    if ((marker < 0xe0 || marker > 0xef) && marker != 0xfe) break;
    at += length;
  }
  return bytes + jpeg.substr(at);
}

TEST_F(OiioTest, AHyperstackIsRefusedAndAStackKeepsItsCalibration) {
  MadeTiff made;
  made.pages = 6;
  made.description = std::string("ImageJ=1.53\nimages=6\nslices=3\nframes=2\n\0", 41);
  put("a.tif", made.bytes());
  const auto refused = read_all(path("a.tif"));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("2 frames of 3 slices"), std::string::npos) << refused.error().message();
  SourceOptions options;
  options.flatten = true;
  const auto flat = read_all(path("a.tif"), options);
  ASSERT_TRUE(flat.ok()) << flat.error().message();
  EXPECT_EQ(flat->first.lengths, (std::vector<std::uint64_t>{6, 6, 4}));
  for (const auto& [text, axes, spacing] :
       {std::tuple("ImageJ=1.53\nimages=6\nslices=6\nunit=um\nspacing=1.5\n", "zyx", "1.5um"),
        std::tuple("ImageJ=1.53\nimages=6\nframes=6\nfinterval=0.5\n", "tyx", "0.5s")}) {
    made.description = text;
    put("a.tif", made.bytes());
    const auto stack = read_all(path("a.tif"));
    ASSERT_TRUE(stack.ok()) << stack.error().message();
    EXPECT_EQ(stack->first.axes, axes);
    const auto geometry = choose_geometry(stack->first, "");
    ASSERT_TRUE(geometry.ok());
    EXPECT_EQ(fmt::format("{}{}", geometry->spacing[0], geometry->unit[0]), spacing);
  }
}

TEST_F(OiioTest, CmykStaysFourChannels) {
  MadeTiff made;
  made.height = made.rows = 2;
  made.changes = {{0, 256, 1}, {0, 277, 4}, {0, 262, 5}};
  put("a.tif", made.bytes());
  const auto back = read_all(path("a.tif"));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->first.lengths, (std::vector<std::uint64_t>{2, 1, 4}));
  EXPECT_EQ(back->second, ByteVector(8, std::byte{'a'}));
}

// The library makes samples up for any file named .null, and ignores where the numbers of a FITS file begin.
TEST_F(OiioTest, AFormatWhoseReaderIsUnsafeIsRefused) {
  std::string fits;
  for (const char* card :
       {"SIMPLE  =                    T", "BITPIX  =                   16", "NAXIS   =                    2",
        "NAXIS1  =                    4", "NAXIS2  =                    3", "BZERO   =                32768", "END"}) {
    fits += card;
    fits.resize((fits.size() + 79) / 80 * 80, ' ');
  }
  fits.resize(2880, ' ');
  fits.resize(5760);
  put("a.null", "");
  put("a.fits", fits);
  for (const char* file : {"a.null", "a.fits"}) {
    const auto back = read_all(path(file));
    ASSERT_FALSE(back.ok()) << file;
    EXPECT_EQ(back.error().code, Errc::kNotSupported);
    EXPECT_NE(back.error().where.find(file), std::string::npos) << back.error().message();
  }
}

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(at, 2)), nullptr, 16));
  return bytes;
}

// Two samples: (200, 100, 50) with alpha 128, and (10, 20, 30).
TEST_F(OiioTest, WebpWithAlphaIsRefusedBecauseItsReaderChangesColours) {
  put("alpha.webp", from_hex("5249464622000000574542505650384c160000002f010000100f700aa82bf89ec2e381ffc1838ce87f00"));
  put("opaque.webp", from_hex("5249464622000000574542505650384c150000002f010000000f700aa82bf89ec263fe830719d1ff0000"));
  const auto alpha = read_all(path("alpha.webp"));
  ASSERT_FALSE(alpha.ok());
  EXPECT_EQ(alpha.error().code, Errc::kNotSupported);
  EXPECT_NE(alpha.error().where.find("alpha.webp: a WebP picture with alpha"), std::string::npos);
  const auto opaque = read_all(path("opaque.webp"));
  ASSERT_TRUE(opaque.ok()) << opaque.error().message();
  ByteVector wanted;
  for (const int sample : {200, 100, 50, 10, 20, 30}) wanted.push_back(static_cast<std::byte>(sample));
  EXPECT_TRUE(opaque->second == wanted);
}

// The second and the fourth of four samples are transparent.
TEST_F(OiioTest, TransparentSamplesOfGifAreZerosWithAWarning) {
  std::string gif = from_hex(
      "47494638396104000100810000c864320a141e07080900000021f90401000001002c000000000400010000080700010410102020003b");
  put("clear.gif", gif);
  gif.at(gif.find("\x21\xf9\x04") + 3) = 0;  // no transparent index
  put("opaque.gif", gif);
  for (const bool clear : {true, false}) {
    const auto source = open_source(path(clear ? "clear.gif" : "opaque.gif"), {});
    ASSERT_TRUE(source.ok()) << source.error().message();
    EXPECT_EQ((*source)->warning(), "");
    ByteVector samples(16);
    ASSERT_TRUE((*source)->read(samples).ok());
    EXPECT_EQ(samples[0], std::byte{200});
    EXPECT_EQ(samples[4], std::byte(clear ? 0 : 10));
    EXPECT_EQ((*source)->warning().empty(), !clear) << (*source)->warning();
  }
}

// As the manual says.
TEST_F(OiioTest, WhiteAtZeroIsTurnedRound) {
  MadeTiff made;
  made.height = made.rows = 2;
  made.changes = {{0, 262, 0}};
  put("a.tif", made.bytes());
  const auto back = read_all(path("a.tif"));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->second, ByteVector(8, std::byte{255 - 'a'}));
}

TEST_F(OiioTest, APaletteBecomesColour) {
  MadeTiff made;
  made.palette.assign(768, 257);
  put("a.tif", made.bytes());
  const auto back = read_all(path("a.tif"));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->first.lengths, (std::vector<std::uint64_t>{6, 4, 3}));
  EXPECT_EQ(back->second, ByteVector(72, std::byte{1}));
}

TEST_F(OiioTest, AScannerMeasuresAndACameraDoesNot) {
  const ArrayInfo array{{20, 30, 3}, ElementType::kU8, "yxc"};
  ASSERT_TRUE(write_all(path("a.jpg"), array, samples(array)).ok());
  const std::string jpeg = get("a.jpg");
  const struct {
    std::uint16_t dpi;
    bool camera;
    const char* spacing;
  } cases[] = {{300, false, "84.66667um, 84.66667um"}, {300, true, "0, 0"}, {72, false, "0, 0"}, {72, true, "0, 0"}};
  for (const auto& one : cases) {
    put("b.jpg", jpeg_of(jpeg, one.dpi, one.camera));
    const auto back = read_all(path("b.jpg"));
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(back->first.lengths, array.lengths);
    EXPECT_EQ(spacing_of(back->first), one.spacing) << one.dpi << " " << one.camera;
  }
  const auto own = read_all(path("a.jpg"));
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(spacing_of(own->first), "0, 0");
}

TEST_F(OiioTest, APictureOverTimeHasNoLengthAlongTime) {
  ArrayInfo array{{20, 30}, ElementType::kU8, "yx"};
  array.rows_per_cm = array.columns_per_cm = 50000;
  const auto geometry = choose_geometry(array, "tx");
  ASSERT_TRUE(geometry.ok());
  EXPECT_EQ(geometry->spacing[0], 0);
  EXPECT_EQ(geometry->unit[0], "");
  EXPECT_EQ(geometry->spacing[1], 0.2);
  EXPECT_EQ(geometry->unit[1], "um");
}

}  // namespace
}  // namespace mdfs::imagefile
