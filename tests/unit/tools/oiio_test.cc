// Claims about pictures through OpenImageIO.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "imagefile/image_file.h"
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

}  // namespace
}  // namespace mdfs::imagefile
