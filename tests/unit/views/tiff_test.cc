// NAME.tif, read back by a small reader written from the specification.
// SPDX-License-Identifier: Apache-2.0
#include "views/tiff.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <map>

#include "base/checked.h"
#include "geometry/level.h"
#include "small_image.h"
#include "views/exif_block.h"
#include "views/geo_block.h"
#include "views/metadata_blocks.h"
#include "views/ome_xml.h"
#include "views/tiff_field.h"
#include "views/tiff_metadata.h"

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

struct DirectoryAndNext {
  Directory fields;
  std::uint64_t next = 0;
};

DirectoryAndNext directory_at(ConstBytes file, std::uint64_t at) {
  const std::uint64_t entries = number(file, at, 8);
  Directory directory;
  for (std::uint64_t entry = at + 8; entry < at + 8 + entries * 20; entry += 20) {
    const auto tag = static_cast<unsigned>(number(file, entry, 2));
    EXPECT_TRUE(directory.empty() || tag > directory.rbegin()->first);
    const std::uint64_t type = number(file, entry + 2, 2), count = number(file, entry + 4, 8);
    const unsigned bytes = type == 1 || type == 2 || type == 7 ? 1 : type == 3 ? 2 : type == 4 ? 4 : 8;
    const std::uint64_t place = count * bytes <= 8 ? entry + 12 : number(file, entry + 12, 8);
    for (std::uint64_t i = 0; i < count; ++i) directory[tag].push_back(number(file, place + i * bytes, bytes));
  }
  return {std::move(directory), number(file, at + 8 + entries * 20, 8)};
}

// Of the chain.
std::vector<Directory> directories(ConstBytes file) {
  EXPECT_EQ(number(file, 0, 2), 0x4949u);
  EXPECT_EQ(number(file, 2, 2), 43u);
  EXPECT_EQ(number(file, 4, 4), 8u);
  std::vector<Directory> found;
  for (std::uint64_t at = number(file, 8, 8); at != 0;) {
    DirectoryAndNext one = directory_at(file, at);
    found.push_back(std::move(one.fields));
    at = one.next;
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
    auto layout = tiff_layout(volume_, ino_);
    EXPECT_TRUE(layout.ok()) << layout.error().message();
    return std::make_unique<TiffView>(volume_, ino_, std::move(*layout), *pool_, 0);
  }
  void set(std::string_view block, std::string_view bytes) {
    const std::string name = std::string(kMetadataPrefix) + std::string(block);
    EXPECT_TRUE(volume_.set_xattr(ino_, name, as_bytes(bytes), volume::XattrMode::kSet).ok());
  }

  volume::Ino ino_ = 0;
  std::unique_ptr<StagingPool> pool_ = pool();
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
  RC_ASSERT((count.ok() && *count == std::min(piece.size(), file.size() - std::min(offset, file.size()))));
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
  const auto layout = TiffLayout::of({.image = geometry});
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
  EXPECT_FALSE(TiffLayout::of({.image = make("zyx", {0, 20, 30}, 1, ElementType::kU8)}).ok());
  EXPECT_FALSE(TiffLayout::of({.image = make("zyx", {kMaxTiffPages + 1, 20, 30}, 1, ElementType::kU8)}).ok());
  EXPECT_FALSE(TiffLayout::of({.image = make("yx", {20, kMaxTiffSide + 1}, 1, ElementType::kU8)}).ok());
  EXPECT_FALSE(TiffLayout::of({.image = make("yx", {20, kMaxTiffSide / 2}, 1, ElementType::kF32)}).ok());
  EXPECT_FALSE(TiffLayout::of({.image = make("yx", {20, 30}, kMaxTiffChannels + 1, ElementType::kU8)}).ok());
  EXPECT_TRUE(TiffLayout::of({.image = make("x", {30}, 1, ElementType::kU8)}).ok());
}

// All before the samples, which are not made.
ByteVector head_of(const TiffLayout& layout) {
  ByteVector head(layout.data_offset());
  layout.fill_head(0, head);
  return head;
}

