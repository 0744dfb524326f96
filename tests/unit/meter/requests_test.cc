// The transfers of clients: inside of their files, in the order of the profile, the same for the same seed.
// SPDX-License-Identifier: Apache-2.0
#include "meter/requests.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace mdfs::meter {
namespace {

constexpr std::uint64_t kKiB = 1024;

std::uint64_t any_size(std::uint64_t most_units) {
  return *rc::gen::inRange<std::uint64_t>(1, most_units) * kAlignment;
}

Between<std::uint64_t> any_range(std::uint64_t most_units) {
  const std::uint64_t a = any_size(most_units), b = any_size(most_units);
  return {std::min(a, b), std::max(a, b)};
}

Profile any_profile() {
  Profile profile;
  profile.files = *rc::gen::inRange(1U, 5U);
  profile.file_bytes = any_size(300);
  profile.shared = *rc::gen::arbitrary<bool>();
  profile.order = *rc::gen::element(Order::kSequential, Order::kRandom, Order::kStrided, Order::kBackwards);
  profile.transfer_bytes = any_range(400);
  profile.block_bytes = any_range(100);
  profile.stride_bytes = profile.transfer_bytes.high + any_size(100);
  profile.writes = *rc::gen::element(0.0, 0.5, 1.0);
  profile.random = *rc::gen::element(0.0, 0.3, 1.0);
  profile.think_s = {0.5, 1};
  if (*rc::gen::arbitrary<bool>()) profile.rate = 25;
  return profile;
}

FileSet set_of(const Profile& profile) { return {profile.files, profile.file_bytes}; }

RC_GTEST_PROP(RequestsTest, EveryTransferLiesAlignedInsideOfAFile, (std::uint64_t seed)) {
  const Profile profile = any_profile();
  RequestSource source(profile, set_of(profile), seed, 3);
  double due_s = -1;
  for (int i = 0; i < 200; ++i) {
    const PlannedTransfer transfer = source.next();
    RC_ASSERT(transfer.file < profile.files);
    RC_ASSERT(transfer.bytes >= kAlignment);
    RC_ASSERT(transfer.offset_bytes + transfer.bytes <= profile.file_bytes);
    RC_ASSERT((transfer.offset_bytes | transfer.bytes | transfer.block_bytes) % kAlignment == 0);
    RC_ASSERT(transfer.block_bytes >= kAlignment);
    RC_ASSERT(transfer.block_bytes <= profile.block_bytes.high);
    RC_ASSERT(transfer.blocks() >= 1);
    RC_ASSERT((transfer.write == (profile.writes == 1) || profile.writes == 0.5));
    RC_ASSERT((transfer.sequential || transfer.blocks() == 1));
    RC_ASSERT((transfer.think_s >= 0.5 && transfer.think_s <= 1));
    RC_ASSERT(transfer.due_s.has_value() == profile.rate.has_value());
    if (transfer.due_s) RC_ASSERT(*transfer.due_s > due_s);
    due_s = transfer.due_s.value_or(due_s);
  }
}

bool same(const PlannedTransfer& a, const PlannedTransfer& b) {
  return a.file == b.file && a.offset_bytes == b.offset_bytes && a.bytes == b.bytes && a.write == b.write &&
         a.block_bytes == b.block_bytes && a.think_s == b.think_s;
}

RC_GTEST_PROP(RequestsTest, TheSeedAndTheClientDecide, (std::uint64_t seed)) {
  const Profile profile = any_profile();
  RequestSource one(profile, set_of(profile), seed, 0);
  RequestSource again(profile, set_of(profile), seed, 0);
  RequestSource other(profile, set_of(profile), seed, 1);
  bool differs = false;
  for (int i = 0; i < 50; ++i) {
    const PlannedTransfer transfer = one.next();
    RC_ASSERT(same(transfer, again.next()));
    differs = differs || !same(transfer, other.next());
  }
  RC_ASSERT(differs);
}

// How often each block of all files is touched, until the client has been through all of them once.
std::vector<unsigned> touched(const Profile& profile, std::uint64_t seed) {
  const std::uint64_t of_file = profile.file_bytes / kAlignment;
  std::vector<unsigned> times(of_file * profile.files);
  RequestSource source(profile, set_of(profile), seed, 0);
  for (std::uint64_t units = 0; units < times.size();) {
    const PlannedTransfer transfer = source.next();
    for (std::uint64_t i = 0; i < transfer.bytes / kAlignment; ++i)
      ++times[transfer.file * of_file + transfer.offset_bytes / kAlignment + i];
    units += transfer.bytes / kAlignment;
  }
  return times;
}

RC_GTEST_PROP(RequestsTest, OrdersTouchEveryByteOnceBeforeAnyTwice, (std::uint64_t seed)) {
  Profile profile = any_profile();
  profile.random = 0;
  profile.shared = false;
  profile.order = *rc::gen::element(Order::kSequential, Order::kStrided, Order::kBackwards);
  if (profile.order == Order::kStrided) {
    profile.transfer_bytes.low = profile.transfer_bytes.high;
    profile.stride_bytes = profile.transfer_bytes.high * *rc::gen::inRange<std::uint64_t>(1, 6);
  }
  for (const unsigned times : touched(profile, seed)) RC_ASSERT(times == 1U);
}

Profile plain(Order order) {
  Profile profile;
  profile.files = 2;
  profile.file_bytes = 32 * kKiB;
  profile.order = order;
  profile.transfer_bytes = {8 * kKiB, 8 * kKiB};
  profile.block_bytes = {8 * kKiB, 8 * kKiB};
  profile.stride_bytes = 16 * kKiB;
  return profile;
}

std::vector<std::uint64_t> first_offsets(const Profile& profile, int count) {
  RequestSource source(profile, set_of(profile), 1, 0);
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < count; ++i) {
    const PlannedTransfer transfer = source.next();
    offsets.push_back((transfer.file * profile.file_bytes + transfer.offset_bytes) / kKiB);
  }
  return offsets;
}

