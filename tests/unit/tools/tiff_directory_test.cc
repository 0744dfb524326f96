// Claims about what is refused of a TIFF file before a library reads it.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/tiff_directory.h"

#include <gtest/gtest.h>

#include <random>

#include "made_tiff.h"

namespace mdfs::imagefile {
namespace {

Result<TiffFile> parsed(const std::string& file) {
  MemoryBytes bytes(as_bytes(file));
  return parse_tiff(bytes, "a.tif");
}

std::string refusal(const std::string& file) {
  const auto result = parsed(file);
  return result.ok() ? "" : result.error().message();
}

std::vector<MadeTiff> kinds() {
  std::vector<MadeTiff> all;
  for (unsigned i = 0; i < 32; ++i) {
    MadeTiff made;
    made.big = i & 1;
    made.big_endian = i & 2;
    made.tiled = i & 4;
    made.pages = i & 8 ? 5 : 1;
    made.rows = i & 16 ? 6 : 4;
    all.push_back(made);
  }
  return all;
}

TEST(TiffDirectoryTest, PagesAreCountedInEveryKindOfFile) {
  for (const MadeTiff& made : kinds()) {
    const std::string file = made.bytes();
    EXPECT_TRUE(is_tiff(as_bytes(file)));
    const auto tiff = parsed(file);
    ASSERT_TRUE(tiff.ok()) << tiff.error().message();
    EXPECT_EQ(tiff->pages, made.pages);
    EXPECT_FALSE(tiff->palette);
  }
}

TEST(TiffDirectoryTest, EveryTruncationIsRefused) {
  for (const MadeTiff& made : kinds()) {
    const std::string file = made.bytes();
    for (std::size_t size = 0; size < file.size(); ++size) {
      const std::string message = refusal(file.substr(0, size));
      ASSERT_NE(message.find("a.tif"), std::string::npos)
          << size << " of " << file.size() << " bytes of " << made.big << made.big_endian << made.tiled;
    }
  }
}

TEST(TiffDirectoryTest, DirectoriesInALoopAreRefused) {
  for (const int next : {0, 2, 4}) {
    MadeTiff made;
    made.pages = 5;
    made.next_of_last = next;
    EXPECT_NE(refusal(made.bytes()).find("earlier"), std::string::npos) << next;
  }
}

TEST(TiffDirectoryTest, APageWhoseSamplesAreNotThereIsRefused) {
  const struct {
    unsigned tag;
    std::uint64_t value;
    const char* why;
  } cases[] = {
      {257, 600, "strips of"},      // more rows than strips
      {256, 5, "at least"},         // wider than its strips
      {273, 0xfffffff0, "beyond"},  // the list of strips
      {279, 0xfffffff0, "beyond"},  // the list of their lengths
      {278, 0, "samples of"},       // no rows in a strip
      {257, 0, "samples of"},       // no rows
      {258, 16, "at least"},        // samples of two bytes
      {277, 3, "at least"},         // three samples at each place
      {257, 0xffffffff, "samples of"},
      {257, 4, "samples take 2"},  // more strips than rows need: samples that would be left out
  };
  for (const auto& one : cases) {
    MadeTiff made;
    made.pages = 3;
    made.changes = {{2, one.tag, one.value}};
    const std::string message = refusal(made.bytes());
    EXPECT_NE(message.find("a.tif: page 2: "), std::string::npos) << one.tag << " " << message;
    EXPECT_NE(message.find(one.why), std::string::npos) << one.tag << " " << message;
  }
}

TEST(TiffDirectoryTest, APageOfSeveralPlanesIsRefused) {
  for (const unsigned tag : {32997u, 32998u}) {  // ImageDepth, TileDepth
    for (const unsigned planes : {1u, 5u}) {
      MadeTiff made;
      made.changes = {{0, 277, planes}};
      made.renamed = {277, tag};
      const std::string message = refusal(made.bytes());
      EXPECT_EQ(message.find("page 0 holds 5 planes") != std::string::npos, planes == 5) << message;
    }
  }
}

TEST(TiffDirectoryTest, TheDescriptionAndAPaletteAreSeen) {
  MadeTiff made;
  made.pages = 2;
  made.palette.assign(768, 257);
  made.description = std::string("ImageJ=1.53\nimages=2\n\0", 22);
  for (const bool big : {false, true}) {
    made.big = big;
    const auto tiff = parsed(made.bytes());
    ASSERT_TRUE(tiff.ok()) << tiff.error().message();
    EXPECT_TRUE(tiff->palette);
    EXPECT_EQ(tiff->description, "ImageJ=1.53\nimages=2\n");
  }
}

TEST(TiffDirectoryTest, AnyChangedBytesEndInAnAnswer) {
  std::mt19937 random(7);
  unsigned refused = 0;
  for (const MadeTiff& made : kinds())
    for (unsigned i = 0; i < 500; ++i) {
      std::string file = made.bytes();
      for (unsigned change = 0; change <= i % 4; ++change)
        file[random() % file.size()] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
      refused += refusal(file).empty() ? 0 : 1;
    }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace mdfs::imagefile