std::vector<Directory> directories(const TiffLayout& layout) { return directories(ConstBytes(head_of(layout))); }

TEST(TiffLayout, LevelsLieAsCloudOptimizedReadersWant) {
  const Geometry image = make("yx", {500, 700}, 3, ElementType::kU8);
  const auto layout = TiffLayout::of({.image = image, .levels = 4, .fields = {}});
  ASSERT_TRUE(layout.ok());
  std::vector<Directory> pages = directories(*layout);
  ASSERT_EQ(pages.size(), 5u);
  std::uint64_t before = layout->size_bytes();
  for (unsigned level = 0; level < pages.size(); ++level) {
    const Geometry geometry = geometry::level_geometry(image, level);
    EXPECT_EQ(pages[level][254], Values{level == 0 ? 0u : 1u});
    EXPECT_EQ(pages[level][256], Values{geometry.shape[1]});
    EXPECT_EQ(pages[level][257], Values{geometry.shape[0]});
    // The data of a level end where those of the level below begin; each tile has its place.
    const Values& offsets = pages[level][324];
    EXPECT_EQ(offsets.back() + pages[level][325].back(), before);
    before = offsets.front();
    for (std::size_t tile = 0; tile < offsets.size(); ++tile) {
      const TiffLayout::Part part = layout->part_at(offsets[tile] - layout->data_offset());
      EXPECT_EQ(part.level, level);
      EXPECT_EQ(part.offset, 0u);
      EXPECT_EQ(part.bytes, pages[level][325][tile]);
      EXPECT_TRUE(geometry::check(geometry, part.window).ok());
      EXPECT_EQ(part.window.start[1] / 16, tile % ceil_div(geometry.shape[1], 16));
      EXPECT_EQ(part.window.start[0] / 16, tile / ceil_div(geometry.shape[1], 16));
    }
  }
  EXPECT_EQ(before, layout->data_offset());
}

// The tiles of a page and a level lie in the file where part_at() finds them, and nothing lies twice.
TEST(TiffLayout, EachOfSeveralPagesHasItsLevelsAsDirectoriesOfItsOwn) {
  for (const unsigned levels : {1u, 3u}) {
    const Geometry image = make("tcyx", {2, 3, 100, 130}, 1, ElementType::kU16);
    const auto layout =
        TiffLayout::of({.image = image, .levels = levels, .fields = {text_field(270, "a text of some length")}});
    ASSERT_TRUE(layout.ok());
    const ByteVector head = head_of(*layout);
    const std::vector<Directory> pages = directories(ConstBytes(head));
    ASSERT_EQ(pages.size(), 6u);
    std::map<std::uint64_t, std::uint64_t> used;  // from each offset, bytes
    const auto expect_tiles = [&](const Directory& directory, std::uint64_t page, unsigned level) {
      const Geometry geometry = geometry::level_geometry(image, level);
      EXPECT_EQ(directory.at(254), Values{level == 0 ? 0u : 1u});
      EXPECT_EQ(directory.at(256), Values{geometry.shape[3]});
      EXPECT_EQ(directory.at(257), Values{geometry.shape[2]});
      const Values& offsets = directory.at(324);
      const std::uint64_t across = ceil_div(geometry.shape[3], 16);
      ASSERT_EQ(offsets.size(), across * ceil_div(geometry.shape[2], 16));
      for (std::size_t tile = 0; tile < offsets.size(); ++tile) {
        used[offsets[tile]] = directory.at(325)[tile];
        const TiffLayout::Part part = layout->part_at(offsets[tile] - layout->data_offset());
        EXPECT_EQ(part.level, level);
        EXPECT_EQ(part.offset, 0u);
        EXPECT_TRUE(geometry::check(geometry, part.window).ok());
        EXPECT_EQ(part.window.start[0] * 3 + part.window.start[1], page);
        EXPECT_EQ(part.window.start[2] / 16 * across + part.window.start[3] / 16, tile);
      }
    };
    for (std::size_t page = 0; page < pages.size(); ++page) {
      expect_tiles(pages[page], page, 0);
      EXPECT_EQ(pages[page].contains(270), page == 0);
      const Values& sub = pages[page].at(330);
      ASSERT_EQ(sub.size(), levels);
      for (unsigned level = 1; level <= levels; ++level) {
        const DirectoryAndNext found = directory_at(head, sub[level - 1]);
        EXPECT_EQ(found.next, 0u);
        EXPECT_FALSE(found.fields.contains(330));
        expect_tiles(found.fields, page, level);
      }
    }
    std::uint64_t end = layout->data_offset();
    for (const auto& [offset, bytes] : used) {
      EXPECT_EQ(offset, end);
      end = offset + bytes;
    }
    EXPECT_EQ(end, layout->size_bytes());
  }
}

