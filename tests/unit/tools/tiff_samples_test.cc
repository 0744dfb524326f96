// Claims about the samples of TIFF files: all plain layouts are read exactly, and damage that can be known is an error.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/tiff_samples.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <tuple>

#include "imagefile/image_file.h"
#include "made_tiff.h"
#include "scratch.h"
#include "written_tiff.h"

namespace mdfs::imagefile {
namespace {

using TiffSamplesTest = ScratchTest;
using Random = std::mt19937;

constexpr std::array<unsigned, 7> kCompressions = {1, 5, 8, 32946, 32773, 34925, 50000};
// Bytes and format of samples.
constexpr std::array<std::pair<unsigned, unsigned>, 9> kTypes = {
    {{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2}, {4, 2}, {2, 3}, {4, 3}, {8, 3}}};

unsigned below(Random& random, unsigned limit) { return static_cast<unsigned>(random() % limit); }

WrittenTiff any_tiff(Random& random) {
  WrittenTiff tiff;
  std::tie(tiff.element, tiff.format) = kTypes[below(random, kTypes.size())];
  tiff.compression = kCompressions[below(random, kCompressions.size())];
  tiff.width = 1 + below(random, below(random, 2) ? 90 : 20);
  tiff.height = 1 + below(random, 90);
  tiff.samples = 1 + below(random, below(random, 2) ? 5 : 1);
  tiff.pages = 1 + below(random, 3);
  tiff.separate = tiff.samples > 1 && below(random, 2) == 0;
  tiff.big = below(random, 2);
  tiff.big_endian = below(random, 2);
  tiff.padded = below(random, 4) == 0;
  tiff.down = below(random, 2) ? tiff.height : 1 + below(random, tiff.height);
  if (below(random, 2)) {
    tiff.across = 16 * (1 + below(random, 4));
    tiff.down = 16 * (1 + below(random, 4));
  }
  if (tiff.compression != 1 && tiff.compression != 32773) tiff.predictor = 1 + below(random, tiff.format == 3 ? 3 : 2);
  return tiff;
}

std::string to_text(const WrittenTiff& t) {
  return fmt::format("{} bytes of format {}, {} pages of {}x{}x{}, pieces of {}x{}, compression {}, predictor {}{}{}{}",
                     t.element, t.format, t.pages, t.height, t.width, t.samples, t.down, t.across, t.compression,
                     t.predictor, t.separate ? ", planes" : "", t.big ? ", BigTIFF" : "", t.big_endian ? ", MM" : "");
}

// Of uncompressed, LZW and PackBits samples damage cannot always be known.
bool has_end_mark(unsigned compression) {
  return compression == 8 || compression == 32946 || compression == 34925 || compression == 50000;
}

// Compressible, but without two equal rows.
std::string samples_of(const WrittenTiff& tiff, Random& random) {
  std::string text(tiff.page_bytes() * tiff.pages, '\0');
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(random() % 4 == 0 ? random() : i / tiff.element % 7);
  return text;
}

TEST_F(TiffSamplesTest, EveryPlainLayoutReturnsItsSamples) {
  Random random(1);
  for (int i = 0; i < 250; ++i) {
    WrittenTiff tiff = any_tiff(random);
    const std::string samples = samples_of(tiff, random);
    put("a.tif", tiff.bytes(samples));
    const auto back = read_all(path("a.tif"));
    ASSERT_TRUE(back.ok()) << to_text(tiff) << ": " << back.error().message();
    ASSERT_TRUE(as_text(back->second) == samples) << to_text(tiff);
  }
}

TEST_F(TiffSamplesTest, IntegersOf64BitsAreRefusedByName) {
  Random random(3);
  for (const unsigned format : {1u, 2u}) {
    WrittenTiff tiff;
    tiff.element = 8;
    tiff.format = format;
    put("a.tif", tiff.bytes(samples_of(tiff, random)));
    const auto source = open_source(path("a.tif"), {});
    ASSERT_FALSE(source.ok());
    EXPECT_EQ(source.error().code, Errc::kNotSupported);
    EXPECT_NE(source.error().where.find("integers of 64 bits"), std::string::npos) << source.error().where;
  }
}

TEST_F(TiffSamplesTest, GreySamplesOfAnOddNumberOfBitsAreRefusedByThatNumber) {
  for (unsigned bits = 1; bits <= 16; ++bits) {
    MadeTiff tiff;
    tiff.width = 16;
    tiff.changes = {{0, 258, bits}, {0, 256, 8}};  // there are more bytes than these rows have
    put("a.tif", tiff.bytes());
    const auto source = open_source(path("a.tif"), {});
    if (bits == 1 || bits % 2 == 0) {
      EXPECT_TRUE(source.ok()) << bits << " bits: " << source.error().message();
      continue;
    }
    ASSERT_FALSE(source.ok()) << bits;
    EXPECT_EQ(source.error().code, Errc::kNotSupported);
    EXPECT_NE(source.error().where.find(fmt::format("samples of {} bits", bits)), std::string::npos)
        << source.error().where;
  }
}

TEST_F(TiffSamplesTest, ASinglePageIsReadAlone) {
  WrittenTiff tiff;
  tiff.element = 8;
  tiff.format = 3;
  tiff.pages = 3;
  Random random(2);
  const std::string samples = samples_of(tiff, random);
  put("a.tif", tiff.bytes(samples));
  SourceOptions options;
  options.page = 1;
  const auto back = read_all(path("a.tif"), options);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_TRUE(as_text(back->second) == samples.substr(tiff.page_bytes(), tiff.page_bytes()));
}

// The writer makes a checksum for each of these.
TEST_F(TiffSamplesTest, OneChangedBitOfAStreamWithAChecksumIsRefused) {
  Random random(3);
  int refused = 0;
  for (int i = 0; i < 150; ++i) {
    WrittenTiff tiff = any_tiff(random);
    tiff.compression = std::array{8u, 32946u, 34925u, 50000u}[below(random, 4)];
    const std::string samples = samples_of(tiff, random);
    std::string file = tiff.bytes(samples);
    const auto& piece = tiff.pieces[below(random, static_cast<unsigned>(tiff.pieces.size()))];
    const std::size_t at = piece.at + below(random, static_cast<unsigned>(piece.length));
    file[at] = static_cast<char>(file[at] ^ (1 << below(random, 8)));
    put("a.tif", file);
    const auto back = read_all(path("a.tif"));
    if (!back.ok()) {
      EXPECT_NE(back.error().message().find("a.tif"), std::string::npos) << back.error().message();
      ++refused;
      continue;
    }
    EXPECT_TRUE(as_text(back->second) == samples) << to_text(tiff) << ", byte " << at << " of a piece at " << piece.at;
  }
  EXPECT_GT(refused, 135);  // some bits have no meaning, as the operating system of a compressor
}

TEST_F(TiffSamplesTest, AFailedCopyIsRefusedOrHasItsSamples) {
  Random random(4);
  for (int i = 0; i < 150; ++i) {
    WrittenTiff tiff = any_tiff(random);
    const std::string samples = samples_of(tiff, random), file = tiff.bytes(samples);
    const std::size_t at = 8 + below(random, static_cast<unsigned>(file.size() - 8));
    std::string cut = file.substr(0, at);
    if (i % 2 == 0) {  // zeros from `at` on, before the directories at the end
      if (!has_end_mark(tiff.compression)) continue;
      const auto& last = tiff.pieces[below(random, static_cast<unsigned>(tiff.pieces.size()))];
      const std::size_t from = last.at + below(random, static_cast<unsigned>(last.length));
      cut = file;
      cut.replace(from, last.at + last.length - from, last.at + last.length - from, '\0');
    }
    put("a.tif", cut);
    const auto back = read_all(path("a.tif"));
    if (!back.ok()) continue;
    EXPECT_TRUE(as_text(back->second) == samples) << to_text(tiff) << ", from byte " << at;
  }
}

TEST_F(TiffSamplesTest, AStreamOfTooFewOrTooManySamplesIsRefused) {
  for (const unsigned compression : kCompressions) {
    if (compression == 1) continue;
    for (const int extra : {-1, 0, 1}) {
      WrittenTiff tiff;
      tiff.width = 40;
      tiff.height = tiff.down = 30;
      tiff.compression = compression;
      tiff.extra_rows = extra;
      put("a.tif", tiff.bytes(std::string(tiff.page_bytes(), 's')));
      EXPECT_EQ(read_all(path("a.tif")).ok(), extra == 0) << compression << " " << extra;
    }
  }
}

// Rows begin at whole bytes. Without a field of bits they have one.
TEST_F(TiffSamplesTest, NarrowSamplesAreSpreadOverTheRangeOfAByte) {
  MadeTiff made;
  made.width = 12;
  made.height = made.rows = 1;
  made.changes = {{0, 258, 1}};
  for (const unsigned tag : {258u, 258u + 60000u}) {
    made.renamed = {258, tag};
    put("a.tif", made.bytes());  // its first bytes are 'a', 'a'
    const auto back = read_all(path("a.tif"));
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(as_text(back->second), std::string("\0\xff\xff\0\0\0\0\xff\0\xff\xff\0", 12)) << tag;
  }
}

TEST_F(TiffSamplesTest, WhiteAtZeroIsInvertedForAllUnsignedSamples) {
  for (const unsigned element : {1u, 2u, 4u}) {
    WrittenTiff tiff;
    tiff.element = element;
    tiff.white_is_zero = true;
    put("a.tif", tiff.bytes(std::string(tiff.page_bytes(), '\x12')));
    const auto back = read_all(path("a.tif"));
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(as_text(back->second), std::string(tiff.page_bytes(), '\xed'));
  }
}

// Colour c of a palette is (c, 255 - c, 7 c) in its highest byte.
TEST_F(TiffSamplesTest, AColourOfAPaletteIsItsHighestByteWhateverTheWriterPutsInTheLowest) {
  for (const unsigned bits : {1u, 4u, 8u})
    for (const auto& [scale, tiled] : {std::pair(256u, false), std::pair(257u, true), std::pair(1u, false)}) {
      const unsigned colours = 1u << bits;
      MadeTiff made;
      made.big_endian = scale == 257;
      made.tiled = tiled;
      made.width = tiled ? 16 : 8;
      made.height = made.rows = tiled ? 16 : 2;
      if (tiled && bits < 8) continue;  // MadeTiff has tiles of bytes
      made.changes = {{0, 258, bits}};
      for (unsigned c = 0; c < colours; ++c) made.palette.push_back(c * scale);
      for (unsigned c = 0; c < colours; ++c) made.palette.push_back((255 - c) * scale);
      for (unsigned c = 0; c < colours; ++c) made.palette.push_back(7 * c % 256 * scale);
      put("a.tif", made.bytes());  // bytes of 'a', 0x61
      const auto back = read_all(path("a.tif"));
      ASSERT_TRUE(back.ok()) << back.error().message();
      ASSERT_EQ(back->first.lengths, (std::vector<std::uint64_t>{made.height, made.width, 3}));
      const std::string row = bits == 8   ? std::string(made.width, 'a')
                              : bits == 4 ? std::string("\6\1\6\1\6\1\6\1", 8)
                                          : std::string("\0\1\1\0\0\0\0\1", 8);
      std::string expected;
      for (unsigned y = 0; y < made.height; ++y)
        for (const char c : row) expected += {c, static_cast<char>(255 - c), static_cast<char>(7 * c)};
      EXPECT_TRUE(as_text(back->second) == expected) << bits << " bits, scale " << scale;
    }
}

}  // namespace
}  // namespace mdfs::imagefile
