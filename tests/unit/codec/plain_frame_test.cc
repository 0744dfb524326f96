// Frames that are not compressed.
// SPDX-License-Identifier: Apache-2.0
#include "codec/plain_frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

#include "codec/codec.h"

namespace mdfs::codec {
namespace {

constexpr std::uint64_t kBlock = 128u << 10;

ByteVector noise(std::size_t count) {
  std::mt19937_64 generator(count);
  ByteVector bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator());
  return bytes;
}

FrameContent content_of(const ByteVector& bytes) {
  return [&bytes](std::uint64_t offset, MutableBytes into) -> Status {
    if (offset > bytes.size() || into.size() > bytes.size() - offset) return {Errc::kOutOfRange, "content"};
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  };
}

ByteVector whole_frame(const ByteVector& bytes) {
  ByteVector frame(plain_frame_bytes(bytes.size()));
  EXPECT_TRUE(read_plain_frame(bytes.size(), 0, frame, content_of(bytes)).ok());
  return frame;
}

TEST(PlainFrame, AnyContentIsOneFrameThatDecodesToIt) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{255}, std::uint64_t{256},
                                   std::uint64_t{65791}, std::uint64_t{65792}, kBlock - 1, kBlock, kBlock + 1,
                                   2 * kBlock - 1, 2 * kBlock, 5 * kBlock + 77, std::uint64_t{16} << 20}) {
    const ByteVector bytes = noise(size);
    const ByteVector frame = whole_frame(bytes);
    ByteVector back(size);
    ASSERT_TRUE(decode(Codec::kZstd, frame, back).ok()) << size;
    EXPECT_EQ(back, bytes) << size;
    EXPECT_LE(frame.size(), compress_bound(Codec::kZstd, size) + 16) << size;
    // Such a frame is accepted from a client, and stored with compression.
    const auto stored = decode_foreign(Codec::kZstd, frame, back);
    ASSERT_TRUE(stored.ok()) << size;
    EXPECT_FALSE(*stored) << size;
  }
}

TEST(PlainFrame, TheBytesAreThoseOfTheFormat) {
  const ByteVector bytes = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  const std::string expected("\x28\xb5\x2f\xfd\xa0\x03\0\0\0\x19\0\0abc", 15);
  const ByteVector frame = whole_frame(bytes);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(frame.data()), frame.size()), expected);
}

RC_GTEST_PROP(PlainFrame, APieceIsThatOfTheWholeFrame, ()) {
  const ByteVector bytes = noise(*rc::gen::element<std::size_t>(1, 50, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock + 9));
  const ByteVector frame = whole_frame(bytes);
  const std::size_t near = *rc::gen::element<std::size_t>(0, 9, 12, 9 + 3 + kBlock, 9 + 6 + kBlock, frame.size());
  const std::size_t from = std::min(frame.size(), near - std::min<std::size_t>(near, *rc::gen::inRange(0, 9)));
  const std::size_t most = frame.size() - from;
  ByteVector piece(std::min<std::size_t>(most, *rc::gen::element<std::size_t>(0, 1, 5, 20, kBlock, 2 * kBlock)));
  RC_ASSERT(read_plain_frame(bytes.size(), from, piece, content_of(bytes)).ok());
  RC_ASSERT(std::equal(piece.begin(), piece.end(), frame.begin() + static_cast<std::ptrdiff_t>(from)));
}

TEST(PlainFrame, AnErrorOfTheContentIsOneOfTheFrame) {
  ByteVector into(20);
  const auto fails = [](std::uint64_t, MutableBytes) { return Status(Errc::kStaleDisk, ""); };
  EXPECT_EQ(read_plain_frame(100, 0, into, fails).error().code, Errc::kStaleDisk);
  EXPECT_TRUE(read_plain_frame(100, 0, MutableBytes(into).first(12), fails).ok());
}

}  // namespace
}  // namespace mdfs::codec