TEST(TiffLayout, LevelsAreThoseOfTilesAndAsManyPages) {
  EXPECT_EQ(levels_in_tiff(make("yx", {500, 700}, 1, ElementType::kU8), 2), 2u);
  EXPECT_EQ(levels_in_tiff(make("zyx", {1, 500, 700}, 1, ElementType::kU8), 2), 2u);
  Geometry volume = make("zyx", {8, 500, 700}, 1, ElementType::kU8);
  EXPECT_EQ(levels_in_tiff(volume, 2), 2u);  // z has no spacing and is not halved
  volume.spacing = {2, 1, 1};
  volume.unit = {"um", "um", "um"};
  EXPECT_EQ(levels_in_tiff(volume, 3), 1u);
  EXPECT_EQ(levels_in_tiff(make("x", {700}, 1, ElementType::kU8), 2), 0u);
  Geometry strips = make("yx", {500, 700}, 1, ElementType::kU8);
  strips.extent = {16, 20};
  EXPECT_EQ(levels_in_tiff(strips, 2), 0u);
}

RC_GTEST_FIXTURE_PROP(TiffTest, FieldsAreThoseOfTheFirstPage, ()) {
  const auto pages = *rc::gen::inRange<std::uint64_t>(1, 4);
  const Geometry geometry = make("zyx", {pages, 20, 40}, *rc::gen::inRange(1u, 7u), ElementType::kU8);
  TiffContent content{.image = geometry, .levels = levels_in_tiff(geometry, *rc::gen::inRange(0u, 3u)), .fields = {}};
  std::map<unsigned, Values> wanted;
  for (const std::uint16_t tag : std::initializer_list<std::uint16_t>{270, 700, 34675}) {
    if (*rc::gen::arbitrary<bool>()) continue;
    const std::string text(*rc::gen::inRange<std::size_t>(1, 40), 'x');
    content.fields.push_back(text_field(tag, text));
    wanted[tag] = Values(text.size(), 'x');
    wanted[tag].push_back(0);
  }
  const auto layout = TiffLayout::of(content);
  RC_ASSERT(layout.ok());
  std::vector<Directory> found = directories(*layout);
  RC_ASSERT(found.size() == pages + (pages == 1 ? content.levels : 0));
  for (std::size_t page = 0; page < found.size(); ++page)
    for (const unsigned tag : {270u, 700u, 34675u}) {
      const bool there = page == 0 && wanted.contains(tag);
      RC_ASSERT(found[page].contains(tag) == there);
      if (there) RC_ASSERT(found[page][tag] == wanted[tag]);
    }
}

