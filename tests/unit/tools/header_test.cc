// Claims about the headers of NPY and PNM files, for arbitrary arrays and for garbage.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/header.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>

namespace mdfs::imagefile {
namespace {

using geometry::ElementType;

ArrayInfo any_array(std::size_t least, std::size_t most) {
  ArrayInfo array;
  const auto count = *rc::gen::inRange<std::size_t>(least, most + 1);
  for (std::size_t i = 0; i < count; ++i) array.lengths.push_back(*rc::gen::inRange<std::uint64_t>(0, 1u << 15));
  array.type = static_cast<ElementType>(*rc::gen::inRange(1, 12));
  return array;
}

// A version 1 file of the dictionary `text`.
std::string npy(const std::string& text, char version = 1) {
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  file += static_cast<char>(text.size() & 0xff);
  file += static_cast<char>(text.size() >> 8);
  if (version != 1) file += std::string(2, '\0');
  return file + text;
}

Result<PackedHeader> parse(const std::string& file) { return parse_npy(as_bytes(file), "scan.npy"); }

RC_GTEST_PROP(NpyHeaderTest, AWrittenHeaderReadsBackAsTheSameArray, ()) {
  const ArrayInfo array = any_array(1, kMaxDimensions);
  const std::string text = npy_header(array);
  RC_ASSERT(text.size() % 64 == 0u);
  const auto header = parse(text);
  RC_ASSERT(header.ok());
  RC_ASSERT(header->array == array);
  RC_ASSERT(header->data_offset == text.size());
  RC_ASSERT(!header->big_endian);
}

RC_GTEST_PROP(NpyHeaderTest, ADamagedHeaderIsReadOrRefusedByNameButNeverMore, ()) {
  std::string text = npy_header(any_array(1, kMaxDimensions));
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i)
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  text.resize(*rc::gen::inRange<std::size_t>(0, text.size() + 1));
  const auto header = parse(text);
  if (header.ok()) {
    RC_ASSERT(header->data_offset <= text.size());
    RC_ASSERT((header->array.lengths.size() >= 1u && header->array.lengths.size() <= kMaxDimensions));
  } else {
    RC_ASSERT(header.error().where.starts_with("scan.npy: "));
    RC_ASSERT(header.error().where.find('\n') == std::string::npos);
  }
}

TEST(NpyHeaderTest, EveryTypeAndByteOrderThatNumpyWritesIsKnown) {
  const std::pair<const char*, ElementType> types[] = {
      {"u1", ElementType::kU8},  {"u2", ElementType::kU16}, {"u4", ElementType::kU32}, {"u8", ElementType::kU64},
      {"i1", ElementType::kI8},  {"i2", ElementType::kI16}, {"i4", ElementType::kI32}, {"i8", ElementType::kI64},
      {"f2", ElementType::kF16}, {"f4", ElementType::kF32}, {"f8", ElementType::kF64}, {"b1", ElementType::kU8}};
  for (const auto& [text, type] : types)
    for (const char order : {'<', '>', '|', '='}) {
      const auto header =
          parse(npy(std::string("{'descr': '") + order + text + "', 'fortran_order': False, 'shape': (3, 4), }"));
      ASSERT_TRUE(header.ok()) << order << text;
      EXPECT_EQ(header->array.type, type);
      EXPECT_EQ(header->big_endian, order == '>' && text[1] != '1') << order << text;
    }
}

TEST(NpyHeaderTest, VersionsTwoAndThreeAndOldSpellingsAreRead) {
  const std::string text = "{\"shape\": (3L, 4L), 'descr' :'<u2','fortran_order':False}\n";
  for (const char version : {'\1', '\2', '\3'}) {
    const auto header = parse(npy(text, version));
    ASSERT_TRUE(header.ok()) << int{version} << header.error().message();
    EXPECT_EQ(header->array.lengths, (std::vector<std::uint64_t>{3, 4}));
    EXPECT_EQ(header->data_offset, text.size() + (version == 1 ? 10 : 12));
  }
  EXPECT_EQ(parse(npy(text, 4)).error().code, Errc::kNotSupported);
}

TEST(NpyHeaderTest, FortranOrderIsRefusedUnlessOnlyOneAxisIsLongerThanOne) {
  EXPECT_EQ(parse(npy("{'descr': '<u2', 'fortran_order': True, 'shape': (3, 4)}")).error().code, Errc::kNotSupported);
  EXPECT_TRUE(parse(npy("{'descr': '<u2', 'fortran_order': True, 'shape': (1, 4)}")).ok());
}

TEST(NpyHeaderTest, WhatIsNoImageIsRefusedAndTheFieldNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", "<c8"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "|O"},
      {"{'descr': '<U12', 'fortran_order': False, 'shape': (3,)}", "<U12"},
      {"{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (3,)}", "structured"},
      {"{'descr': '<u2', 'fortran_order': False, 'shape': ()}", "single number"},
      {"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2, 3, 4, 5, 6, 7)}", "'shape'"},
      {"{'descr': '<u2', 'fortran_order': False, 'shape': (-1,)}", "'shape'"},
      {"{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,)}", "'shape'"},
      {"{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4}", "'shape'"},
      {"{'descr': '<u2', 'fortran_order': Maybe, 'shape': (3,)}", "'fortran_order'"},
      {"{'descr': '<u2', 'shape': (3,)}", "'fortran_order'"},
      {"{'fortran_order': False, 'shape': (3,)}", "'descr'"},
      {"{'descr': '<u2', 'fortran_order': False}", "'shape'"},
      {"{'descr': '<u2', 'descr': '<u2', 'fortran_order': False, 'shape': (3,)}", "'descr'"},
      {"{'descr': '<u2', 'fortran_order': False, 'shape': (3,), 'more': 1}", "'more'"},
      {"{'descr': '<u2', 'fortran_order': False, 'shape': (3,)} 7", "continues"},
      {"'descr'", "dictionary"},
      {"", "dictionary"},
  };
  for (const auto& [text, words] : cases) {
    const auto header = parse(npy(text));
    ASSERT_FALSE(header.ok()) << text;
    EXPECT_NE(header.error().where.find(words), std::string::npos) << text << " -> " << header.error().message();
  }
}

