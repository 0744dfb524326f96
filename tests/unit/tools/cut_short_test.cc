// The claim that no picture that was cut short becomes an image, of every format that is written here.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "imagefile/image_file.h"
#include "scratch.h"

namespace mdfs::imagefile {
namespace {

using geometry::ElementType;
using CutShortTest = ScratchTest;

TEST_F(CutShortTest, NoPictureThatWasCutShortIsRead) {
  const struct {
    const char* file;
    ArrayInfo array;
  } cases[] = {
      {"a.png", {{35, 61, 3}, ElementType::kU8, "yxc"}},  {"a.tif", {{35, 61, 3}, ElementType::kU8, "yxc"}},
      {"s.tif", {{9, 35, 61}, ElementType::kU16, "zyx"}}, {"a.jpg", {{35, 61, 3}, ElementType::kU8, "yxc"}},
      {"a.exr", {{35, 61, 3}, ElementType::kF16, "yxc"}}, {"a.dpx", {{35, 61, 3}, ElementType::kU16, "yxc"}},
      {"a.ppm", {{35, 61, 3}, ElementType::kU8, "yxc"}},  {"a.npy", {{35, 61}, ElementType::kF32, ""}},
      {"a.bmp", {{35, 61, 3}, ElementType::kU8, "yxc"}},  {"a.sgi", {{35, 61, 3}, ElementType::kU8, "yxc"}},
      {"a.tga", {{35, 61, 3}, ElementType::kU8, "yxc"}},
  };
  for (const auto& one : cases) {
    ByteVector bytes = random_bytes(*array_bytes(one.array));
    if (one.array.type == ElementType::kF16)
      for (std::byte& byte : bytes) byte &= std::byte{0x3f};
    const Status written = write_all(path(one.file), one.array, bytes);
    ASSERT_TRUE(written.ok()) << one.file << ": " << written.error().message();
    ASSERT_TRUE(read_all(path(one.file)).ok()) << one.file;
    const std::string whole = get(one.file), cut = std::string("cut_") + one.file;
    const auto refused = [&](std::size_t size) {
      put(cut, whole.substr(0, size));
      const auto back = read_all(path(cut));
      EXPECT_FALSE(back.ok()) << cut << ": " << size << " of " << whole.size();
      if (!back.ok()) {
        EXPECT_NE(back.error().where.find(cut), std::string::npos) << back.error().message();
      }
    };
    // Behind the samples of a TGA file there are only a thumbnail and a footer, which not all have.
    const std::size_t needed = cut.ends_with(".tga") ? 18 + bytes.size() : whole.size();
    for (std::size_t size = 0; size < needed; size += 1 + needed / 25) refused(size);
    for (std::size_t missing = 1; missing < 16; ++missing) refused(needed - missing);
  }
}

TEST_F(CutShortTest, ASoftimagePictureIsRefusedBeforeItsReaderSeesIt) {
  put("a.pic", "\x53\x80\xf6\x34" + std::string(379, '\0'));
  const auto back = read_all(path("a.pic"));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, Errc::kNotSupported);
}

}  // namespace
}  // namespace mdfs::imagefile