TEST_F(TiffTest, MetadataAndSpacingAreFields) {
  Geometry geometry = make("zyx", {2, 20, 30}, 1, ElementType::kU16);
  geometry.spacing = {2, 0.5, 0.25};
  geometry.unit = {"um", "um", "um"};
  ino_ = add(geometry);
  set("icc", "profile of colours");
  set("description", "a text");
  auto layout = tiff_layout(volume_, ino_);
  Directory first = directories(*layout)[0];
  EXPECT_EQ(first[34675].size(), 18u);
  EXPECT_EQ(first[270], (Values{'a', ' ', 't', 'e', 'x', 't', 0}));
  EXPECT_EQ(first[296], Values{3});
  const auto per_cm = [&](unsigned tag) {
    return static_cast<double>(first[tag][0] & 0xffffffff) / static_cast<double>(first[tag][0] >> 32);
  };
  EXPECT_NEAR(per_cm(282), 40000, 1e-3);
  EXPECT_NEAR(per_cm(283), 20000, 1e-3);
  // Descriptions that count pages become untrue when frames are appended.
  set("description", "ImageJ=1.53\nimages=2\nslices=2\n");
  const Values text = directories(*tiff_layout(volume_, ino_))[0][270];
  EXPECT_EQ(std::string(text.begin(), text.end() - 1), ome_xml(geometry));
  // In the chain of a page and its levels, which readers would take for other pages, there is none.
  Geometry page = geometry;
  page.shape[0] = 1;
  EXPECT_NE(tiff_fields(page, 1, {.description = ome_xml(page)}).front().tag, 270);
  EXPECT_EQ(tiff_fields(page, 0, {.description = ome_xml(page)}).front().tag, 270);
  EXPECT_EQ(tiff_fields(geometry, 1, {.description = ome_xml(geometry)}).front().tag, 270);
  EXPECT_EQ(tiff_fields(geometry, 0, {.description = ome_xml(geometry)}).front().tag, 270);
  // A block that is larger than all of them may be is left out, and the others stay.
  for (unsigned piece = 0; piece <= kMaxTiffMetadata / 65536; ++piece)
    set(piece == 0 ? "icc" : "icc." + std::to_string(piece), std::string(65536, 'i'));
  first = directories(*tiff_layout(volume_, ino_))[0];
  EXPECT_FALSE(first.contains(34675));
  EXPECT_TRUE(first.contains(270));
}

// A block of two fields, as FORMAT.md defines it.
std::string geo_block() {
  std::string block("II\x2a\0\x08\0\0\0\x02\0", 10);
  block += std::string("\x0e\x83\x0c\0\x03\0\0\0\x26\0\0\0", 12);  // 33550: three doubles at 38
  block += std::string(
      "\x81\xa4\x02\0\x02\0\0\0"
      "7\0\0\0",
      12);  // 42113: text in the entry
  block += std::string(4, '\0');
  return block + std::string(24, 'd');
}

TEST(TiffField, GeoFieldsAreThoseOfTheBlock) {
  const auto fields = parse_geo_fields(geo_block());
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].tag, 33550);
  EXPECT_EQ(fields[0].count, 3u);
  EXPECT_EQ(as_text(fields[0].bytes), std::string(24, 'd'));
  EXPECT_EQ(fields[1].tag, 42113);
  EXPECT_EQ(as_text(fields[1].bytes), std::string("7\0", 2));
}

TEST(TiffField, ADamagedBlockHasNoFields) {
  const std::string whole = geo_block();
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_TRUE(parse_geo_fields(whole.substr(0, size)).empty());
  const auto with = [&](std::size_t at, char byte) {
    std::string block = whole;
    block[at] = byte;
    return parse_geo_fields(block);
  };
  EXPECT_TRUE(with(0, 'M').empty());
  EXPECT_TRUE(with(8, 9).empty());     // more entries than there are fields
  EXPECT_TRUE(with(10, 1).empty());    // another tag
  EXPECT_TRUE(with(12, 99).empty());   // no type
  EXPECT_TRUE(with(17, 127).empty());  // values beyond the end
  EXPECT_TRUE(with(18, 39).empty());
  EXPECT_TRUE(with(22, 0x0e).empty());  // 0xa40e
}

RC_GTEST_PROP(TiffField, AnyBytesAreABlockOrNone, (std::string bytes, std::size_t at)) {
  std::string block = geo_block();
  for (std::size_t i = 0; i < bytes.size(); ++i) block[8 + (at + i * 7) % (block.size() - 8)] = bytes[i];
  for (const TiffField& field : parse_geo_fields(block)) RC_ASSERT(field.bytes.size() <= block.size());
}

