// Claims about text from strangers: what is one line, and how anything is shown as one.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace mdfs {
namespace {

TEST(TextTest, ControlCharactersAreShownAndNotObeyed) {
  EXPECT_EQ(printable("plain \u00e9 text"), "plain \u00e9 text");
  EXPECT_EQ(printable("a\nb\x1b[31mc\x7f"), "a\\nb\\x1b[31mc\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\u009b31m \u202ecod.exe\u2066"), "\\xc2\\x9b31m \\xe2\\x80\\xaecod.exe\\xe2\\x81\\xa6");
  EXPECT_EQ(printable("\x9b\xff"), "\\x9b\\xff");
  EXPECT_EQ(printable_lines("a\tb\n\x1b[2J\rc\n"), "a\tb\n\\x1b[2J\\x0dc\n");
}

TEST(TextTest, WhatMeansSomethingToXmlIsSpelledOut) {
  EXPECT_EQ(xml_text("a < b & \"c\" > \u00e9"), "a &lt; b &amp; &quot;c&quot; &gt; \u00e9");
  EXPECT_EQ(xml_text("\xff\n"), "\\xff\\n");
}

TEST(TextTest, LinesComeWithoutTheirNewlines) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines_of(""), Lines());
  EXPECT_EQ(lines_of("one"), Lines({"one"}));
  EXPECT_EQ(lines_of("one\n"), Lines({"one"}));
  EXPECT_EQ(lines_of("one\n\ntwo"), Lines({"one", "", "two"}));
}

TEST(TextTest, OneLineIsValidUtf8WithoutControlCharacters) {
  for (const char* good : {"", "scans 2026", "\u00e9\u20ac\U0001F600"}) EXPECT_TRUE(is_one_line(good)) << good;
  for (const char* bad : {"a\nb", "\x7f", "\xff\xfe", "\xc3", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\x80", "\xc2\x80", "\xe2\x28\xa1"})
    EXPECT_FALSE(is_one_line(bad)) << printable(bad);
}

}  // namespace
}  // namespace mdfs
