// The distribution that made the times is found again, and predicts the windows of the machine that it came from.
// SPDX-License-Identifier: Apache-2.0
#include "sim/latency_distribution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/machine.h"
#include "model/random.h"
#include "sim/calibration.h"
#include "sim/experiment.h"

namespace mdfs::sim {
namespace {

using Kind = LatencyDistribution::Kind;

// Of each size: the mean of as many exponential times is certain to 2 %.
constexpr unsigned kReads = 400;

struct Disk {
  const char* name;
  LatencyDistribution latency;
  double bytes_per_s;
};

const std::vector<Disk> kDisks = {
    {"Constant", {.kind = Kind::kConstant, .low_s = 0.010}, 4e6},
    {"ConstantAndFast", {.kind = Kind::kConstant, .low_s = 100e-6}, 2e9},
    {"UniformFromZero", {.kind = Kind::kUniform, .low_s = 0, .high_s = 0.040}, 4e6},
    {"UniformFromZeroAndFast", {.kind = Kind::kUniform, .low_s = 0, .high_s = 0.040}, 200e6},
    {"Uniform", {.kind = Kind::kUniform, .low_s = 0.005, .high_s = 0.015}, 100e6},
    {"Exponential", {.kind = Kind::kExponential, .low_s = 0, .high_s = 0.010}, 100e6},
    {"ExponentialLate", {.kind = Kind::kExponential, .low_s = 0.004, .high_s = 0.006}, 20e6},
    {"Head",
     {.kind = Kind::kHead, .low_s = 0.8e-3, .high_s = 16e-3, .rotation_s = 8.33e-3, .capacity_bytes = 4e12},
     180e6},
};

// As mdfs-sim calibrate makes them: sizes interleaved, at random places.
std::vector<TimedRead> reads_of(const Disk& disk, unsigned reads, std::uint64_t seed) {
  model::Random random(seed);
  const double capacity = disk.latency.capacity_bytes;
  std::vector<TimedRead> result;
  double head = 0;
  for (unsigned i = 0; i < reads; ++i)
    for (double bytes = 4096; bytes <= 2 << 20; bytes *= 2.5) {
      const double at = random.uniform(0, capacity);
      const double distance = std::fabs(at - head);
      head = at + bytes;
      const double latency = disk.latency.quantile_s(random.unit(), distance);
      result.push_back({.bytes = bytes, .seconds = latency + bytes / disk.bytes_per_s, .distance_bytes = distance});
    }
  return result;
}

Calibration calibrated(const Disk& disk, std::span<const TimedRead> reads) {
  return calibrate(reads, disk.latency.capacity_bytes, false).value();
}

class LatencyDistributionTest : public testing::TestWithParam<Disk> {};

TEST_P(LatencyDistributionTest, TheDistributionThatMadeTheTimesIsFoundWithItsParameters) {
  const Disk& disk = GetParam();
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Calibration found = calibrated(disk, reads_of(disk, kReads, seed));
    const LatencyDistribution& latency = found.model.latency;
    ASSERT_EQ(kind_text(latency.kind), kind_text(disk.latency.kind)) << seed;
    const double tolerance = 0.06 * (disk.latency.high_s + disk.latency.low_s + disk.latency.rotation_s);
    EXPECT_NEAR(latency.low_s, disk.latency.low_s, tolerance) << seed;
    EXPECT_NEAR(latency.high_s, disk.latency.high_s, tolerance) << seed;
    EXPECT_NEAR(latency.rotation_s, disk.latency.rotation_s, tolerance) << seed;
    EXPECT_TRUE(describes(found.held_out)) << found.held_out.median_error << " " << found.held_out.p95_error;
    EXPECT_TRUE(judge(found).ok()) << seed;
  }
}

// Delays of windows at random places, on so many disks with this stage.
Summary windows_of(const std::string& machine_file, unsigned disks) {
  Setup setup = default_setup(model::parse_machine(machine_file, "machine.toml").value()).value();
  setup.disks = disks;
  const System system = System::make(setup).value();
  return summarize(read_random(system, {512, 512, 0}, 1000, 1).delays_s);
}

TEST_P(LatencyDistributionTest, WindowsOfTheFittedMachineAreThoseOfTheTrueOneInMeanAndTail) {
  const Disk& disk = GetParam();
  Calibration truth;
  truth.model = {.latency = disk.latency, .seconds_per_byte = 1 / disk.bytes_per_s};
  truth.bytes_per_s = disk.bytes_per_s;
  const Calibration found = calibrated(disk, reads_of(disk, kReads, 1));
  for (const unsigned disks : {1U, 4U}) {
    const Summary is = windows_of(machine_text(found, "found", "a test", 1), disks);
    const Summary should = windows_of(machine_text(truth, "truth", "a test", 1), disks);
    EXPECT_NEAR(is.mean / should.mean, 1, 0.05) << disks;
    EXPECT_NEAR(is.p95 / should.p95, 1, 0.10) << disks;
    RecordProperty(fmt::format("mean_{}", disks), fmt::format("{:.4f}", is.mean / should.mean));
    RecordProperty(fmt::format("p95_{}", disks), fmt::format("{:.4f}", is.p95 / should.p95));
  }
}

INSTANTIATE_TEST_SUITE_P(Disks, LatencyDistributionTest, testing::ValuesIn(kDisks),
                         [](const auto& disk) { return std::string(disk.param.name); });

TEST(LatencyDistributionChoiceTest, NoiseOfTheClockIsNoDistribution) {
  const Disk disk{"", {.kind = Kind::kConstant, .low_s = 0.010}, 100e6};
  std::vector<TimedRead> reads = reads_of(disk, 40, 1);
  model::Random random(2);
  for (TimedRead& read : reads) read.seconds *= random.uniform(0.99, 1.01);
  EXPECT_EQ(calibrated(disk, reads).model.latency.kind, Kind::kConstant);
}

TEST(LatencyDistributionChoiceTest, AFewReadsThatOtherProgramsDelayDoNotMoveTheFit) {
  const Disk disk{"", {.kind = Kind::kUniform, .low_s = 0, .high_s = 0.040}, 100e6};
  std::vector<TimedRead> reads = reads_of(disk, 100, 1);
  for (std::size_t i = 50; i < reads.size(); i += 100) reads[i].seconds += 0.5;
  const Calibration found = calibrated(disk, reads);
  ASSERT_EQ(found.model.latency.kind, Kind::kUniform);
  EXPECT_NEAR(found.model.latency.high_s, 0.040, 0.003);
  EXPECT_TRUE(describes(found.held_out));
}

TEST(LatencyDistributionChoiceTest, ADiskOfTwoKindsOfReadsIsDescribedByNoDistribution) {
  const Disk disk{"", {.kind = Kind::kConstant, .low_s = 0.001}, 200e6};
  std::vector<TimedRead> reads = reads_of(disk, 60, 1);
  model::Random random(3);
  for (TimedRead& read : reads)
    if (random.unit() < 0.3) read.seconds += 0.1;
  const Calibration found = calibrated(disk, reads);
  EXPECT_FALSE(describes(found.held_out));
  EXPECT_NE(machine_text(found, "mine", "disk0", 1).find("no distribution describes this disk"), std::string::npos);
}

TEST(LatencyDistributionChoiceTest, MeansOfManyReadsTellNoDistribution) {
  const Disk disk{"", {.kind = Kind::kUniform, .low_s = 0, .high_s = 0.002}, 4e6};
  const Calibration found = calibrate(reads_of(disk, 40, 1), 0, true).value();
  ASSERT_EQ(found.candidates.size(), 1U);
  EXPECT_EQ(found.model.latency.kind, Kind::kConstant);
}

TEST(LatencyDistributionChoiceTest, ReadsOfOneOfASizeAreFittedWithoutAnyHeldOut) {
  const Disk disk{"", {.kind = Kind::kConstant, .low_s = 0.001}, 200e6};
  const Calibration found = calibrate(reads_of(disk, 1, 1), 0, false).value();
  EXPECT_EQ(found.held_out.reads, 0U);
  EXPECT_FALSE(describes(found.held_out));
  EXPECT_NEAR(found.latency_s, 0.001, 1e-9);
}

}  // namespace
}  // namespace mdfs::sim
