// Profiles: the built-in ones are valid, and every mistake is named with its line and what is allowed.
// SPDX-License-Identifier: Apache-2.0
#include "meter/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace mdfs::meter {
namespace {

using testing::HasSubstr;

const std::string kGood = R"(name = "mine"
file = "64 MiB"
transfer = ["4 KiB", "1 MiB"]
block = "64 KiB"
)";

std::string error_of(const std::string& text) {
  const auto profile = parse_profile(text, "mine.toml");
  return profile.ok() ? "no error" : profile.error().where;
}

// kGood with another line in place of the one of that field, or at its end.
std::string error_with(const std::string& line) {
  const std::string field = line.substr(0, line.find(' '));
  std::string text;
  for (std::size_t at = 0; at < kGood.size();) {
    const std::size_t end = kGood.find('\n', at) + 1;
    if (!kGood.substr(at, end - at).starts_with(field + " ")) text += kGood.substr(at, end - at);
    at = end;
  }
  return error_of(text + line + "\n");
}

TEST(ProfileTest, TheBuiltInOnesAreValidAndBearTheirNames) {
  ASSERT_EQ(built_in_profiles().size(), 4u);
  for (const BuiltIn& built_in : built_in_profiles()) {
    const auto profile = find_profile(std::string(built_in.name));
    ASSERT_TRUE(profile.ok()) << profile.error().where;
    EXPECT_EQ(profile->name, built_in.name);
    EXPECT_FALSE(profile->description.empty());
    EXPECT_TRUE(profile->limits.late || profile->limits.gain) << "a ramp needs a limit";
  }
  EXPECT_EQ(find_profile("record")->writes, 1);
  EXPECT_EQ(find_profile("playout")->writes, 0);
  EXPECT_EQ(find_profile("edit")->transfer_bytes, (Between<std::uint64_t>{4096, 10u << 20}));
}

TEST(ProfileTest, FieldsThatAreLeftOutHaveTheirDefaults) {
  const auto profile = parse_profile(kGood, "mine.toml");
  ASSERT_TRUE(profile.ok()) << profile.error().where;
  Profile expected;
  expected.name = "mine";
  expected.file_bytes = 64u << 20;
  expected.transfer_bytes = {4096, 1u << 20};
  expected.block_bytes = {65536, 65536};
  EXPECT_EQ(*profile, expected);
}

TEST(ProfileTest, ARateGivesADeadlineOfOnePeriod) {
  EXPECT_DOUBLE_EQ(parse_profile(kGood + "rate = 25\n", "x")->deadline_s, 0.04);
  EXPECT_DOUBLE_EQ(parse_profile(kGood + "rate = 25\ndeadline = \"200 ms\"\n", "x")->deadline_s, 0.2);
}

TEST(ProfileTest, MistakesAreNamedWithTheirPlaceAndWhatIsAllowed) {
  EXPECT_EQ(error_with("speed = 3"), "mine.toml:5: speed: is not a field of a profile");
  EXPECT_EQ(error_with("files = 0"), "mine.toml:5: files: 0 is not in 1..1024");
  EXPECT_EQ(error_with("files = \"4\""), "mine.toml:5: files: must be a whole number");
  EXPECT_EQ(error_with("file = 4096"),
            "mine.toml:4: file: is no size; write a multiple of 4 KiB from 4 KiB to 16 TiB, "
            "such as \"1 MiB\"");
  EXPECT_THAT(error_with("file = \"5 kB\""), HasSubstr("\"5 kB\" is not allowed; write a multiple of 4 KiB"));
  EXPECT_THAT(error_with("file = \"1 PB\""), HasSubstr("from 4 KiB to 16 TiB"));
  EXPECT_THAT(error_with("block = \"128 MiB\""), HasSubstr("from 4 KiB to 64 MiB"));
  EXPECT_THAT(error_with("transfer = [\"8 KiB\", \"4 KiB\"]"), HasSubstr("not above the second"));
  EXPECT_THAT(error_with("transfer = [\"8 KiB\"]"), HasSubstr("the least and the most"));
  EXPECT_THAT(error_with("writes = 1.5"), HasSubstr("writes: is not in 0..1"));
  EXPECT_THAT(error_with("order = \"any\""), HasSubstr(R"(one of "sequential", "random", "strided", "backwards")"));
  EXPECT_THAT(error_with("sync = \"all\""), HasSubstr(R"(one of "none", "transfer", "end")"));
  EXPECT_THAT(error_with("order = \"strided\""), HasSubstr("needs the field stride"));
  EXPECT_THAT(error_with("stride = \"8 MiB\""), HasSubstr("needs order = \"strided\""));
  EXPECT_THAT(error_with("begin = \"empty\""), HasSubstr("needs writes = 1"));
  EXPECT_THAT(error_with("think = \"2 hours\""), HasSubstr("from 0 s to 3600 s"));
  EXPECT_THAT(error_with("think = \"4000 s\""), HasSubstr("from 0 s to 3600 s"));
  EXPECT_THAT(error_with("rate = 0"), HasSubstr("rate: is not in 0.001..10000"));
  EXPECT_THAT(error_with("deadline = \"1 s\""), HasSubstr("needs the field rate"));
  EXPECT_THAT(error_of(kGood + "rate = 24\nthink = \"1 s\"\n"), HasSubstr("think: stands beside rate"));
  EXPECT_THAT(error_of(kGood + "[until]\nlate = 0\n"), HasSubstr("until.late: needs the field rate"));
  EXPECT_THAT(error_of(kGood + "[until]\np98 = \"1 s\"\n"), HasSubstr("until.p98: is not a field"));
  EXPECT_THAT(error_of(kGood + "until = 3\n"), HasSubstr("must be a table"));
  EXPECT_THAT(error_of("name = "), HasSubstr("mine.toml:1: "));
  EXPECT_EQ(error_of("file = \"1 MiB\"\n"), "mine.toml:1: name: is missing");
}

TEST(ProfileTest, ANameThatIsNeitherAProfileNorAFileIsNotFound) {
  const auto profile = find_profile("/nowhere/profile");
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().code, Errc::kNotFound);
  EXPECT_THAT(profile.error().where, HasSubstr("record, edit, playout, archive"));
}

RC_GTEST_PROP(ProfileTest, AnyTextIsAProfileOrAnError, ()) {
  // Damaged profiles, which reach deeper than random bytes.
  std::string text(built_in_profiles()[*rc::gen::inRange<std::size_t>(0, 4)].toml);
  for (int i = *rc::gen::inRange(1, 8); i > 0; --i)
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  const auto profile = parse_profile(text, "x");
  if (profile.ok()) return;
  RC_ASSERT(profile.error().code == Errc::kInvalidArgument);
  RC_ASSERT(profile.error().where.starts_with("x:"));
}

}  // namespace
}  // namespace mdfs::meter
