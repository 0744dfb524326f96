// Claims about JPEG, PNG and GIF files that end too early.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/picture_end.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace mdfs::imagefile {
namespace {

Status checked(Status (*check)(ByteSource&, const std::string&), const std::string& file) {
  MemoryBytes bytes(as_bytes(file));
  return check(bytes, "a.pic");
}

void expect_every_truncation_refused(Status (*check)(ByteSource&, const std::string&), const std::string& file) {
  const Status whole = checked(check, file);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  EXPECT_TRUE(checked(check, file + "more").ok());
  for (std::size_t size = 2; size < file.size(); ++size) {
    const Status cut = checked(check, file.substr(0, size));
    ASSERT_FALSE(cut.ok()) << size << " of " << file.size();
    EXPECT_NE(cut.error().message().find("a.pic"), std::string::npos);
  }
}

std::string segment(unsigned char marker, const std::string& content) {
  std::string bytes = "\xff";
  bytes += static_cast<char>(marker);
  bytes += static_cast<char>((content.size() + 2) >> 8);
  bytes += static_cast<char>((content.size() + 2) & 0xff);
  return bytes + content;
}

// Two scans, with restarts, bytes 0xff and fill bytes in them; within the comment a whole picture in small.
std::string jpeg() {
  const std::string scan = segment(0xda, "head") + std::string(
                                                       "ab\xff\0cd\xff\xd0"
                                                       "ef",
                                                       10);
  const std::string thumbnail = "\xff\xd8" + scan + "\xff\xd9";
  return "\xff\xd8" + segment(0xe1, thumbnail) + segment(0xc2, "frame") + scan + std::string(9000, 'x') +
         segment(0xc4, "table") + scan + "\xff" + "\xff\xd9";
}

TEST(PictureEndTest, EveryTruncationOfAJpegIsRefused) { expect_every_truncation_refused(check_jpeg, jpeg()); }

TEST(PictureEndTest, AnEndBetweenTwoBlocksOfAScanIsFound) {
  for (std::size_t length = 4080; length < 4110; ++length) {
    const std::string file = "\xff\xd8" + segment(0xda, "head") + std::string(length, 'x') + "\xff\xd9";
    EXPECT_TRUE(checked(check_jpeg, file).ok()) << length;
    EXPECT_FALSE(checked(check_jpeg, file.substr(0, file.size() - 1)).ok()) << length;
  }
}

TEST(PictureEndTest, EveryTruncationAndEveryChangedBitOfAPngIsRefused) {
  const auto chunk = [](const std::string& type, const std::string& content) {
    const std::string covered = type + content;
    const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(covered.data()), static_cast<uInt>(covered.size()));
    std::string text = std::string("\0\0\0", 3) + static_cast<char>(content.size()) + covered;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(sum >> shift & 0xff);
    return text;
  };
  const std::string file =
      "\x89PNG\r\n\x1a\n" + chunk("IHDR", "0123456789abc") + chunk("IDAT", "IEND samples") + chunk("IEND", "");
  expect_every_truncation_refused(check_png, file);
  for (std::size_t at = 64; at < file.size() * 8; ++at) {
    std::string damaged = file;
    damaged[at / 8] = static_cast<char>(damaged[at / 8] ^ (1 << at % 8));
    EXPECT_FALSE(checked(check_png, damaged).ok()) << at;
  }
}

TEST(PictureEndTest, EveryTruncationOfAGifIsRefused) {
  const std::string frame = std::string(",") + std::string(8, '\0') + "\x80" + "abcdef" + "\x02" + "\x03" + ";;;" +
                            "\x02" + ";;" + std::string(1, '\0');
  const std::string loop = std::string("!\xff\x03;;;", 6) + std::string(1, '\0');
  expect_every_truncation_refused(
      check_gif, "GIF89a1234\xf1" + std::string("bg") + std::string(12, ';') + loop + frame + frame + ";");
}

TEST(PictureEndTest, AJpeg2000WithoutItsEndMarkIsRefused) {
  const std::string stream = "\xff\x4f\xff\x51" + std::string(40, 's') + "\xff\xd9";
  const std::string boxes = std::string("\0\0\0\x0cjP  \r\n\x87\n\0\0\0\012ftypjp", 22);
  const std::string length = std::string(3, '\0') + static_cast<char>(8 + stream.size());
  for (const std::string& file :
       {stream, boxes + length + "jp2c" + stream, boxes + std::string(4, '\0') + "jp2c" + stream,
        boxes + std::string("\0\0\0\1jp2c\0\0\0\0", 12) + std::string(3, '\0') + static_cast<char>(16 + stream.size()) +
            stream}) {
    EXPECT_TRUE(is_jpeg2000(as_bytes(file)));
    const Status whole = checked(check_jpeg2000, file);
    EXPECT_TRUE(whole.ok()) << whole.error().message();
    for (std::size_t size = 0; size < file.size(); ++size)
      EXPECT_FALSE(checked(check_jpeg2000, file.substr(0, size)).ok()) << size << " of " << file.size();
    std::string zeros = file;
    zeros.replace(zeros.size() - 5, 5, 5, '\0');
    EXPECT_FALSE(checked(check_jpeg2000, zeros).ok());
  }
}

}  // namespace
}  // namespace mdfs::imagefile