// A block of EXIF in either order of bytes: a maker, EXIF with a number and a fraction, GPS with bytes; and what is
// left out: the orientation, a directory within EXIF, a type that there is not, and values that are not there.
std::string exif_block(bool little) {
  std::string block(little ? "II" : "MM");
  const auto put = [&](std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) block += static_cast<char>(value >> (8 * (little ? i : bytes - 1 - i)));
  };
  const auto entry = [&](unsigned tag, unsigned type, unsigned count, unsigned value, unsigned bytes = 4) {
    put(tag, 2);
    put(type, 2);
    put(count, 4);
    put(value, bytes);
    block.resize(block.size() + 4 - bytes);
  };
  put(42, 2);
  put(8, 4);
  put(4, 2);  // at 8
  entry(271, 2, 7, 62);
  entry(274, 3, 1, 6, 2);
  entry(34665, 4, 1, 70);
  entry(34853, 13, 1, 136);
  put(0, 4);
  block += std::string("Camera\0\0", 8);  // at 62
  put(5, 2);                              // at 70
  entry(33434, 5, 1, 154);
  entry(34855, 3, 2, 0, 4);
  entry(36864, 99, 1, 0);
  entry(37500, 7, 5, 9999);
  entry(40965, 4, 1, 8);
  block.replace(92, 4, little ? std::string("\x64\0\xc8\0", 4) : std::string("\0\x64\0\xc8", 4));
  put(0, 4);
  put(1, 2);  // at 136
  entry(0, 1, 4, 0);
  block.replace(146, 4, std::string("\2\3\0\0", 4));
  put(0, 4);
  put(1, 4);  // at 154
  put(250, 4);
  return block;
}

TEST(ExifBlock, BothOrdersOfBytesAreTheSameFields) {
  for (const bool little : {true, false}) {
    const ExifFields found = parse_exif(exif_block(little));
    ASSERT_EQ(found.page.size(), 1u);
    EXPECT_EQ(found.page[0], text_field(271, "Camera"));
    ASSERT_EQ(found.directories.size(), 2u);
    EXPECT_EQ(found.directories[0].tag, 34665);
    ASSERT_EQ(found.directories[0].fields.size(), 2u);
    EXPECT_EQ(found.directories[0].fields[0],
              (TiffField{33434, 5, 1, {std::byte{1}, {}, {}, {}, std::byte{250}, {}, {}, {}}}));
    EXPECT_EQ(found.directories[0].fields[1], (TiffField{34855, 3, 2, {std::byte{100}, {}, std::byte{200}, {}}}));
    EXPECT_EQ(found.directories[1].tag, 34853);
    EXPECT_EQ(found.directories[1].fields, (std::vector{TiffField{0, 1, 4, {std::byte{2}, std::byte{3}, {}, {}}}}));
  }
}

TEST(ExifBlock, ABlockIsNeverReadBeyondItsEndAndNoValueTwice) {
  const std::string whole = exif_block(true);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const ExifFields found = parse_exif(std::string(whole, 0, size));
    EXPECT_LE(found.page.size() + found.directories.size(), 3u);
  }
  EXPECT_TRUE(parse_exif("II\x2b").page.empty());
  std::string many("II\x2a\0\x08\0\0\0\xff\xff", 10);
  for (int i = 0; i < 4000; ++i) many += std::string("\x0f\1\2\0\0\x40\0\0\0\0\0\0", 12);  // the same 16 KiB
  EXPECT_TRUE(parse_exif(many).page.empty());
}

RC_GTEST_PROP(ExifBlock, AnyBytesAreFieldsNoLongerThanTheBlock, (std::string bytes, std::size_t at, bool little)) {
  std::string block = exif_block(little);
  for (std::size_t i = 0; i < bytes.size(); ++i) block[4 + (at + i * 7) % (block.size() - 4)] = bytes[i];
  const ExifFields found = parse_exif(block);
  std::size_t total = 0;
  for (const TiffField& field : found.page) total += field.bytes.size();
  for (const TiffDirectory& directory : found.directories)
    for (const TiffField& field : directory.fields) total += field.bytes.size();
  RC_ASSERT(total <= block.size());
}

