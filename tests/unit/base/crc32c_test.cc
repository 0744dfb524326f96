// CRC-32C against its published check value.
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <gtest/gtest.h>

namespace mdfs {
namespace {

TEST(Crc32cTest, MatchesTheCheckValueOfTheStandard) { EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u); }

TEST(Crc32cTest, ContinuesAcrossASplitAtEveryPlace) {
  const std::string_view text = "123456789";
  for (std::size_t i = 0; i <= text.size(); ++i)
    EXPECT_EQ(crc32c(as_bytes(text.substr(i)), crc32c(as_bytes(text.substr(0, i)))), 0xe3069283u);
}

TEST(Crc32cTest, OfNothingIsZero) { EXPECT_EQ(crc32c({}), 0u); }

}  // namespace
}  // namespace mdfs
