// Boxes with zeros around the samples, against a plain array.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/padded_box.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "generators.h"

namespace mdfs::geometry {
namespace {

// Any rank, padding and piece: the bytes of a plain array into which the inside is copied, byte by byte.
RC_GTEST_PROP(PaddedBoxTest, APieceHasTheBytesInsideAtTheirPlacesAndZerosAround, ()) {
  PaddedBox box;
  box.rank = testing::any_rank();
  box.inside = testing::any_lengths(box.rank, 1, 6);
  box.before = testing::any_lengths(box.rank, 0, 4);
  const Coord after = testing::any_lengths(box.rank, 0, 4);
  for (unsigned axis = 0; axis < box.rank; ++axis) box.length[axis] = box.before[axis] + box.inside[axis] + after[axis];
  ByteVector expected(testing::volume(box.rank, box.length));
  ByteVector inside(testing::volume(box.rank, box.inside));
  for (std::size_t i = 0; i < inside.size(); ++i) inside[i] = static_cast<std::byte>(i % 255 + 1);
  std::size_t next = 0;
  testing::each_index(box.rank, box.before, box.inside,
                      [&](const Coord& at) { expected[testing::linear(box.rank, box.length, at)] = inside[next++]; });

  const auto offset = *rc::gen::inRange<std::size_t>(0, expected.size());
  ByteVector piece(*rc::gen::inRange<std::size_t>(0, expected.size() - offset + 1), std::byte{0x55});
  const Status status = read_padded(box, offset, piece, [&](std::uint64_t first, MutableBytes into) -> Status {
    RC_ASSERT(first + into.size() <= inside.size());
    std::copy_n(inside.begin() + static_cast<std::ptrdiff_t>(first), into.size(), into.begin());
    return {};
  });
  RC_ASSERT(status.ok());
  RC_ASSERT(std::equal(piece.begin(), piece.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset)));
}

// Any rank and padding: the runs of the bytes inside are those that a walk over all indices finds.
RC_GTEST_PROP(PaddedBoxTest, RunsOfTheBytesInsideLeadToTheirPlaces, ()) {
  PaddedBox box;
  box.rank = testing::any_rank();
  box.inside = testing::any_lengths(box.rank, 1, 6);
  box.before = testing::any_lengths(box.rank, 0, 2);
  const Coord after = testing::any_lengths(box.rank, 0, 2);
  for (unsigned axis = 0; axis < box.rank; ++axis) box.length[axis] = box.before[axis] + box.inside[axis] + after[axis];
  std::vector<std::uint64_t> places;
  testing::each_index(box.rank, box.before, box.inside,
                      [&](const Coord& at) { places.push_back(testing::linear(box.rank, box.length, at)); });
  for (std::size_t at = *rc::gen::inRange<std::size_t>(0, places.size()); at < places.size();) {
    const PaddedRun run = run_inside(box, at);
    RC_ASSERT(run.bytes > 0);
    for (std::uint64_t i = 0; i < run.bytes; ++i) RC_ASSERT(places.at(at + i) == run.offset + i);
    at += run.bytes;
  }
  RC_ASSERT(run_inside(box, places.size()).bytes == 0);
}

TEST(PaddedBoxTest, OnlyZerosAreReadFromNowhere) {
  const PaddedBox box{.rank = 2, .length = {5, 8}, .inside = {1, 2}, .before = {3, 4}};
  ByteVector piece(3 * 8 + 4, std::byte{0x55});
  EXPECT_TRUE(read_padded(box, 0, piece, [](std::uint64_t, MutableBytes) -> Status {
                return Error{Errc::kIo, "read"};
              }).ok());
  EXPECT_EQ(piece, ByteVector(piece.size()));
}

}  // namespace
}  // namespace mdfs::geometry
