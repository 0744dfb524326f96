// What encoding takes in memory, counted before it begins.
// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/encoding_memory.h"

#include <gtest/gtest.h>

namespace mdfs::engine {
namespace {

TEST(EncodingMemory, EncodersOfABatchFillTheirBudgetAndNoMore) {
  EXPECT_EQ(encoders_at_once(100, 10, 50, 4), 4u) << "threads";
  EXPECT_EQ(encoders_at_once(100, 10, 2, 4), 2u) << "cache blocks";
  EXPECT_EQ(encoders_at_once(100, 40, 50, 4), 2u) << "memory";
  EXPECT_EQ(encoders_at_once(100, 51, 50, 4), 1u);
  EXPECT_EQ(encoders_at_once(100, 101, 50, 4), 1u) << "one larger than the budget works alone";
  EXPECT_EQ(encoders_at_once(100, 0, 50, 4), 4u) << "raw";
}

TEST(EncodingMemory, TheLargestEncoderFitsInTheBudgetOfLargeOnes) {
  EncodingBudgets budgets(16u << 20);
  const std::size_t largest =
      codec::encoder_bytes(codec::Codec::kZstd, codec::info(codec::Codec::kZstd).levels.highest, 16u << 20);
  EXPECT_LE(largest, budgets.encoders_of(largest).limit_bytes());
}

TEST(EncodingMemory, ASmallFileDoesNotShareABudgetWithTheLargestExtents) {
  EncodingBudgets budgets(256u << 20);
  EXPECT_NE(&budgets.frames_of(4096), &budgets.frames_of(16u << 20));
  EXPECT_NE(&budgets.encoders_of(1u << 20), &budgets.encoders_of(82u << 20));
}

TEST(EncodingMemory, TwoBatchesOfTheLargestExtentsAreMadeAtOnce) {
  EncodingBudgets budgets(16u << 20);
  const std::size_t frame = codec::compress_bound(codec::Codec::kZstd, 16u << 20) + 4096;
  EXPECT_LE(2 * frame, budgets.frames_of(frame).limit_bytes());
}

codec::Encoder used_encoder(int level, std::size_t bytes) {
  codec::Encoder encoder;
  const ByteVector samples(bytes, std::byte{5});
  ByteVector out(codec::compress_bound(codec::Codec::kZstd, bytes));
  EXPECT_TRUE(codec::encode(codec::Codec::kZstd, level, samples, out, encoder).ok());
  EXPECT_LE(encoder.bytes(), codec::encoder_bytes(codec::Codec::kZstd, level, bytes));
  return encoder;
}

TEST(IdleEncoders, NoMoreAreKeptThanTheBoundAndNoLargeOne) {
  const std::size_t one = used_encoder(3, 100'000).bytes();
  IdleEncoders idle(2 * one, 3 * one);
  for (int i = 0; i < 5; ++i) idle.give_back(used_encoder(3, 100'000));
  EXPECT_EQ(idle.bytes(), 3 * one);
  const codec::Encoder first = idle.take(), second = idle.take();
  EXPECT_EQ(first.bytes(), one);
  EXPECT_EQ(idle.bytes(), one);
  codec::Encoder large = used_encoder(19, 1u << 20);
  ASSERT_GT(large.bytes(), 2 * one);
  idle.give_back(std::move(large));
  EXPECT_EQ(idle.bytes(), one);
}

}  // namespace
}  // namespace mdfs::engine
