// Names whose cookies are taken: where they go, how they are found, and that they stay there.
// SPDX-License-Identifier: Apache-2.0
#include "volume/records.h"

#include <gtest/gtest.h>

#include "fake_store.h"
#include "fixture.h"

namespace mdfs::volume {
namespace {

constexpr format::NameSecret kSecret{1, 2};  // of the store

// A directory whose cookies are taken from the first one of a name on, by names that lie there against the rules.
class CrowdedDirectoryTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kTaken = 1000;  // more than any one number of names of one hash was room for
  static constexpr std::string_view kName = "scan";

  CrowdedDirectoryTest() {
    EXPECT_OK(store_.transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
      for (std::uint64_t i = 0; i < kTaken; ++i)
        put_entry(transaction, kRootIno, first_ + i, {100 + i, 8, "other" + std::to_string(i)});
      return {};
    }));
  }

  NamePlace find() {
    const auto place = find_name(store_, kSecret, kRootIno, kName);
    EXPECT_OK(place);
    return place.ok() ? *place : NamePlace{};
  }
  void put(const NamePlace& place) {
    EXPECT_OK(store_.transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
      MDFS_TRY_ASSIGN(format::Inode directory, read_inode(transaction, kRootIno));
      directory.reach = std::max(directory.reach, place.reach);
      put_entry(transaction, kRootIno, place.cookie, {7, 8, std::string(kName)});
      put_inode(transaction, kRootIno, directory);
      return {};
    }));
  }
  void erase(std::uint64_t cookie) {
    EXPECT_OK(store_.transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
      erase_entry(transaction, kRootIno, cookie);
      return {};
    }));
  }

  test::FakeStore fake_;
  store::Store& store_ = fake_;
  const std::uint64_t first_ = format::first_cookie(kSecret, kName);
};

TEST_F(CrowdedDirectoryTest, ANameGoesBehindAllThatTakeItsPlace) {
  const NamePlace place = find();
  EXPECT_FALSE(place.entry);
  EXPECT_EQ(place.cookie, first_ + kTaken);
  EXPECT_EQ(place.reach, kTaken);
}

TEST_F(CrowdedDirectoryTest, ANameIsFoundWhereItWentWhateverGoesBeforeIt) {
  put(find());
  for (const std::uint64_t gone : {std::uint64_t{0}, kTaken / 2, kTaken - 1}) {
    erase(first_ + gone);
    const NamePlace place = find();
    ASSERT_TRUE(place.entry) << gone;
    EXPECT_EQ(place.cookie, first_ + kTaken) << gone;
  }
  for (std::uint64_t i = 0; i < kTaken; ++i) erase(first_ + i);
  EXPECT_TRUE(find().entry);
}

TEST_F(CrowdedDirectoryTest, AFreedCookieIsTakenAgainAndTheReachStays) {
  put(find());
  erase(first_ + kTaken);
  erase(first_ + 5);
  const NamePlace place = find();
  EXPECT_FALSE(place.entry);
  EXPECT_EQ(place.cookie, first_ + 5);
  put(place);
  EXPECT_EQ(find().cookie, first_ + 5);
  EXPECT_EQ(read_inode(store_, kRootIno)->reach, kTaken);
}

TEST(NameSecretTest, TwoVolumesPutTheSameNameInDifferentPlaces) {
  EXPECT_NE(format::first_cookie({1, 2}, "scan"), format::first_cookie({1, 3}, "scan"));
}

}  // namespace
}  // namespace mdfs::volume
