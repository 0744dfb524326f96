// SPDX-License-Identifier: Apache-2.0
#include "engine/read/piece_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace mdfs::engine {
namespace {

constexpr std::uint64_t kExtent = 64u << 10;

format::StoredExtent extent(std::uint16_t disk, std::uint64_t block, std::uint16_t copy_disk,
                            std::uint64_t copy_block) {
  format::StoredExtent made;
  made.runs = {{disk, block, 16}};
  made.copy = {{copy_disk, copy_block, 16}};
  made.stored_bytes = kExtent;
  return made;
}

std::vector<bool> choose(const std::vector<format::StoredExtent>& extents, const std::vector<double>& queued,
                         const std::vector<double>& slowness = {}) {
  std::vector<PieceToRead> pieces;
  for (const format::StoredExtent& one : extents) pieces.push_back({&one, kExtent});
  std::vector<DiskToRead> disks;
  for (std::size_t i = 0; i < queued.size(); ++i) disks.push_back({queued[i], slowness.empty() ? 1 : slowness[i]});
  return choose_pieces(pieces, disks);
}

TEST(PieceChoiceTest, IdleDisksReadFirstPieces) {
  EXPECT_EQ(choose({extent(0, 100, 1, 900), extent(1, 100, 2, 900), extent(2, 100, 0, 900)}, {0, 0, 0}),
            std::vector<bool>({false, false, false}));
}

TEST(PieceChoiceTest, ADiskWithALongerQueueIsPassedBy) {
  EXPECT_EQ(choose({extent(0, 100, 1, 900)}, {kRequestBytes, 0}), std::vector<bool>({true}));
  EXPECT_EQ(choose({extent(0, 100, 1, 900)}, {kRequestBytes, 2.0 * kRequestBytes}), std::vector<bool>({false}));
}

TEST(PieceChoiceTest, ASlowDiskIsReadAsLittleAsItsShareOfTheTime) {
  EXPECT_EQ(choose({extent(0, 100, 1, 900)}, {0, 0}, {4, 1}), std::vector<bool>({true}));
  EXPECT_EQ(choose({extent(1, 100, 0, 900)}, {0, 0}, {4, 1}), std::vector<bool>({false}));
  // Ten extents of two disks, of which one takes four times as long: it reads two of them.
  std::vector<format::StoredExtent> extents;
  for (std::uint16_t i = 0; i < 10; ++i)
    extents.push_back(extent(i % 2, 100 + 100u * i, static_cast<std::uint16_t>(1 - i % 2), 5000 + 100u * i));
  const std::vector<bool> chosen = choose(extents, {0, 0}, {4, 1});
  unsigned from_slow = 0;
  for (std::uint16_t i = 0; i < 10; ++i) from_slow += (i % 2 == 0) != chosen[i] ? 1 : 0;
  EXPECT_EQ(from_slow, 2u);
  // A short queue of a slow disk is a long one.
  EXPECT_EQ(choose({extent(0, 100, 1, 900)}, {kRequestBytes, 2.0 * kRequestBytes}, {4, 1}), std::vector<bool>({true}));
}

TEST(PieceChoiceTest, ALostDiskIsNotRead) {
  const double lost = std::numeric_limits<double>::infinity();
  EXPECT_EQ(choose({extent(0, 100, 1, 900), extent(1, 100, 0, 900)}, {lost, 0}), std::vector<bool>({true, false}));
}

TEST(PieceChoiceTest, ExtentsOfOneDiskThatLieApartAreReadFromTwo) {
  const std::vector<bool> chosen = choose({extent(0, 100, 1, 900), extent(0, 500, 1, 700)}, {0, 0});
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), true), 1);
}

TEST(PieceChoiceTest, ShortExtentsThatLieTogetherAreReadTogether) {
  // Two requests of one extent each would end no earlier than one of both, and cost the other disk its time.
  EXPECT_EQ(choose({extent(0, 100, 1, 900), extent(0, 116, 2, 700)}, {0, 0, 0}), std::vector<bool>({false, false}));
}

}  // namespace
}  // namespace mdfs::engine