RC_GTEST_PROP(PnmHeaderTest, AWrittenHeaderReadsBackAsTheSameArray, ()) {
  ArrayInfo array;
  array.lengths = {*rc::gen::inRange<std::uint64_t>(1, 1u << 20), *rc::gen::inRange<std::uint64_t>(1, 1u << 20)};
  array.axes = "yx";
  if (*rc::gen::arbitrary<bool>()) {
    array.lengths.push_back(3);
    array.axes = "yxc";
  }
  array.type = *rc::gen::element(ElementType::kU8, ElementType::kU16);
  const auto text = pnm_header(array, "a.pnm");
  RC_ASSERT(text.ok());
  const auto header = parse_pnm(as_bytes(*text), "a.pnm");
  RC_ASSERT(header.ok());
  RC_ASSERT(header->array == array);
  RC_ASSERT(header->data_offset == text->size());
  RC_ASSERT(header->big_endian == (array.type == ElementType::kU16));
}

TEST(PnmHeaderTest, CommentsAndAnyWhiteSpaceAreSkipped) {
  const std::string text = "P5 # made by hand\n# another\n\t4\r\n3 #c\n255\n";
  const auto header = parse_pnm(as_bytes(text), "a.pgm");
  ASSERT_TRUE(header.ok()) << header.error().message();
  EXPECT_EQ(header->array.lengths, (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(header->data_offset, text.size());
}

TEST(PnmHeaderTest, NonsenseIsRefusedAndTheFieldNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"P4 8 8\n", "P4"},
      {"P2 1 1 255\n7", "P2"},
      {"P7\nWIDTH 1\n", "P7"},
      {"P5 0 4 255\n", "width"},
      {"P5 -4 4 255\n", "width"},
      {"P5 4 99999999999999 255\n", "height"},
      {"P5 4 4 0\n", "maximum"},
      {"P5 4 4 65536\n", "maximum"},
      {"P5 4 4", "maximum"},
      {"P5 4", "height"},
      {"P5 #never ends", "width"},
      {"P5 4 4 255x", "white space"},
      {"P5 4 4 255", "white space"},
  };
  for (const auto& [text, words] : cases) {
    const auto header = parse_pnm(as_bytes(text), "a.pgm");
    ASSERT_FALSE(header.ok()) << text;
    EXPECT_NE(header.error().where.find(words), std::string::npos) << text << " -> " << header.error().message();
  }
}

TEST(PnmHeaderTest, ArraysThatItCannotHoldAreRefused) {
  for (const ArrayInfo& array :
       {ArrayInfo{{4, 4}, ElementType::kF32, "yx"}, ArrayInfo{{4, 4, 4}, ElementType::kU8, "zyx"},
        ArrayInfo{{4, 4, 2}, ElementType::kU8, "yxc"}, ArrayInfo{{4, 4, 3}, ElementType::kU8, "zyx"},
        ArrayInfo{{16}, ElementType::kU8, "x"}, ArrayInfo{{0, 4}, ElementType::kU8, "yx"}})
    EXPECT_FALSE(pnm_header(array, "a.pnm").ok());
  EXPECT_FALSE(pnm_header({{4, 4, 3}, ElementType::kU8, "yxc"}, "a.pgm").ok());
  EXPECT_FALSE(pnm_header({{4, 4}, ElementType::kU8, "yx"}, "a.ppm").ok());
}

TEST(ArrayInfoTest, TiffIsBigBeforeItsOffsetsCouldOverflow) {
  using geometry::ElementType;
  constexpr std::uint64_t k4GiB = std::uint64_t{1} << 32;
  for (const std::uint64_t rows : {1ull, 1000ull, 65536ull, 1ull << 22})
    for (const std::uint64_t pages : {1ull, 64ull, 4096ull, 1ull << 20}) {
      const std::uint64_t columns = k4GiB / rows / pages;
      if (columns == 0) continue;
      const auto big = [&](std::uint64_t width) {
        return needs_big_tiff({{pages, rows, width}, ElementType::kU8, "zyx"});
      };
      EXPECT_TRUE(big(columns + 1)) << rows << " " << pages;
      EXPECT_TRUE(big(columns)) << rows << " " << pages;
      if (rows * pages < (1u << 22) && pages < (1u << 18)) {
        EXPECT_FALSE(big(columns / 4)) << rows << " " << pages;
      }
    }
  EXPECT_FALSE(needs_big_tiff({{100, 100}, ElementType::kU8, "yx"}));
  EXPECT_TRUE(needs_big_tiff({{1ull << 40, 1ull << 40}, ElementType::kU8, "yx"}));
}

}  // namespace
}  // namespace mdfs::imagefile