TEST_F(TiffTest, ExifIsInDirectoriesOfTheFirstPage) {
  ino_ = add(make("zyx", {2, 20, 40}, 1, ElementType::kU8));
  set("exif", exif_block(false));
  set("description", "a text");
  const auto layout = tiff_layout(volume_, ino_);
  ASSERT_TRUE(layout.ok());
  const ByteVector head = head_of(*layout);
  std::vector<Directory> pages = directories(ConstBytes(head));
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0][271], (Values{'C', 'a', 'm', 'e', 'r', 'a', 0}));
  EXPECT_FALSE(pages[0].contains(274));
  EXPECT_FALSE(pages[1].contains(34665));
  const DirectoryAndNext exif = directory_at(head, pages[0].at(34665)[0]),
                         gps = directory_at(head, pages[0].at(34853)[0]);
  EXPECT_EQ(exif.next + gps.next, 0u);
  EXPECT_EQ(exif.fields.size(), 2u);
  EXPECT_EQ(exif.fields.at(33434), Values{std::uint64_t{250} << 32 | 1});
  EXPECT_EQ(exif.fields.at(34855), (Values{100, 200}));
  EXPECT_EQ(gps.fields.at(0), (Values{2, 3, 0, 0}));
}

TEST(OmeXml, AxesTypesAndSpacingAreThoseOfTheImage) {
  Geometry geometry = make("tczyx", {2, 3, 4, 50, 60}, 1, ElementType::kU16);
  geometry.spacing = {500, 1, 2, 0.5, 0.25};
  geometry.unit = {"ms", "um", "um", "um", "um"};
  const std::string text = ome_xml(geometry);
  for (const char* part : {R"(DimensionOrder="XYZCT")", R"(Type="uint16")", R"(SizeX="60")", R"(SizeC="3")",
                           R"(SizeT="2" TimeIncrement="0.5")", R"(PhysicalSizeX="0.25")", R"(PhysicalSizeZ="2")"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(text.find("PhysicalSizeC"), std::string::npos);
  EXPECT_TRUE(is_ome_xml_of(text, geometry));
  geometry.shape[0] = 3;
  EXPECT_FALSE(is_ome_xml_of(text, geometry));
  EXPECT_TRUE(ome_xml(make("qyx", {2, 20, 30}, 1, ElementType::kU8)).empty());
  EXPECT_TRUE(ome_xml(make("zyx", {2, 20, 30}, 1, ElementType::kF16)).empty());
  EXPECT_TRUE(ome_xml(make("yx", {20, 30}, 1, ElementType::kU8)).find("SizeZ=\"1\"") != std::string::npos);
}

TEST(OmeXml, ATextOfOtherFilesIsNotOfTheImage) {
  const Geometry geometry = make("zyx", {4, 50, 60}, 1, ElementType::kU16);
  std::string text = ome_xml(geometry);
  EXPECT_TRUE(is_ome_xml_of(text, geometry));
  const auto with = [&](const std::string& old, const std::string& changed) {
    std::string copy = text;
    copy.replace(copy.find(old), old.size(), changed);
    return is_ome_xml_of(copy, geometry);
  };
  EXPECT_TRUE(with("XYZCT", "XYCZT"));  // axes of one step have no order
  EXPECT_FALSE(with("<TiffData/>", R"(<TiffData><UUID FileName="b.tif">1</UUID></TiffData>)"));
  EXPECT_FALSE(with("<TiffData/>", "<TiffData/></Pixels><Pixels >"));
  EXPECT_FALSE(with(R"(SizeT="1")", R"(SizeT="9")"));
  EXPECT_FALSE(is_ome_xml_of("<OME><Pixels ", geometry));
  EXPECT_FALSE(is_ome_xml_of("", geometry));
}

}  // namespace
}  // namespace mdfs::views
