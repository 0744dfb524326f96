// Texts of HTTP.
// SPDX-License-Identifier: Apache-2.0
#include "serve/web_text.h"

#include <gtest/gtest.h>

namespace mdfs::serve {
namespace {

void expect_range(std::string_view header, std::uint64_t size, ByteSpan::Kind kind, std::uint64_t first = 0,
                  std::uint64_t count = 0) {
  const ByteSpan span = parse_range(header, size);
  EXPECT_EQ(span.kind, kind) << header;
  EXPECT_EQ(span.first, first) << header;
  EXPECT_EQ(span.count, count) << header;
}

TEST(WebText, ARangeNeverLeavesTheFile) {
  using Kind = ByteSpan::Kind;
  expect_range("bytes=0-0", 10, Kind::kPart, 0, 1);
  expect_range("bytes=3-", 10, Kind::kPart, 3, 7);
  expect_range("bytes=3-1000", 10, Kind::kPart, 3, 7);
  expect_range("bytes=3-18446744073709551615", 10, Kind::kPart, 3, 7);
  expect_range("bytes=-4", 10, Kind::kPart, 6, 4);
  expect_range("bytes=-400", 10, Kind::kPart, 0, 10);
  expect_range("bytes=10-", 10, Kind::kOutside);
  expect_range("bytes=-0", 10, Kind::kOutside);
  expect_range("bytes=0-", 0, Kind::kOutside);
  expect_range("bytes=18446744073709551616-", 10, Kind::kOutside);
  expect_range("bytes=3-18446744073709551616", 10, Kind::kPart, 3, 7);
  expect_range("Bytes=0-0", 10, Kind::kPart, 0, 1);
  for (const char* header : {"", "bytes", "bytes=", "bytes=-", "bytes=5-3", "bytes=a-b", "bytes=1-2,4-5", "bytes=+1-2",
                             "rows=1-2", "bytes=1", "bytes=1-2x"})
    expect_range(header, 10, Kind::kWhole);
}

TEST(WebText, ADateIsReadBack) {
  EXPECT_EQ(http_date(1795651200), "Thu, 26 Nov 2026 00:00:00 GMT");
  EXPECT_EQ(parse_http_date("Thu, 26 Nov 2026 00:00:00 GMT"), 1795651200);
  EXPECT_EQ(parse_http_date("Thursday, 26-Nov-26 00:00:00 GMT"), 1795651200);
  EXPECT_EQ(parse_http_date("Thu Nov 26 00:00:00 2026"), 1795651200);
  for (const char* text : {"", "yesterday", "Thu, 26 Nov 2026 00:00:00 GMT+1", "Thu, 26 Nov 2026"})
    EXPECT_FALSE(parse_http_date(text)) << text;
}

TEST(WebText, ATagIsFoundInAList) {
  const std::string tag = entity_tag({1, 2}, 255);
  EXPECT_EQ(tag, "\"1.2-ff\"");
  EXPECT_TRUE(has_tag("\"a\", W/" + tag, tag));
  EXPECT_TRUE(has_tag("*", tag));
  EXPECT_FALSE(has_tag("\"a\"", tag));
  EXPECT_FALSE(has_tag("", tag));
  EXPECT_FALSE(has_tag("W/" + tag, tag, false)) << "a weak tag does not prove equal bytes";
  EXPECT_FALSE(has_tag("\"a,*,b\"", tag)) << "a comma in quotes ends no tag";
}

TEST(WebText, TheEndingOfANameTellsItsType) {
  EXPECT_EQ(content_type("/a/b.png"), "image/png");
  EXPECT_EQ(content_type("/scan@/ome.zarr/zarr.json"), "application/json");
  EXPECT_EQ(content_type("/scan@/ome.zarr/0/c/0"), "application/octet-stream");
  EXPECT_EQ(content_type("/a.png/b"), "application/octet-stream");
}

}  // namespace
}  // namespace mdfs::serve
