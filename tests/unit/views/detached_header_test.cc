// Claims about detached headers.
// SPDX-License-Identifier: Apache-2.0
#include "views/detached_header.h"

#include <gtest/gtest.h>

#include "small_image.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

std::string header(const Geometry& geometry, HeaderFormat format, std::string_view file = "scan.raw") {
  const auto text = detached_header(geometry, format, file);
  return text.ok() ? *text : "error: " + text.error().where;
}

TEST(DetachedHeaderTest, NrrdHasAxesFastestFirstWithTheirSpacing) {
  Geometry volume = make("zyx", {5, 60, 70}, 1, ElementType::kU16);
  volume.spacing = {2, 0.5, 0.25};
  volume.unit = {"um", "um", "um"};
  EXPECT_EQ(header(volume, HeaderFormat::kNrrd),
            "NRRD0005\ntype: uint16\ndimension: 3\nsizes: 70 60 5\nkinds: space space space\n"
            "spacings: 0.25 0.5 2\nunits: \"um\" \"um\" \"um\"\nendian: little\nencoding: raw\ndata file: scan.raw\n");
  Geometry film = make("tyx", {9, 60, 70}, 3, ElementType::kU8);
  film.spacing = {0.04, 0, 0};
  film.unit = {"s", "", ""};
  EXPECT_EQ(header(film, HeaderFormat::kNrrd),
            "NRRD0005\ntype: uint8\ndimension: 4\nsizes: 3 70 60 9\nkinds: vector space space time\n"
            "spacings: nan nan nan 0.04\nunits: \"\" \"\" \"\" \"s\"\nendian: little\nencoding: raw\n"
            "data file: scan.raw\n");
}

TEST(DetachedHeaderTest, MetaImageIsInMillimetresWhereAllUnitsAreLengths) {
  Geometry volume = make("zyx", {5, 60, 70}, 2, ElementType::kF32);
  volume.spacing = {2, 500, 0.25};
  volume.unit = {"mm", "um", "cm"};
  const std::string text = header(volume, HeaderFormat::kMetaImage);
  EXPECT_NE(text.find("\nDimSize = 70 60 5\nElementSpacing = 2.5 0.5 2\nElementNumberOfChannels = 2\n"
                      "ElementType = MET_FLOAT\nElementDataFile = scan.raw\n"),
            std::string::npos)
      << text;
  volume.unit[0] = "s";
  EXPECT_NE(header(volume, HeaderFormat::kMetaImage).find("\nElementSpacing = 0.25 500 2\n"), std::string::npos);
  volume.spacing = {};
  EXPECT_NE(header(volume, HeaderFormat::kMetaImage).find("\nElementSpacing = 1 1 1\n"), std::string::npos);
}

TEST(DetachedHeaderTest, EnviHasPlanesOrChannelsAsBands) {
  EXPECT_NE(header(make("zyx", {5, 60, 70}, 1, ElementType::kI16), HeaderFormat::kEnvi)
                .find("samples = 70\nlines = 60\nbands = 5\nheader offset = 0\nfile type = ENVI Standard\n"
                      "data type = 2\ninterleave = bsq\n"),
            std::string::npos);
  EXPECT_NE(header(make("yx", {60, 70}, 3, ElementType::kU8), HeaderFormat::kEnvi).find("bands = 3\n"),
            std::string::npos);
  EXPECT_EQ(header(make("zyx", {5, 60, 70}, 3, ElementType::kU8), HeaderFormat::kEnvi),
            "error: a .hdr header cannot describe several planes of several channels");
  EXPECT_NE(header(make("x", {70}, 1, ElementType::kU8), HeaderFormat::kEnvi).find("lines = 1\nbands = 1\n"),
            std::string::npos);
}

TEST(DetachedHeaderTest, VrtHasABandForEachChannelOfEachPlane) {
  const std::string text = header(make("zyx", {2, 60, 70}, 2, ElementType::kU16), HeaderFormat::kVrt, "a&b<c>.raw");
  EXPECT_NE(text.find("rasterXSize=\"70\" rasterYSize=\"60\""), std::string::npos);
  EXPECT_NE(text.find("band=\"4\" subClass=\"VRTRawRasterBand\">\n"
                      "    <SourceFilename relativeToVRT=\"1\">a&amp;b&lt;c&gt;.raw</SourceFilename>\n"
                      "    <ImageOffset>16802</ImageOffset>\n    <PixelOffset>4</PixelOffset>\n"
                      "    <LineOffset>280</LineOffset>\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("band=\"5\""), std::string::npos);
  EXPECT_EQ(header(make("zyx", {4097, 6, 7}, 1, ElementType::kU8), HeaderFormat::kVrt),
            "error: a .vrt header cannot describe so many bands");
}

