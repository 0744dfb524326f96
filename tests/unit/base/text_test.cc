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

TEST(TextTest, AWordForAShellIsQuotedWhereACharacterMeansSomethingToIt) {
  EXPECT_EQ(shell_word("/disks/a-b_c.1:2@3"), "/disks/a-b_c.1:2@3");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's a disk"), "'it'\\''s a disk'");
  EXPECT_EQ(shell_word("$(rm *); `x` \"~\\\xc3\xa4"), "'$(rm *); `x` \"~\\\xc3\xa4'");
  EXPECT_EQ(shell_word("a b\n'\xff"), "$'a b\\x0a\\x27\\xff'");
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

TEST(TextTest, AShortenedTextKeepsItsBeginningItsEndAndWholeCharacters) {
  EXPECT_EQ(shortened("the commit failed: /disks/d0: write", 35), "the commit failed: /disks/d0: write");
  EXPECT_EQ(shortened("the commit failed: /disks/d0: write", 20), "the comm\u2026d0: write");
  EXPECT_EQ(shortened_start("/srv/disks/d0", 12), "\u2026/disks/d0");
  std::string text;
  for (int i = 0; i < 30; ++i) text += i % 2 == 0 ? "\u00e9" : "\U0001F600";
  for (std::size_t bytes = 16; bytes <= text.size() + 1; ++bytes) {
    const std::string cut = shortened(text, bytes), end = shortened_start(text, bytes);
    EXPECT_TRUE(is_one_line(cut)) << bytes;
    EXPECT_TRUE(is_one_line(end)) << bytes;
    EXPECT_LE(cut.size(), bytes);
    EXPECT_GE(cut.size() + 6, std::min(bytes, text.size())) << "no more is left out than must be";
    EXPECT_EQ(cut.find(kEllipsis) != std::string::npos, bytes < text.size());
    EXPECT_TRUE(end.ends_with("\U0001F600"));
  }
}

}  // namespace
}  // namespace mdfs
