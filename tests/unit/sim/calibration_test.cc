// Calibration finds the disk that made the times, and refuses what is no such disk.
// SPDX-License-Identifier: Apache-2.0
#include "sim/calibration.h"

#include <gtest/gtest.h>

#include "model/machine.h"
#include "sim/system.h"

namespace mdfs::sim {
namespace {

std::vector<TimedRead> reads_of(double latency_s, double bytes_per_s, double noise) {
  Random random(1);
  std::vector<TimedRead> reads;
  for (double bytes = 4096; bytes <= 4 << 20; bytes *= 4)
    for (int i = 0; i < 30; ++i)
      reads.push_back({bytes, (latency_s + bytes / bytes_per_s) * random.uniform(1 - noise, 1 + noise)});
  return reads;
}

TEST(CalibrationTest, FindsTheDiskThatMadeTheTimes) {
  const Calibration exact = calibrate(reads_of(0.010, 4e6, 0), 0, false).value();
  EXPECT_NEAR(exact.latency_s, 0.010, 1e-9);
  EXPECT_NEAR(exact.bytes_per_s, 4e6, 1);
  EXPECT_NEAR(exact.r_squared, 1, 1e-9);
  const Calibration noisy = calibrate(reads_of(100e-6, 2e9, 0.2), 0, false).value();
  EXPECT_NEAR(noisy.latency_s, 100e-6, 5e-6);
  EXPECT_NEAR(noisy.bytes_per_s, 2e9, 0.1e9);
  EXPECT_TRUE(judge(noisy).ok());
}

TEST(CalibrationTest, ABadFitIsRefusedWithItsReason) {
  std::vector<TimedRead> reads = reads_of(0.010, 4e6, 0);
  for (TimedRead& read : reads)
    if (read.bytes > 1e6) read.seconds *= 3;  // a cache that small reads hit
  const Calibration bent = calibrate(reads, 0, false).value();
  const Status status = judge(bent);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Errc::kNotSupported);
  std::vector<TimedRead> flat;
  for (double bytes = 4096; bytes <= 1 << 20; bytes *= 2) flat.push_back({bytes, 1e-3 - bytes * 1e-11});
  EXPECT_FALSE(judge(calibrate(flat, 0, false).value()).ok());
}

TEST(CalibrationTest, ADiskThatIsNothingButARateHasNoLatencyOnWhicheverSideOfZeroTheFitFalls) {
  std::vector<TimedRead> reads;
  for (double bytes = 16384; bytes <= 1 << 20; bytes *= 2) reads.push_back({bytes, bytes / 20e6});
  reads.front().seconds *= 0.98;
  const Calibration calibration = calibrate(reads, 0, false).value();
  EXPECT_EQ(calibration.latency_s, 0);
  EXPECT_NEAR(calibration.bytes_per_s, 20e6, 0.2e6);
  EXPECT_GT(calibration.r_squared, 0.99);
  EXPECT_TRUE(judge(calibration).ok());
  // Far below zero it is no such disk.
  reads.front().seconds *= 0.3;
  EXPECT_FALSE(judge(calibrate(reads, 0, false).value()).ok());
}

TEST(CalibrationTest, TwoSizesAreTooFew) {
  EXPECT_FALSE(calibrate(std::vector<TimedRead>{{4096, 1}, {8192, 2}, {4096, 1}}, 0, false).ok());
}

TEST(CalibrationTest, TheMachineFileIsReadBack) {
  const Calibration calibration = calibrate(reads_of(0.010, 4e6, 0), 0, false).value();
  const auto machine = model::parse_machine(machine_text(calibration, "mine", "disk0", 8), "mine.toml");
  ASSERT_TRUE(machine.ok()) << machine.error().message();
  EXPECT_EQ(machine->disks, 8U);
  EXPECT_NEAR(machine->stages[0].costs[0].low_s, 0.010, 1e-8);
  EXPECT_NEAR(machine->stages[0].costs[1].bytes_per_s, 4e6, 10);
}

}  // namespace
}  // namespace mdfs::sim
