// Boxes copied between arrays, against a loop over single bytes.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/copy_box.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "generators.h"
#include "geometry/decompose.h"

namespace mdfs::geometry {
namespace {

using namespace testing;  // NOLINT: the generators of this folder

ByteVector pattern(std::size_t size, unsigned seed) {
  ByteVector bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i + seed) * 2654435761u >> 13);
  return bytes;
}

// An array around a box of the given length: its shape, and where the box starts. Often exactly the box's own length
// along an axis, so that merged rows are met as often as separate ones.
Box any_surroundings(unsigned rank, const Coord& length) {
  Box result;
  for (unsigned axis = 0; axis < rank; ++axis) {
    const auto before = *rc::gen::element<std::uint64_t>(0, 0, 1, 5);
    const auto behind = *rc::gen::element<std::uint64_t>(0, 0, 1, 3);
    result.start[axis] = before;
    result.length[axis] = before + length[axis] + behind;
  }
  return result;
}

RC_GTEST_PROP(CopyBoxTest, CopiesExactlyWhatALoopOverBytesCopies, ()) {
  const unsigned rank = any_rank();
  const Coord length = any_lengths(rank, 0, 18);
  const Box from = any_surroundings(rank, length), to = any_surroundings(rank, length);
  const ByteVector source = pattern(volume(rank, from.length), 1);
  ByteVector target = pattern(volume(rank, to.length), 2);
  ByteVector expected = target;
  each_index(rank, {}, length, [&](const Coord& index) {
    Coord at_source{}, at_target{};
    for (unsigned axis = 0; axis < rank; ++axis) {
      at_source[axis] = from.start[axis] + index[axis];
      at_target[axis] = to.start[axis] + index[axis];
    }
    expected[linear(rank, to.length, at_target)] = source[linear(rank, from.length, at_source)];
  });
  copy_box(rank, length, source, from.length, from.start, target, to.length, to.start);
  RC_ASSERT(target == expected);
}

RC_GTEST_PROP(CopyBoxTest, FillsExactlyTheBox, ()) {
  const unsigned rank = any_rank();
  const Coord length = any_lengths(rank, 0, 10);
  const Box to = any_surroundings(rank, length);
  ByteVector target = pattern(volume(rank, to.length), 2);
  ByteVector expected = target;
  each_index(rank, to.start, length,
             [&](const Coord& index) { expected[linear(rank, to.length, index)] = std::byte{0x5a}; });
  fill_box(rank, length, std::byte{0x5a}, target, to.length, to.start);
  RC_ASSERT(target == expected);
}

TEST(CopyBoxTest, ABufferMayEndBehindTheBoxsLastByte) {
  const ByteVector source = pattern(8 * 10 + 4, 3);  // a slab that is not whole
  ByteVector target(4);
  copy_box(2, {1, 4, 0}, source, {9, 10, 0}, {8, 0, 0}, target, {1, 4, 0}, {});
  EXPECT_TRUE(std::equal(target.begin(), target.end(), source.begin() + 80));
}

TEST(CopyBoxDeathTest, ABoxOutsideOfItsArrayAborts) {
  ByteVector bytes(100);
  EXPECT_DEATH(copy_box(2, {5, 5, 0}, bytes, {10, 10, 0}, {6, 0, 0}, bytes, {10, 10, 0}, {}), "");
  EXPECT_DEATH(copy_box(2, {5, 5, 0}, bytes, {10, 10, 0}, {0, ~std::uint64_t{0}, 0}, bytes, {10, 10, 0}, {}), "");
}

TEST(CopyBoxDeathTest, ABufferThatIsTooSmallAborts) {
  ByteVector bytes(99);
  EXPECT_DEATH(fill_box(2, {10, 10, 0}, std::byte{}, bytes, {10, 10, 0}, {}), "");
  EXPECT_DEATH(fill_box(3, {1, 1, 1}, std::byte{}, bytes, {1u << 31, 1u << 31, 1u << 31}, {1, 1, 1}), "");
}

RC_GTEST_PROP(ChannelTest, ATakenChannelPutBackChangesNothingElse, ()) {
  const auto channels = *rc::gen::inRange(1u, 6u);
  const auto channel = *rc::gen::inRange(0u, channels);
  const auto element_bytes = *rc::gen::element(1u, 2u, 4u, 8u);
  const auto count = *rc::gen::inRange<std::size_t>(0, 40);
  const ByteVector samples = pattern(count * channels * element_bytes, 1);
  ByteVector plane(count * element_bytes);
  take_channel(samples, channels, channel, element_bytes, plane);
  for (std::size_t i = 0; i < plane.size(); ++i)
    RC_ASSERT(plane[i] == samples[(i / element_bytes * channels + channel) * element_bytes + i % element_bytes]);
  ByteVector changed = samples, inverted = plane;
  for (std::byte& byte : inverted) byte = ~byte;
  put_channel(inverted, channels, channel, element_bytes, changed);
  for (std::size_t i = 0; i < samples.size(); ++i)
    RC_ASSERT(changed[i] == (i / element_bytes % channels == channel ? ~samples[i] : samples[i]));
}

}  // namespace
}  // namespace mdfs::geometry
