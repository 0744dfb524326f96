// NAME.tif, read back by a small reader written from the specification.
// SPDX-License-Identifier: Apache-2.0
#include "views/tiff.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <map>

#include "small_image.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;
using Values = std::vector<std::uint64_t>;
using Directory = std::map<unsigned, Values>;

std::uint64_t number(ConstBytes file, std::uint64_t offset, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(file[offset + i]) << (8 * i);
  return value;
}

std::vector<Directory> directories(ConstBytes file) {
  EXPECT_EQ(number(file, 0, 2), 0x4949u);
  EXPECT_EQ(number(file, 2, 2), 43u);
  EXPECT_EQ(number(file, 4, 4), 8u);
  std::vector<Directory> found;
  for (std::uint64_t at = number(file, 8, 8); at != 0;) {
    const std::uint64_t entries = number(file, at, 8);
    Directory directory;
    unsigned last_tag = 0;
    for (std::uint64_t entry = at + 8; entry < at + 8 + entries * 20; entry += 20) {
      const auto tag = static_cast<unsigned>(number(file, entry, 2));
      EXPECT_GT(tag, last_tag);
      last_tag = tag;
      const std::uint64_t type = number(file, entry + 2, 2), count = number(file, entry + 4, 8);
      const unsigned bytes = type == 3 ? 2 : type == 4 ? 4 : 8;
      const std::uint64_t place = count * bytes <= 8 ? entry + 12 : number(file, entry + 12, 8);
      for (std::uint64_t i = 0; i < count; ++i) directory[tag].push_back(number(file, place + i * bytes, bytes));
    }
    found.push_back(std::move(directory));
    at = number(file, at + 8 + entries * 20, 8);
  }
  return found;
}

// The samples of all pages, in canonical order.
ByteVector samples_of(ConstBytes file, std::uint64_t sample_bytes) {
  ByteVector samples;
  for (Directory& page : directories(file)) {
    const std::uint64_t width = page[256][0], height = page[257][0];
    const bool tiled = page.contains(322);
    const std::uint64_t across = tiled ? page[322][0] : width, rows = tiled ? page[323][0] : page[278][0];
    const Values& offsets = page[tiled ? 324 : 273];
    const Values& sizes = page[tiled ? 325 : 279];
    EXPECT_EQ(offsets.size(), sizes.size());
    const std::uint64_t blocks_across = (width + across - 1) / across;
    EXPECT_EQ(offsets.size(), blocks_across * ((height + rows - 1) / rows));
    const std::size_t begin = samples.size();
    samples.resize(begin + width * height * sample_bytes);
    for (std::size_t block = 0; block < offsets.size(); ++block) {
      const std::uint64_t x = block % blocks_across * across, y = block / blocks_across * rows;
      EXPECT_EQ(sizes[block], across * sample_bytes * (tiled ? rows : std::min(rows, height - y)));
      EXPECT_LE(offsets[block] + sizes[block], file.size());
      for (std::uint64_t row = y; row < std::min(height, y + rows); ++row)
        std::memcpy(samples.data() + begin + (row * width + x) * sample_bytes,
                    file.data() + offsets[block] + (row - y) * across * sample_bytes,
                    std::min(across, width - x) * sample_bytes);
    }
  }
  return samples;
}

class TiffTest : public ImagesTest {
 protected:
  std::unique_ptr<TiffView> open(const Geometry& geometry) {
    ino_ = add(geometry);
    auto layout = TiffLayout::of(geometry);
    EXPECT_TRUE(layout.ok()) << layout.error().message();
    return std::make_unique<TiffView>(volume_, ino_, std::move(*layout));
  }

  volume::Ino ino_ = 0;
};

