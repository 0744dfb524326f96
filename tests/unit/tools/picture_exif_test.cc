// EXIF is taken out of pictures, and put into JPEG files, byte for byte.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/picture_exif.h"

#include <gtest/gtest.h>

#include <string>

namespace mdfs::imagefile {
namespace {

using namespace std::string_literals;

std::string segment(char marker, const std::string& content) {
  const std::size_t length = content.size() + 2;
  return "\xff"s + marker + static_cast<char>(length >> 8) + static_cast<char>(length) + content;
}
const std::string kJfif = segment('\xe0', "JFIF\0\1\1"s), kXmp = segment('\xe1', "http://ns.adobe.com/xap/1.0/\0<x/>"s);
const std::string kScan = segment('\xda', "abc") + "\x12\xff\0\x34\xff\xe1\0\x0f"s + "Exif\0\0in scan\xff\xd9"s;

std::string exif_segment(const std::string& exif) { return segment('\xe1', "Exif\0\0"s + exif); }
std::string jpeg(const std::string& segments) { return "\xff\xd8"s + segments + kScan; }
std::string exif_of(const std::string& file) {
  MemoryBytes bytes(as_bytes(file));
  const auto exif = read_jpeg_exif(bytes);
  return exif.ok() ? *exif : "error";
}

TEST(PictureExifTest, ABlockComesFromAmongTheOtherSegments) {
  EXPECT_EQ(exif_of(jpeg(kJfif + kXmp + exif_segment("II*\0block"s) + kXmp)), "II*\0block"s);
  EXPECT_EQ(exif_of(jpeg(kJfif + "\xff\xff\xff"s + exif_segment("fill bytes before"))), "fill bytes before");
  EXPECT_EQ(exif_of(jpeg(kJfif + kXmp)), "") << "what looks like it within a scan is none";
}

TEST(PictureExifTest, AFileThatEndsAnywhereIsReadWithoutHarm) {
  const std::string whole = jpeg(kJfif + exif_segment(std::string(300, 'x')));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string found = exif_of(whole.substr(0, size));
    EXPECT_TRUE(found.empty() || found == std::string(300, 'x')) << size;
  }
}

TEST(PictureExifTest, AFileGetsABlockInPlaceOfItsOwn) {
  const std::string block("MM\0*new"s);
  for (const std::string& segments : {kJfif + kXmp, kJfif + exif_segment("old") + kXmp, exif_segment("old") + kJfif}) {
    const std::string before = jpeg(segments), after = with_exif(as_bytes(before), block);
    EXPECT_EQ(exif_of(after), block);
    const std::string rest = exif_of(before).empty() ? before : [&] {
      std::string without = before;
      return without.erase(without.find(exif_segment("old")), exif_segment("old").size());
    }();
    EXPECT_EQ(after, rest.substr(0, 2) + exif_segment(block) + rest.substr(2)) << "all else stays";
  }
  const std::string longest(kMostJpegExifBytes, 'y');
  EXPECT_EQ(exif_of(with_exif(as_bytes(jpeg(kJfif)), longest)), longest);
}

TEST(PictureExifTest, ABlockOfPngIsAChunkOfItsOwn) {
  const auto chunk = [](const std::string& type, const std::string& content) {
    return "\0\0\0"s + static_cast<char>(content.size()) + type + content + "sum!";
  };
  const auto read = [](const std::string& file) {
    MemoryBytes bytes(as_bytes(file));
    const auto exif = read_png_exif(bytes);
    return exif.ok() ? *exif : "error";
  };
  const std::string whole =
      "\x89PNG\r\n\x1a\n"s + chunk("IHDR", "head") + chunk("eXIf", "II*\0block"s) + chunk("IEND", "");
  EXPECT_EQ(read(whole), "II*\0block"s);
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_NE(read(whole.substr(0, size)), "error") << size;
}

}  // namespace
}  // namespace mdfs::imagefile
