// Disks for another piece.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/piece_disks.h"

#include <gtest/gtest.h>

namespace mdfs::geometry {
namespace {

using Disks = std::vector<std::uint16_t>;

TEST(PieceDisksTest, TheWantedDiskComesFirstAndThenThoseWithMostRoom) {
  const std::vector<std::uint64_t> free = {5, 9, 9, 0};
  EXPECT_EQ(disks_by_room(0, free), (Disks{1, 2, 0, 3}));
  EXPECT_EQ(disks_by_room(0, free, 3), (Disks{3, 1, 2, 0}));
  EXPECT_EQ(disks_by_room(0b0010, free, 0), (Disks{0, 2, 3}));
}

TEST(PieceDisksTest, AWantedDiskThatIsTakenIsLeftOut) {
  const std::vector<std::uint64_t> free = {5, 9, 7};
  EXPECT_EQ(disks_by_room(0b001, free, 0), (Disks{1, 2}));
  EXPECT_EQ(disks_by_room(0b111, free, 0), Disks{});
}

}  // namespace
}  // namespace mdfs::geometry