// Their readers keep them in 32 bits, and would show other samples.
TEST(DetachedHeaderTest, LengthsOf2To31AreLeftToNrrd) {
  constexpr std::uint64_t kLong = std::uint64_t{1} << 31;
  const auto is_there = [](const geometry::Geometry& image) {
    std::string suffixes;
    for (const HeaderFormat format : kHeaderFormats)
      if (check_header(image, format, "a.raw").ok()) suffixes += std::string(suffix(format)) + " ";
    return suffixes;
  };
  EXPECT_EQ(is_there(make("yx", {6, kLong - 1}, 1, ElementType::kU8)), "nhdr mhd hdr vrt ");
  EXPECT_EQ(is_there(make("yx", {6, kLong}, 1, ElementType::kU8)), "nhdr ");
  EXPECT_EQ(is_there(make("yx", {2, 2 * kLong + 10}, 1, ElementType::kU8)), "nhdr ");
  EXPECT_EQ(is_there(make("yx", {kLong, 6}, 1, ElementType::kU8)), "nhdr ");
  EXPECT_EQ(is_there(make("x", {5000000000}, 1, ElementType::kU8)), "nhdr ");
  EXPECT_EQ(is_there(make("yx", {3, 600000000}, 1, ElementType::kF64)), "nhdr mhd ");
  EXPECT_EQ(is_there(make("zyx", {65536, 8, 8}, 1, ElementType::kU8)), "nhdr mhd hdr ");
  EXPECT_EQ(is_there(make("zyx", {65537, 8, 8}, 1, ElementType::kU8)), "nhdr mhd ");
}

TEST(DetachedHeaderTest, WhatAFormatCannotHoldIsAnError) {
  for (const HeaderFormat format : kHeaderFormats) {
    EXPECT_EQ(header(make("yx", {6, 7}, 1, ElementType::kF16), format).rfind("error: ", 0), 0u);
    EXPECT_EQ(header(make("yx", {0, 7}, 1, ElementType::kU8), format).rfind("error: ", 0), 0u);
    EXPECT_EQ(parse_header_suffix(suffix(format)), format);
  }
  EXPECT_EQ(parse_header_suffix("png"), std::nullopt);
}

// Each was tried with pynrrd, SimpleITK and GDAL: those that a reader does not find have no header.
TEST(DetachedHeaderTest, AHeaderExistsForTheNamesThatItsReadersFind) {
  struct Row {
    const char* name;
    bool nrrd, meta, vrt;
  };
  const auto image = make("yx", {6, 7}, 1, ElementType::kU8);
  const auto there = [&](HeaderFormat format, const char* name) { return check_header(image, format, name).ok(); };
  for (const Row& row : {Row{"a b.raw", true, true, true},
                         {"a=b.raw", true, true, true},
                         {"a'b\"c&<d>#.raw", true, true, true},
                         {"a%d.raw", false, false, true},
                         {"a\nb.raw", false, false, false},
                         {"LIST.raw", false, false, true},
                         {" a.raw", false, false, false},
                         {"a\\b.raw", true, false, false},
                         {"C:\\a.raw", false, false, false},
                         {"~a.raw", true, false, true},
                         {"=a.raw", true, false, true},
                         {":=.raw", false, false, true},
                         {"a:b.raw", false, true, true},
                         {"\xe6\x97\xa5.raw", false, true, true}}) {
    EXPECT_EQ(there(HeaderFormat::kNrrd, row.name), row.nrrd) << row.name;
    EXPECT_EQ(there(HeaderFormat::kMetaImage, row.name), row.meta) << row.name;
    EXPECT_EQ(there(HeaderFormat::kVrt, row.name), row.vrt) << row.name;
    EXPECT_TRUE(there(HeaderFormat::kEnvi, row.name)) << row.name;
  }
}

}  // namespace
}  // namespace mdfs::views
