// Reading an open window in parts.
// SPDX-License-Identifier: Apache-2.0
#include "views/window_reader.h"

#include <gtest/gtest.h>

#include "support/fake_volume.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

Geometry small_image() {
  Geometry geometry;
  geometry.rank = 2;
  geometry.axes = "yx";
  geometry.shape = {6, 8};
  geometry.extent = {4, 4};
  geometry.type = ElementType::kU16;
  return geometry;
}

// An image of 96 bytes, all the same, and a reader of a window of it.
class WindowReaderTest : public ::testing::Test {
 protected:
  void open(std::string_view name) {
    ino_ = volume_.add_image("image", small_image());
    fill(1);
    auto file = std::make_shared<ViewFile>(*view_window(small_image(), *parse_window_name(small_image(), name)));
    file_ = file;
    reader_ = std::make_unique<WindowReader>(volume_, ino_, file_);
  }
  void fill(unsigned char value) {
    const ByteVector bytes(96, static_cast<std::byte>(value));
    ASSERT_TRUE(volume_
                    .write_window(ino_, geometry::whole(small_image()),
                                  [&](std::uint64_t, MutableBytes into) -> Status {
                                    std::fill(into.begin(), into.end(), bytes[0]);
                                    return {};
                                  })
                    .ok());
  }
  // The value of a part of the data, which is the same in all its bytes; minus an errno.
  int read(std::uint64_t offset, std::size_t length) {
    ByteVector into(length);
    const auto count = reader_->read(file_->header.size() + offset, into);
    if (!count.ok()) return -count.error().posix_errno();
    EXPECT_EQ(*count, length);
    EXPECT_TRUE(std::all_of(into.begin(), into.end(), [&](std::byte b) { return b == into[0]; }));
    return std::to_integer<int>(into[0]);
  }

  test::FakeVolume volume_;
  volume::Ino ino_ = 0;
  std::shared_ptr<const ViewFile> file_;
  std::unique_ptr<WindowReader> reader_;
};

TEST_F(WindowReaderTest, AllPartsAreOfTheVersionOfTheFirst) {
  open("y0+6.npy");
  EXPECT_EQ(read(0, 30), 1);
  fill(2);
  EXPECT_EQ(read(60, 20), 1);
  EXPECT_EQ(read(60, 20), 1) << "read again in between";
  EXPECT_EQ(read(30, 30), 1);
  EXPECT_EQ(read(80, 16), 1);
  EXPECT_EQ(read(10, 20), 2) << "all had been read";
}

TEST_F(WindowReaderTest, TheFirstByteReadAgainBeginsAnew) {
  open("y0+6.raw");
  EXPECT_EQ(read(0, 30), 1);
  fill(2);
  EXPECT_EQ(read(0, 30), 2);
  fill(3);
  EXPECT_EQ(read(30, 30), 2);
}

TEST_F(WindowReaderTest, OneCallForAllReadsTheNewest) {
  open("y0+6.raw");
  EXPECT_EQ(read(0, 30), 1);
  fill(2);
  EXPECT_EQ(read(0, 96), 2);
  EXPECT_EQ(read(50, 3), 2);
}

TEST_F(WindowReaderTest, AVersionThatIsGivenUpIsAnErrorUntilTheWindowIsBegunAgain) {
  open("y0+6.raw");
  EXPECT_EQ(read(0, 30), 1);
  fill(2);
  volume_.give_up_pinned();
  EXPECT_EQ(read(30, 30), -ESTALE);
  EXPECT_EQ(read(60, 30), -ESTALE);
  EXPECT_EQ(read(0, 30), 2);
  EXPECT_EQ(read(30, 66), 2);
}

TEST_F(WindowReaderTest, AfterAWriteOfItsOwnTheNewestIsRead) {
  open("y0+6.raw");
  EXPECT_EQ(read(0, 30), 1);
  fill(2);
  reader_->restart();
  EXPECT_EQ(read(30, 30), 2);
}

}  // namespace
}  // namespace mdfs::views
