// NPY headers: what is written is what NumPy and we read.
// SPDX-License-Identifier: Apache-2.0
#include "views/npy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace mdfs::views {
namespace {

using geometry::ElementType;

ByteVector with_dict(const std::string& dict, char major = 1) {
  std::string text = std::string("\x93NUMPY", 6) + major + std::string(1, '\0');
  text.append(major == 1 ? 2 : 4, '\0');
  text += dict;
  const ConstBytes bytes = as_bytes(text);
  ByteVector header(bytes.begin(), bytes.end());
  if (major == 1) {
    store_le<std::uint16_t>(header, 8, static_cast<std::uint16_t>(dict.size()));
  } else {
    store_le<std::uint32_t>(header, 8, static_cast<std::uint32_t>(dict.size()));
  }
  return header;
}

TEST(Npy, HeaderIsWhatNumpyWrites) {
  const ByteVector header = npy_header(ElementType::kU16, {3, 4}, 128);
  ASSERT_EQ(header.size(), 128u);
  const std::string text(as_text(header));
  EXPECT_EQ(text.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(text.substr(10, 61), "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4), }  ");
  EXPECT_EQ(text.back(), '\n');
  EXPECT_NE(as_text(npy_header(ElementType::kU8, {7}, 128)).find("'shape': (7,),"), std::string_view::npos);
  EXPECT_NE(as_text(npy_header(ElementType::kU8, {}, 128)).find("'shape': (),"), std::string_view::npos);
}

RC_GTEST_PROP(Npy, EveryHeaderReadsBackAsItself, ()) {
  const auto type = static_cast<ElementType>(*rc::gen::inRange(1, 12));
  const auto rank = *rc::gen::inRange<std::size_t>(0, 5);
  const auto shape = *rc::gen::container<std::vector<std::uint64_t>>(rank, rc::gen::inRange<std::uint64_t>(0, 20000));
  const std::size_t size = *rc::gen::element(std::size_t{128}, std::size_t{4096});
  const auto header = parse_npy_header(npy_header(type, shape, size));
  RC_ASSERT(header.ok());
  RC_ASSERT(header->type == type);
  RC_ASSERT(header->shape == shape);
  RC_ASSERT(header->header_bytes == size);
}

TEST(Npy, TheLargestShapeOfAnImageFitsAWindowsHeader) {
  EXPECT_EQ(npy_header(ElementType::kU8, {2097152, 2097152, 1048576, 1}, kWindowNpyHeaderBytes).size(), 128u);
}

TEST(Npy, VersionsTwoAndThreeAreRead) {
  const std::string dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}\n";
  for (const char major : {'\1', '\2', '\3'}) {
    const auto header = parse_npy_header(with_dict(dict, major));
    ASSERT_TRUE(header.ok()) << int{major};
    EXPECT_EQ(header->data_bytes(), 2u);
  }
}

TEST(Npy, WhatIsNotUnderstoodIsAnErrorInWords) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  ASSERT_TRUE(parse_npy_header(with_dict(good)).ok());
  const std::vector<std::string> dicts = {
      "",
      "{",
      "{}",
      good + "x",
      "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }",
      "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }",
      "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
      "{'descr': '<f4', 'fortran_order': maybe, 'shape': (2, 3), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999, 9999999999), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 2, }",
      "{'descr': '<f4', 'shape': (2, 3), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 'x'}",
  };
  for (const std::string& dict : dicts) EXPECT_FALSE(parse_npy_header(with_dict(dict)).ok()) << dict;
}

TEST(Npy, EveryTruncationIsAnError) {
  const ByteVector header = npy_header(ElementType::kF64, {5, 6, 7}, 128);
  for (std::size_t length = 0; length < header.size(); ++length)
    EXPECT_FALSE(parse_npy_header(ConstBytes(header).first(length)).ok()) << length;
}

}  // namespace
}  // namespace mdfs::views
