// Claims about what becomes of stacks whose pages lie along several axes.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/stack_description.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mdfs::imagefile {
namespace {

TiffFile tiff_of(std::uint64_t pages, const std::string& description) {
  TiffFile tiff;
  tiff.pages = pages;
  tiff.description = description;
  return tiff;
}

std::string ome(const std::string& pixels) {
  return "<?xml version=\"1.0\"?><!-- Pixels of --><OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\">"
         "<Image ID=\"Image:0\"><Pixels BigEndian=\"false\" ID=\"Pixels:0\" " +
         pixels + "><Channel ID=\"0\" SamplesPerPixel=\"1\"/></Pixels></Image></OME>";
}

// "z 2 um", or the refusal.
std::string judged(const TiffFile& tiff, bool flatten = false, bool one_page = false) {
  const auto facts = judge_stack(tiff, flatten, one_page, "a.tif");
  if (!facts.ok()) return facts.error().message();
  EXPECT_EQ(facts->pages, tiff.pages);
  return fmt::format("{} {} {}", facts->axis, facts->spacing, facts->unit);
}

TEST(StackDescriptionTest, PagesOfSeveralAxesAreRefusedUnlessTheLossIsAccepted) {
  const TiffFile cases[] = {
      tiff_of(24, "ImageJ=1.53t\nimages=24\nchannels=2\nslices=3\nframes=4\nhyperstack=true\n"),
      tiff_of(12, "ImageJ=1.53t\nimages=12\nslices=3\nframes=4\nhyperstack=true\n"),
      tiff_of(6, "ImageJ=1.53t\r\nimages=6\r\nchannels=2\r\nslices=3\r\n"),
      tiff_of(3, "ImageJ=1.53t\nimages=3\nchannels=3\nmode=composite\n"),
      tiff_of(24, ome("SizeC=\"2\" SizeT=\"4\" SizeX=\"9\" SizeY=\"9\" SizeZ=\"3\"")),
      tiff_of(2, ome("SizeC='2' SizeT='1' SizeZ='1'")),
      tiff_of(4, ome("SizeC=\"1\" SizeT=\"1\" SizeZ=\"10\"")),  // the other six are in another file
      tiff_of(8, ome("SizeZ=\"4\"") + "<Image><Pixels SizeZ=\"4\"></Pixels></Image>"),
      tiff_of(12, "<ome:OME><ome:Image><ome:Pixels\n SizeT=\"4\"\n SizeZ=\"3\"></ome:Pixels></ome:Image></ome:OME>"),
  };
  for (const TiffFile& tiff : cases) {
    const std::string message = judged(tiff);
    EXPECT_NE(message.find("a.tif: "), std::string::npos) << tiff.description << message;
    EXPECT_NE(message.find("--flatten"), std::string::npos) << tiff.description;
    EXPECT_EQ(judged(tiff, true), "z 0 ") << tiff.description;
    EXPECT_EQ(judged(tiff, false, true).find("a.tif"), std::string::npos) << tiff.description;
  }
}

TEST(StackDescriptionTest, AStackAlongOneAxisKeepsTheAxisAndItsSpacing) {
  const struct {
    TiffFile tiff;
    const char* says;
  } cases[] = {
      {tiff_of(5, ""), "z 0 "},
      {tiff_of(5, "a picture of Pixels"), "z 0 "},
      {tiff_of(5, "ImageJ=1.53t\nimages=5\nslices=5\nunit=micron\nspacing=0.5\n"), "z 0.5 um"},
      {tiff_of(5, "ImageJ=1.53t\nimages=5\nunit=\\u00B5m\nspacing=2\n"), "z 2 um"},
      {tiff_of(5, "ImageJ=1.53t\nimages=5\nslices=5\nunit=pixel\nspacing=0.5\n"), "z 0 "},
      {tiff_of(5, "ImageJ=1.53t\nimages=5\nframes=5\nunit=micron\nspacing=7\nfinterval=0.25\n"), "t 0.25 s"},
      {tiff_of(5, "ImageJ=1.53t\nimages=5\nframes=5\nunit=micron\nspacing=7\n"), "t 0 "},
      {tiff_of(5, "ImageJ=1.53t\nimages=5\nslices=5\nunit=nm\nspacing=-3\n"), "z 0 "},
      {tiff_of(5, ome("SizeC=\"1\" SizeT=\"1\" SizeZ=\"5\" PhysicalSizeZ=\"1.5\"")), "z 1.5 um"},
      {tiff_of(5, ome("SizeC=\"1\" SizeT=\"5\" SizeZ=\"1\" TimeIncrement=\"30\" TimeIncrementUnit=\"ms\"")), "t 30 ms"},
  };
  for (const auto& one : cases) EXPECT_EQ(judged(one.tiff), one.says) << one.tiff.description;
  TiffFile colour = tiff_of(5, ome("SizeC=\"3\" SizeT=\"1\" SizeZ=\"5\""));
  colour.samples = 3;
  EXPECT_EQ(judged(colour), "z 0 ");
}

TEST(StackDescriptionTest, CalibrationInWordsBecomesAResolution) {
  TiffFile tiff = tiff_of(1, "ImageJ=1.53t\nunit=micron\n");
  tiff.resolution_unit = 1;
  tiff.x_resolution = 5;
  tiff.y_resolution = 2;
  const auto imagej = judge_stack(tiff, false, false, "a.tif");
  ASSERT_TRUE(imagej.ok());
  EXPECT_NEAR(imagej->columns_per_cm, 50000, 1e-6);
  EXPECT_NEAR(imagej->rows_per_cm, 20000, 1e-6);
  tiff.resolution_unit = 3;  // then the fields say it all
  EXPECT_EQ(judge_stack(tiff, false, false, "a.tif")->columns_per_cm, 0);
  const auto xml =
      judge_stack(tiff_of(1, ome("PhysicalSizeX=\"200\" PhysicalSizeXUnit=\"nm\" PhysicalSizeY=\"0.5\" SizeZ=\"1\"")),
                  false, false, "");
  ASSERT_TRUE(xml.ok());
  EXPECT_NEAR(xml->columns_per_cm, 50000, 1e-6);
  EXPECT_NEAR(xml->rows_per_cm, 20000, 1e-6);
}

TEST(StackDescriptionTest, ImagesWithoutDirectoriesAreNeverLeftOut) {
  const TiffFile tiff = tiff_of(1, "ImageJ=1.53t\nimages=900\nslices=900\n");
  EXPECT_NE(judged(tiff).find("900"), std::string::npos);
  EXPECT_NE(judged(tiff, true).find("900"), std::string::npos);
  EXPECT_EQ(judged(tiff, false, true).find("a.tif"), std::string::npos);
}

TEST(StackDescriptionTest, AnArrayOfTifffileIsAStackAlongOneAxisOrRefused) {
  const auto shaped = [](std::uint64_t pages, std::uint64_t page_samples, const std::string& shape) {
    TiffFile tiff = tiff_of(pages, "{\"shape\": " + shape + "}");
    tiff.page_samples = page_samples;
    return tiff;
  };
  EXPECT_EQ(judged(shaped(5, 1320, "[5, 40, 33]")), "z 0 ");
  EXPECT_EQ(judged(shaped(5, 3960, "[5, 40, 33, 3]")), "z 0 ");
  EXPECT_EQ(judged(shaped(1, 3960, "[3, 40, 33]")), "z 0 ");  // one page of three planes
  EXPECT_EQ(judged(shaped(9, 1320, "[40, 33]")), "z 0 ");     // pages that were written one by one
  EXPECT_EQ(judged(shaped(5, 1320, "[1, 5, 1, 40, 33]")), "z 0 ");
  EXPECT_EQ(judged(shaped(5, 1320, "[7, 11]")), "z 0 ");  // of another file
  for (const char* other : {"[]", "7", "[5, -1, 40, 33]", "[5, 0, 33]", "[4294967296, 4294967296, 4294967296, 40, 33]"})
    EXPECT_EQ(judged(shaped(5, 1320, other)), "z 0 ") << other;
  EXPECT_NE(judged(shaped(24, 1320, "[2, 3, 4, 40, 33]")).find("an array of 2x3x4 pages"), std::string::npos);
  EXPECT_EQ(judged(shaped(24, 1320, "[2, 3, 4, 40, 33]"), true), "z 0 ");
  EXPECT_NE(judged(shaped(15, 1320, "[5, 40, 33]")).find("an array of 5 pages"), std::string::npos);  // three arrays
  // One directory for all, and the samples of the others behind those of the first.
  for (const bool flatten : {false, true})
    EXPECT_NE(judged(shaped(1, 1320, "[5, 40, 33]"), flatten).find("it has 5 images"), std::string::npos);
  EXPECT_EQ(judged(shaped(1, 1320, "[5, 40, 33]"), false, true), "z 0 ");
}

}  // namespace
}  // namespace mdfs::imagefile
