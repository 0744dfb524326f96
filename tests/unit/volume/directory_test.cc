// Reading directories while entries come and go.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <map>
#include <set>

#include "fixture.h"

namespace mdfs::volume {
namespace {

using DirectoryTest = VolumeTest;

TEST_F(DirectoryTest, ReadsBeginWithDotAndDotDot) {
  const Ino d = make_directory("d");
  const auto entries = volume().read_directory(d, 0, 10);
  ASSERT_OK(entries);
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, ".");
  EXPECT_EQ((*entries)[0].ino, d);
  EXPECT_EQ((*entries)[1].name, "..");
  EXPECT_EQ((*entries)[1].ino, kRootIno);
}

TEST_F(DirectoryTest, EntriesThatStayAreSeenExactlyOnceWhileOthersComeAndGo) {
  const Ino d = make_directory("d");
  for (int i = 0; i < 500; ++i) make_file("stay" + std::to_string(i), d);
  for (int i = 0; i < 500; ++i) make_file("go" + std::to_string(i), d);
  std::map<std::string, int> seen;
  int turn = 0;
  for (std::uint64_t cookie = 0;; ++turn) {
    const auto entries = volume().read_directory(d, cookie, 13);
    ASSERT_OK(entries);
    if (entries->empty()) break;
    for (const DirectoryEntry& entry : *entries) ++seen[entry.name];
    cookie = entries->back().cookie;
    for (int i = 0; i < 20 && turn * 20 + i < 500; ++i) {
      EXPECT_OK(volume().unlink(d, "go" + std::to_string(turn * 20 + i)));
      make_file("come" + std::to_string(turn * 20 + i), d);
    }
  }
  for (int i = 0; i < 500; ++i) EXPECT_EQ(seen["stay" + std::to_string(i)], 1);
  for (const auto& [name, times] : seen) EXPECT_LE(times, 1) << name;
}

TEST_F(DirectoryTest, RenameWithinADirectoryShowsOneOfTheNames) {
  const Ino d = make_directory("d");
  for (int i = 0; i < 50; ++i) make_file("f" + std::to_string(i), d);
  EXPECT_OK(volume().rename(d, "f7", d, "g7", RenameMode::kReplace));
  EXPECT_EQ(names(d).size(), 50u);
}

TEST_F(DirectoryTest, AHundredThousandEntriesAreMadeListedAndRemoved) {
  constexpr int kEntries = 100'000;
  const Ino d = make_directory("d");
  const auto seconds_since = [](auto start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kEntries; ++i) volume().forget(make_file("entry" + std::to_string(i), d), 1);
  RecordProperty("creates_per_second", std::to_string(kEntries / seconds_since(start)));
  start = std::chrono::steady_clock::now();
  EXPECT_EQ(names(d, 1000).size(), std::size_t{kEntries});
  RecordProperty("list_seconds", std::to_string(seconds_since(start)));
  EXPECT_ERROR(Errc::kNotEmpty, volume().remove_directory(kRootIno, "d"));
  for (int i = 0; i < kEntries; ++i) ASSERT_OK(volume().unlink(d, "entry" + std::to_string(i)));
  EXPECT_OK(volume().remove_directory(kRootIno, "d"));
}

}  // namespace
}  // namespace mdfs::volume
