// Quantities: units are demanded, MB is not MiB, and what is wrong is said.
// SPDX-License-Identifier: Apache-2.0
#include "model/quantity.h"

#include <gtest/gtest.h>

#include <utility>

namespace mdfs::model {
namespace {

TEST(QuantityTest, TimesAreReadInSeconds) {
  EXPECT_DOUBLE_EQ(parse_time_s("20 ms").value(), 0.020);
  EXPECT_DOUBLE_EQ(parse_time_s("0.5us").value(), 0.5e-6);
  EXPECT_DOUBLE_EQ(parse_time_s(" 80 ns").value(), 80e-9);
  EXPECT_DOUBLE_EQ(parse_time_s("0 s").value(), 0);
}

TEST(QuantityTest, MegabytesAndMebibytesDiffer) {
  EXPECT_DOUBLE_EQ(parse_size_bytes("1 MB").value(), 1e6);
  EXPECT_DOUBLE_EQ(parse_size_bytes("1 MiB").value(), 1048576);
  EXPECT_DOUBLE_EQ(parse_rate_bytes_per_s("2.28 MiB/s").value(), 2.28 * 1048576);
  EXPECT_DOUBLE_EQ(parse_rate_bytes_per_s("10 Gbit/s").value(), 1.25e9);
  EXPECT_DOUBLE_EQ(parse_rate_bytes_per_s("3 B / s").ok(), false);
}

TEST(QuantityTest, ANumberWithoutAUnitIsAnError) {
  const auto bare = parse_time_s("20");
  ASSERT_FALSE(bare.ok());
  EXPECT_NE(bare.error().where.find("no unit"), std::string::npos) << bare.error().message();
}

TEST(QuantityTest, AmbiguousUnitsAreRefusedWithTheChoice) {
  for (const char* text : {"64 KB", "64 K", "3 M"}) {
    const auto size = parse_size_bytes(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_NE(size.error().where.find("KiB"), std::string::npos);
  }
}

TEST(QuantityTest, NonsenseIsRefused) {
  for (const char* text : {"", "ms", "-3 ms", "nan ms", "inf ms", "3 parsecs", "3 ms ms", "3 MB", "3 MB/s"})
    EXPECT_FALSE(parse_time_s(text).ok()) << text;
  for (const char* text : {"0 MB/s", "3 MB", "3 ms/s", "3 MB/sec"})
    EXPECT_FALSE(parse_rate_bytes_per_s(text).ok()) << text;
}

TEST(QuantityTest, ANumberThatIsNoneOfAQuantityIsRefusedByItsReason) {
  for (const auto& [text, why] : {std::pair{"-1 ms", "negative"},
                                  {"-1e-9 ms", "negative"},
                                  {"inf ms", "finite"},
                                  {"nan ms", "finite"},
                                  {"1e400 ms", "out of range"},
                                  {"x ms", "missing"}}) {
    const auto time = parse_time_s(text);
    ASSERT_FALSE(time.ok()) << text;
    EXPECT_NE(time.error().where.find(why), std::string::npos) << time.error().where;
    EXPECT_NE(time.error().where.find(text), std::string::npos) << time.error().where;
  }
}

}  // namespace
}  // namespace mdfs::model
