// Claims about numbers and sizes on the command line.
// SPDX-License-Identifier: Apache-2.0
#include "support/text.h"

#include <gtest/gtest.h>

#include <string>

namespace mdfs::tools {
namespace {

TEST(SizeTextTest, SuffixesArePowersOf1024) {
  EXPECT_EQ(*parse_size("0", "size"), 0u);
  EXPECT_EQ(*parse_size("65536", "size"), 65536u);
  EXPECT_EQ(*parse_size("64K", "size"), 65536u);
  EXPECT_EQ(*parse_size("64k", "size"), 65536u);
  EXPECT_EQ(*parse_size("64KiB", "size"), 65536u);
  EXPECT_EQ(*parse_size("1.5G", "size"), 1610612736u);
  EXPECT_EQ(*parse_size("2T", "size"), std::uint64_t{2} << 40);
  EXPECT_EQ(*parse_size("7MB", "size"), 7u << 20);
}

TEST(SizeTextTest, NonsenseIsRefusedWithTheOptionsName) {
  for (const char* text :
       {"", "-1", "K", "12X", "1.", "1.5", "0x10", "1 G", "1Kb2", " 4", "4 ", "1e3", "1.0000000001G"}) {
    const auto size = parse_size(text, "--size");
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_NE(size.error().where.find("--size"), std::string::npos) << text;
  }
}

TEST(SizeTextTest, MoreThan64BitsIsOverflow) {
  for (const char* text : {"16777216T", "18446744073709551616", "16E", "99999999999999999999999P"}) {
    EXPECT_EQ(parse_size(text, "size").error().code, Errc::kOverflow) << text;
    EXPECT_EQ(parse_size(text, "--size").error().where,
              std::string("--size '") + text + "': must be below 16E (2^64 bytes)");
  }
  EXPECT_EQ(*parse_size("18446744073709551615", "size"), UINT64_MAX);
}

TEST(SizeTextTest, SizesForPeopleHaveThreeDigits) {
  EXPECT_EQ(format_size(512), "512 bytes");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(std::uint64_t{17} << 30), "17 GiB");
  EXPECT_EQ(format_size((1u << 20) - 1), "1 MiB");
}

}  // namespace
}  // namespace mdfs::tools
