// Which inodes stay in memory, and how much of them.
// SPDX-License-Identifier: Apache-2.0
#include "volume/inode_table.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <set>
#include <vector>

namespace mdfs::volume {
namespace {

void look_up(InodeTable& table, Ino ino) {
  const Pin pin = table.pin(ino);
  table.add_lookup(*pin);
}

TEST(InodeTableTest, LookUpsAreCountedWhateverIsDoneMeanwhile) {
  InodeTable table([](Ino) { FAIL() << "nothing is unlinked"; });
  look_up(table, 7);
  look_up(table, 7);
  EXPECT_EQ(table.size(), 1u);
  {
    const Pin pin = table.find(7);
    ASSERT_TRUE(pin);
    EXPECT_TRUE(table.is_held(*pin));
    look_up(table, 7);
    table.drop_lookups(7, 1);
  }
  table.drop_lookups(7, 1);
  EXPECT_EQ(table.size(), 1u) << "two of three look-ups are gone";
  table.drop_lookups(7, 1);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_FALSE(table.find(7));
}

TEST(InodeTableTest, AnUnlinkedInodeIsFreedWithItsLastLookUp) {
  std::set<Ino> freed;
  InodeTable table([&](Ino ino) { freed.insert(ino); });
  look_up(table, 7);
  table.find(7)->unlinked = true;
  look_up(table, 7);
  table.drop_lookups(7, 1);
  EXPECT_TRUE(freed.empty());
  table.drop_lookups(7, 1);
  EXPECT_EQ(freed, (std::set<Ino>{7}));
}

TEST(InodeTableTest, WhatIsNewerThanTheTreeStaysWithItsState) {
  InodeTable table([](Ino) {});
  look_up(table, 7);
  {
    const Pin pin = table.pin(7);
    pin->mtime_ns = 5;
    pin->times_dirty = true;
  }
  EXPECT_EQ(table.pin(7)->mtime_ns, 5);
  table.drop_lookups(7, 1);
  EXPECT_EQ(table.size(), 1u);
  table.pin(7)->times_dirty = false;
  EXPECT_EQ(table.size(), 0u);
}

TEST(InodeTableTest, AnInodeThatIsOnlyLookedUpTakesLessThan100Bytes) {
  if (std::getenv("MDFS_SANITIZED") != nullptr) GTEST_SKIP() << "the sanitizer's memory";
  constexpr std::size_t kInodes = 200000;
  InodeTable table([](Ino) {});
  const std::size_t before = ::mallinfo2().uordblks;
  for (Ino ino = 2; ino < kInodes + 2; ++ino) look_up(table, ino);
  EXPECT_EQ(table.size(), kInodes);
  EXPECT_LT(::mallinfo2().uordblks - before, 100 * kInodes);
}

}  // namespace
}  // namespace mdfs::volume