// Any rank, extent, type and number of channels; tiles, strips, edges; any piece of the file.
RC_GTEST_FIXTURE_PROP(TiffTest, AReaderFindsEverySampleAndEveryPieceIsThatOfTheFile, ()) {
  const std::size_t rank = *rc::gen::inRange<std::size_t>(1, 4);
  geometry::Coord shape{};
  for (std::size_t axis = 0; axis < rank; ++axis)
    shape[axis] = *rc::gen::inRange<std::uint64_t>(1, axis + 2 < rank ? 4 : 70);
  const auto type = *rc::gen::element(ElementType::kU8, ElementType::kU16, ElementType::kI32, ElementType::kF64);
  Geometry geometry = make(std::string("zyx").substr(3 - rank), shape, *rc::gen::inRange(1u, 8u), type);
  for (std::size_t axis = 0; axis < rank; ++axis)
    geometry.extent[axis] = *rc::gen::element<std::uint64_t>(16, 32, 48, 16, 10);
  const auto view = open(geometry);
  const ByteVector file = bytes_of(*view);
  RC_ASSERT(samples_of(file, geometry.sample_bytes()) == volume_.bytes(ino_));
  const auto offset = *rc::gen::inRange<std::size_t>(0, file.size() + 3);
  ByteVector piece(*rc::gen::inRange<std::size_t>(0, file.size() + 3));
  const auto count = view->read(offset, piece);
  RC_ASSERT(count.ok() && *count == std::min(piece.size(), file.size() - std::min(offset, file.size())));
  RC_ASSERT(std::equal(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*count),
                       file.begin() + static_cast<std::ptrdiff_t>(std::min(offset, file.size()))));
}

TEST_F(TiffTest, TheFieldsNameWhatTheSamplesAre) {
  const auto fields = [&](unsigned channels, ElementType type) {
    return directories(bytes_of(*open(make("yx", {20, 30}, channels, type))))[0];
  };
  Directory grey = fields(1, ElementType::kI16);
  EXPECT_EQ(grey[258], Values{16});
  EXPECT_EQ(grey[262], Values{1});
  EXPECT_EQ(grey[339], Values{2});
  EXPECT_FALSE(grey.contains(338));
  Directory rgb = fields(3, ElementType::kF32);
  EXPECT_EQ(rgb[258], (Values{32, 32, 32}));
  EXPECT_EQ(rgb[262], Values{2});
  EXPECT_EQ(rgb[339], (Values{3, 3, 3}));
  Directory rgba = fields(4, ElementType::kU8);
  EXPECT_EQ(rgba[262], Values{2});
  EXPECT_EQ(rgba[338], Values{2});
  Directory many = fields(6, ElementType::kU8);
  EXPECT_EQ(many[258], (Values{8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(many[262], Values{1});
  EXPECT_EQ(many[338], (Values{0, 0, 0, 0, 0}));
}

// 100 000 x 100 000 samples in 244 141 tiles a plane: nothing is made that is not read.
TEST(TiffLayout, APieceOfALargeHeadTakesNoLongerThanItsBytes) {
  Geometry geometry = make("zyx", {1000, 100'000, 100'000}, 1, ElementType::kU16);
  geometry.extent = {1, 208, 208};
  const auto layout = TiffLayout::of(geometry);
  ASSERT_TRUE(layout.ok());
  EXPECT_GT(layout->data_offset(), std::uint64_t{3} << 30);
  ByteVector piece(4096);
  for (std::uint64_t i = 0; i < 100; ++i) layout->fill_head(i * (layout->data_offset() / 101), piece);
  const TiffLayout::Part last = layout->part_at(layout->size_bytes() - layout->data_offset() - 1);
  EXPECT_EQ(last.window.start[0], 999u);
  EXPECT_EQ(last.window.start[2] + last.window.length[2], 100'000u);
  EXPECT_EQ(last.bytes, 1u);
}

TEST(TiffLayout, ImagesThatReadersCannotHoldHaveNone) {
  EXPECT_FALSE(TiffLayout::of(make("zyx", {0, 20, 30}, 1, ElementType::kU8)).ok());
  EXPECT_FALSE(TiffLayout::of(make("zyx", {kMaxTiffPages + 1, 20, 30}, 1, ElementType::kU8)).ok());
  EXPECT_FALSE(TiffLayout::of(make("yx", {20, kMaxTiffSide + 1}, 1, ElementType::kU8)).ok());
  EXPECT_FALSE(TiffLayout::of(make("yx", {20, kMaxTiffSide / 2}, 1, ElementType::kF32)).ok());
  EXPECT_FALSE(TiffLayout::of(make("yx", {20, 30}, kMaxTiffChannels + 1, ElementType::kU8)).ok());
  EXPECT_TRUE(TiffLayout::of(make("x", {30}, 1, ElementType::kU8)).ok());
}

}  // namespace
}  // namespace mdfs::views