TEST(RequestsTest, TheOrdersAre) {
  using Offsets = std::vector<std::uint64_t>;
  EXPECT_EQ(first_offsets(plain(Order::kSequential), 9), (Offsets{0, 8, 16, 24, 32, 40, 48, 56, 0}));
  EXPECT_EQ(first_offsets(plain(Order::kBackwards), 5), (Offsets{24, 16, 8, 0, 56}));
  EXPECT_EQ(first_offsets(plain(Order::kStrided), 5), (Offsets{0, 16, 8, 24, 32}));
}

TEST(RequestsTest, OneBlockInOrderIsSequentialAndElsewhereRandom) {
  Profile profile = plain(Order::kSequential);
  EXPECT_TRUE(RequestSource(profile, set_of(profile), 1, 0).next().sequential);
  profile.random = 1;
  EXPECT_FALSE(RequestSource(profile, set_of(profile), 1, 0).next().sequential);
  profile = plain(Order::kStrided);
  EXPECT_FALSE(RequestSource(profile, set_of(profile), 1, 0).next().sequential);
  profile.block_bytes = {4 * kKiB, 4 * kKiB};
  EXPECT_TRUE(RequestSource(profile, set_of(profile), 1, 0).next().sequential) << "two blocks";
}

TEST(RequestsTest, FilesThatBeginEmptyAreEmptiedBeforeTheirFirstByte) {
  Profile profile = plain(Order::kSequential);
  profile.begin = Begin::kEmpty;
  RequestSource source(profile, set_of(profile), 1, 0);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(source.next().empties, i % 4 == 0) << i;
}

TEST(RequestsTest, SharesAreThoseOfTheProfile) {
  Profile profile = *find_profile("edit");
  RequestSource source(profile, set_of(profile), 7, 0);
  int writes = 0, singles = 0;
  constexpr int kCount = 10'000;
  for (int i = 0; i < kCount; ++i) {
    const PlannedTransfer transfer = source.next();
    writes += transfer.write ? 1 : 0;
    singles += transfer.sequential ? 0 : 1;
  }
  EXPECT_NEAR(writes, kCount / 2, kCount / 20);
  EXPECT_GT(singles, kCount / 10 - kCount / 50);
  EXPECT_LT(singles, kCount / 5) << "some of the others are smaller than a block";
}

TEST(RequestsTest, FilesShrinkToTheSizeThatIsAllowed) {
  Profile profile = plain(Order::kSequential);
  EXPECT_EQ(files_within(profile, 3, 1u << 30)->file_bytes, 32 * kKiB);
  const auto small = files_within(profile, 3, 100 * kKiB);
  EXPECT_EQ(small->file_bytes, 16 * kKiB);
  EXPECT_EQ(all_bytes(profile, *small, 3), 96 * kKiB);
  EXPECT_FALSE(files_within(profile, 3, 6 * kAlignment - 1).ok());
  profile.shared = true;
  EXPECT_EQ(all_bytes(profile, *files_within(profile, 3, 100 * kKiB), 3), 64 * kKiB);
}

}  // namespace
}  // namespace mdfs::meter
