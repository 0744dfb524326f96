// Claims about TIFF palettes: each picture has exactly the colours of its palette, or is refused by name.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>

#include "imagefile/image_file.h"
#include "made_tiff.h"
#include "scratch.h"
#include "written_tiff.h"

namespace mdfs::imagefile {
namespace {

using TiffPaletteTest = ScratchTest;
using Random = std::mt19937;

constexpr unsigned kPalette = 3;
constexpr std::array<unsigned, 7> kCompressions = {1, 5, 8, 32946, 32773, 34925, 50000};

unsigned below(Random& random, unsigned limit) { return static_cast<unsigned>(random() % limit); }

// Strips or tiles of indices; the values of the colours are below `limit`.
WrittenTiff palette_tiff(unsigned bits, bool tiled, Random& random, unsigned limit) {
  WrittenTiff tiff;
  tiff.photometric = kPalette;
  tiff.bits = bits;
  tiff.element = bits > 8 ? 2 : 1;
  tiff.width = 1 + below(random, 70);
  tiff.height = 1 + below(random, 40);
  tiff.pages = 1 + below(random, 2);
  tiff.across = tiled ? 16 * (1 + below(random, 3)) : 0;
  tiff.down = tiled ? 16 * (1 + below(random, 3)) : 1 + below(random, tiff.height);
  for (unsigned i = 0; i < 3u << bits; ++i) tiff.colours.push_back(below(random, limit));
  return tiff;
}

std::string indices_of(const WrittenTiff& tiff, Random& random) {
  std::string text;
  for (std::size_t i = 0; i < tiff.page_bytes() * tiff.pages; i += tiff.element)
    text += tiff_number(below(random, 1u << tiff.bits), tiff.element, false);
  return text;
}

// The picture as plain RGB; `shift` leaves the byte of a colour that counts.
std::string coloured(const WrittenTiff& tiff, const std::string& indices, unsigned shift) {
  std::string text;
  for (std::size_t i = 0; i < indices.size(); i += tiff.element) {
    std::size_t index = static_cast<unsigned char>(indices[i]);
    if (tiff.element == 2) index |= std::size_t{static_cast<unsigned char>(indices[i + 1])} << 8;
    for (std::size_t plane = 0; plane < 3; ++plane)
      text += static_cast<char>(tiff.colours[(plane << tiff.bits) + index] >> shift);
  }
  return text;
}

std::string to_text(const WrittenTiff& t) {
  return fmt::format("{} bits, {} pages of {}x{}, pieces of {}x{}, compression {}, predictor {}, fill order {}{}{}{}",
                     t.bits, t.pages, t.height, t.width, t.down, t.across, t.compression, t.predictor, t.fill_order,
                     t.separate ? ", planes" : "", t.big ? ", BigTIFF" : "", t.big_endian ? ", MM" : "");
}

void for_each_layout(Random& random, unsigned limit, const std::function<void(WrittenTiff& tiff)>& use) {
  for (const unsigned bits : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 16u})
    for (unsigned choice = 0; choice < 16; ++choice) {
      WrittenTiff tiff = palette_tiff(bits, choice & 1, random, limit);
      tiff.big = choice & 2;
      tiff.big_endian = choice & 4;
      tiff.fill_order = choice & 8 ? 2 : 1;
      use(tiff);
    }
}

TEST_F(TiffPaletteTest, EveryLayoutReturnsTheHighestBytesOfItsColours) {
  Random random(1);
  for_each_layout(random, 65536, [&](WrittenTiff& tiff) {
    tiff.separate = below(random, 4) == 0;
    tiff.format = below(random, 4) == 0 ? 4 : 1;  // undefined, or unsigned
    if (tiff.fill_order == 1) tiff.compression = kCompressions[below(random, kCompressions.size())];
    if (tiff.bits >= 8 && tiff.compression != 1 && tiff.compression != 32773) tiff.predictor = 1 + below(random, 2);
    const std::string indices = indices_of(tiff, random);
    put("a.tif", tiff.bytes(indices));
    const auto back = read_all(path("a.tif"));
    ASSERT_TRUE(back.ok()) << to_text(tiff) << ": " << back.error().message();
    EXPECT_EQ(back->first.type, geometry::ElementType::kU8) << to_text(tiff);
    EXPECT_TRUE(as_text(back->second) == coloured(tiff, indices, 8)) << to_text(tiff);
  });
}

// Writers before TIFF 6.0 stored 8 bits. One colour of 256 or more makes all of them 16 bits.
TEST_F(TiffPaletteTest, ColoursThatAreAllBelow256AreTheirLowestBytesAtAllDepths) {
  Random random(2);
  for_each_layout(random, 256, [&](WrittenTiff& tiff) {
    const std::string indices = indices_of(tiff, random);
    for (const bool old : {true, false}) {
      if (!old) tiff.colours.back() = 256;
      put("a.tif", tiff.bytes(indices));
      const auto back = read_all(path("a.tif"));
      ASSERT_TRUE(back.ok()) << to_text(tiff) << ": " << back.error().message();
      EXPECT_TRUE(as_text(back->second) == coloured(tiff, indices, old ? 0 : 8)) << to_text(tiff) << ", old " << old;
    }
  });
}

TEST_F(TiffPaletteTest, GreySamplesWithTheLowestBitFirstAreTheSame) {
  Random random(3);
  for (const unsigned bits : {1u, 2u, 4u, 6u, 8u, 10u, 12u, 14u, 16u})
    for (const bool big_endian : {false, true}) {
      WrittenTiff tiff = palette_tiff(bits, below(random, 2), random, 65536);
      tiff.photometric = 1;
      tiff.colours.clear();
      tiff.big_endian = big_endian;
      const std::string samples = indices_of(tiff, random);
      put("a.tif", tiff.bytes(samples));
      tiff.fill_order = 2;
      put("b.tif", tiff.bytes(samples));
      const auto usual = read_all(path("a.tif")), turned = read_all(path("b.tif"));
      ASSERT_TRUE(usual.ok() && turned.ok()) << to_text(tiff);
      EXPECT_EQ(usual->second, turned->second) << to_text(tiff);
    }
}

TEST_F(TiffPaletteTest, APaletteThatIsNotDecodedIsRefusedWithItsFileFieldAndWhatIsAllowed) {
  using Change = std::function<void(WrittenTiff&)>;
  struct Case {
    unsigned bits;
    Change change;
    Errc code;
    const char *field, *allowed;
  };
  std::vector<Case> cases;
  for (unsigned bits = 9; bits < 16; ++bits)
    cases.push_back({bits, [](WrittenTiff&) {}, Errc::kNotSupported, "BitsPerSample", "1 to 8 and 16"});
  for (const unsigned bits : {1u, 2u, 4u, 8u, 16u}) {
    const auto colours = [&](std::size_t count) {
      return Case{bits, [=](WrittenTiff& t) { t.colours.resize(count, 7); }, Errc::kBadData, "ColorMap", "of 16"};
    };
    for (const std::size_t count : {0u, 3u << bits >> 1, (3u << bits) - 1, 6u << bits}) cases.push_back(colours(count));
    const auto refused = [&](Change change, const char* field, const char* allowed) {
      cases.push_back({bits, std::move(change), Errc::kNotSupported, field, allowed});
    };
    refused([](WrittenTiff& t) { t.samples = 2; }, "SamplesPerPixel", "allowed are indices alone");
    refused([](WrittenTiff& t) { t.samples = 2, t.separate = true; }, "SamplesPerPixel", "allowed are indices alone");
    refused([](WrittenTiff& t) { t.fill_order = 3; }, "FillOrder", "allowed are 1, and 2");
    refused([](WrittenTiff& t) { t.fill_order = 2, t.compression = 8; }, "FillOrder", "allowed are 1, and 2");
    refused([](WrittenTiff& t) { t.format = 2; }, "SampleFormat", "1 and 4");
    refused([](WrittenTiff& t) { t.format = 3; }, "SampleFormat", "1 and 4");
    refused([](WrittenTiff& t) { t.compression = 7; }, "Compression", "LZW");
    if (bits < 8) refused([](WrittenTiff& t) { t.compression = 8, t.predictor = 2; }, "Predictor", "1");
    refused([](WrittenTiff& t) { t.compression = 8, t.predictor = 3; }, "Predictor", "1");
  }
  Random random(4);
  for (const Case& one : cases) {
    WrittenTiff tiff = palette_tiff(one.bits, below(random, 2), random, 65536);
    one.change(tiff);
    put("a.tif", tiff.bytes(indices_of(tiff, random)));
    const auto back = read_all(path("a.tif"));
    ASSERT_FALSE(back.ok()) << to_text(tiff) << ", " << tiff.colours.size() << " values";
    EXPECT_EQ(back.error().code, one.code) << to_text(tiff);
    for (const char* const text : {"a.tif: page 0: ", "palette", one.field, one.allowed})
      EXPECT_NE(back.error().where.find(text), std::string::npos) << text << " in " << back.error().where;
  }
}

// The first page is YCbCr, which OpenImageIO converts.
TEST_F(TiffPaletteTest, APaletteBesideAPageThatIsConvertedIsRefusedAndReadAlone) {
  MadeTiff made;
  made.pages = 2;
  made.width = 12;
  made.changes = {{0, 256, 4}, {0, 277, 3}, {0, 262, 6}, {1, 256, 4}};
  for (unsigned value = 0; value < 768; ++value) made.palette.push_back(value * 85);
  put("a.tif", made.bytes());  // the second page has rows of 'b', 'b', 'd', 'd', 'f', 'f'
  const auto all = read_all(path("a.tif"));
  ASSERT_FALSE(all.ok());
  EXPECT_NE(all.error().where.find("page 1: a palette beside pages"), std::string::npos) << all.error().where;
  std::string expected;
  for (const unsigned index : {'b', 'b', 'd', 'd', 'f', 'f'})
    for (int column = 0; column < 4; ++column)
      for (unsigned plane = 0; plane < 3; ++plane)
        expected += static_cast<char>(made.palette[plane * 256 + index] >> 8);
  SourceOptions options;
  options.page = 1;
  const auto alone = read_all(path("a.tif"), options);
  ASSERT_TRUE(alone.ok()) << alone.error().where;
  EXPECT_TRUE(as_text(alone->second) == expected);
  options.page = 2;
  EXPECT_EQ(read_all(path("a.tif"), options).error().code, Errc::kOutOfRange);
}

}  // namespace
}  // namespace mdfs::imagefile
