// Transfers of clients, against times worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include "meter/transfers.h"

#include <gtest/gtest.h>

#include <vector>

namespace mdfs::meter {
namespace {

MeteredBlock block(std::uint64_t client, std::uint64_t first_byte, double begin_s, double end_s, bool write = false) {
  return {.client = client,
          .object = 9,
          .write = write,
          .first_byte = first_byte,
          .bytes = 100,
          .begin_s = begin_s,
          .end_s = end_s};
}

MeterReading read(const std::vector<MeteredBlock>& blocks) {
  MeterReading reading;
  add_transfers(blocks, reading);
  return reading;
}

TEST(MeterTest, BlocksThatFollowEachOtherAreOneSequentialTransfer) {
  const std::vector<MeteredBlock> blocks = {block(1, 0, 1, 3), block(1, 100, 4, 5), block(1, 200, 5.5, 6)};
  const MeterReading reading = read(blocks);
  EXPECT_EQ(reading.sequential_read.count, 1u);
  EXPECT_EQ(reading.sequential_read.blocks, 3u);
  EXPECT_EQ(reading.sequential_read.bytes, 300u);
  EXPECT_DOUBLE_EQ(reading.sequential_read.transfer_s, 3.5);
  EXPECT_DOUBLE_EQ(reading.sequential_read.rate(), 300 / 3.5);
  EXPECT_DOUBLE_EQ(reading.sequential_read.mean_latency_s(), 1.5) << "5 in all, less 3.5";
  EXPECT_EQ(reading.random_read.count, 0u);
}

TEST(MeterTest, AnotherPlaceFileDirectionOrClientIsAnotherTransfer) {
  std::vector<MeteredBlock> blocks = {block(1, 0, 0, 1),   block(1, 300, 1, 2), block(1, 400, 2, 3, true),
                                      block(1, 500, 3, 4), block(2, 600, 4, 5), block(1, 600, 5, 6)};
  blocks.back().object = 10;
  const MeterReading reading = read(blocks);
  EXPECT_EQ(reading.random_read.count, 5u);
  EXPECT_EQ(reading.random_write.count, 1u);
  EXPECT_EQ(reading.sequential_read.count + reading.sequential_write.count, 0u);
  EXPECT_DOUBLE_EQ(reading.random_read.most_latency_s, 0);
}

TEST(MeterTest, ClientsBesideEachOtherHaveTransfersOfTheirOwn) {
  const std::vector<MeteredBlock> blocks = {block(1, 0, 0, 1, true), block(2, 50, 0, 2, true),
                                            block(1, 100, 3, 4, true), block(2, 150, 2, 3, true)};
  const MeterReading reading = read(blocks);
  EXPECT_EQ(reading.sequential_write.count, 2u);
  EXPECT_DOUBLE_EQ(reading.sequential_write.latency_s, 2);
  EXPECT_DOUBLE_EQ(reading.sequential_write.most_latency_s, 2);
  EXPECT_DOUBLE_EQ(reading.sequential_write.mean_latency_s(), 1);
}

TEST(MeterTest, BlocksThatOverlapCountTheirTimeOnce) {
  const std::vector<MeteredBlock> blocks = {block(1, 0, 0, 4), block(1, 100, 1, 3), block(1, 200, 2, 6)};
  const MeterReading reading = read(blocks);
  EXPECT_DOUBLE_EQ(reading.sequential_read.transfer_s, 6);
  EXPECT_DOUBLE_EQ(reading.sequential_read.latency_s, 0);
}

TEST(MeterTest, BytesThatAreApartNeverGoOn) {
  std::vector<MeteredBlock> blocks = {block(1, 0, 0, 1), block(1, 100, 1, 2)};
  for (MeteredBlock& one : blocks) one.first_byte.reset();
  EXPECT_EQ(read(blocks).random_read.count, 2u);
  EXPECT_EQ(read({}).random_read.rate(), 0);
}

TEST(MeterTest, TheLatencyIsWhatTheBlocksDoNotTake) {
  const TimedTransfer transfer{.sequential = true, .blocks = 2, .bytes = 200, .transfer_s = 2, .total_s = 3};
  EXPECT_DOUBLE_EQ(transfer.latency_s(), 1);
  EXPECT_EQ(kind_of(transfer), Kind::kSequentialRead);
  Transfers sums;
  sums.add(transfer);
  Transfers twice = sums;
  twice.add(sums);
  EXPECT_EQ(twice.count, 2u);
  EXPECT_DOUBLE_EQ(twice.rate(), 100) << "bytes by data transfer time, not by total time";
  EXPECT_DOUBLE_EQ(twice.mean_latency_s(), 1);
  EXPECT_DOUBLE_EQ(twice.most_latency_s, 1);
}

}  // namespace
}  // namespace mdfs::meter
