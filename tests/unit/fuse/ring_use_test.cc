// The choice between rings and /dev/fuse.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ring_use.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "fuse/processors.h"
#include "temp_dir.h"

namespace mdfs::fuse {
namespace {

class RingUseTest : public testing::Test {
 protected:
  void set(const char* text) { std::ofstream(path_) << text; }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool offered(RingUse use) const {
    const auto answer = kernel_offers_rings(use, path_);
    EXPECT_TRUE(answer.ok());
    return answer.ok() && *answer;
  }
  test::TempDir folder_;
  const std::string path_ = (folder_.path() / "enable_uring").string();
};

TEST_F(RingUseTest, AutoSwitchesRingsOnWhereThereAreSome) {
  EXPECT_FALSE(offered(RingUse::kAuto));
  set("N\n");
  EXPECT_TRUE(offered(RingUse::kAuto));
  EXPECT_EQ(text()[0], 'Y');
  EXPECT_TRUE(offered(RingUse::kAuto));
}

// A file that begins with another letter, and that nobody can write.
TEST(RingUse, AutoDoesWithoutRingsThatItCannotSwitchOn) {
  const std::string parameter = "/proc/version";
  const auto answer = kernel_offers_rings(RingUse::kAuto, parameter);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(*answer);
  EXPECT_FALSE(kernel_offers_rings(RingUse::kOn, parameter).ok());
}

TEST_F(RingUseTest, OnSwitchesThemOnAndNamesAKernelWithout) {
  const auto without = kernel_offers_rings(RingUse::kOn, path_);
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().code, Errc::kNotSupported);
  EXPECT_NE(without.error().where.find("io_uring=on"), std::string::npos);
  set("N\n");
  EXPECT_TRUE(offered(RingUse::kOn));
  EXPECT_EQ(text()[0], 'Y');
}

TEST_F(RingUseTest, OffTakesNone) {
  set("Y\n");
  EXPECT_FALSE(offered(RingUse::kOff));
}

TEST(Processors, AListIsNumbersAndRanges) {
  const auto numbers = [](const char* list) { return parse_processors(list).value(); };
  EXPECT_EQ(numbers("0\n"), (std::vector<unsigned>{0}));
  EXPECT_EQ(numbers("0-3"), (std::vector<unsigned>{0, 1, 2, 3}));
  EXPECT_EQ(numbers("0-1,4,6-7\n"), (std::vector<unsigned>{0, 1, 4, 6, 7}));
}

TEST(Processors, OtherTextIsRefused) {
  for (const char* list : {"", "\n", "a", "1-", "-1", "3-1", "0,0", "0-2,1", "0,", "0-99999999", "8192", "0 1"})
    EXPECT_FALSE(parse_processors(list).ok()) << list;
}

}  // namespace
}  // namespace mdfs::fuse
