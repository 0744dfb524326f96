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

std::vector<bool> choose(const std::vector<format::StoredExtent>& extents, const std::vector<double>& queued) {
  std::vector<PieceToRead> pieces;
  for (const format::StoredExtent& one : extents) pieces.push_back({&one, kExtent});
  return choose_pieces(pieces, queued);
}

TEST(PieceChoiceTest, IdleDisksReadFirstPieces) {
  EXPECT_EQ(choose({extent(0, 100, 1, 900), extent(1, 100, 2, 900), extent(2, 100, 0, 900)}, {0, 0, 0}),
            std::vector<bool>({false, false, false}));
}

TEST(PieceChoiceTest, ADiskWithALongerQueueIsPassedBy) {
  EXPECT_EQ(choose({extent(0, 100, 1, 900)}, {kRequestBytes, 0}), std::vector<bool>({true}));
  EXPECT_EQ(choose({extent(0, 100, 1, 900)}, {kRequestBytes, 2.0 * kRequestBytes}), std::vector<bool>({false}));
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
