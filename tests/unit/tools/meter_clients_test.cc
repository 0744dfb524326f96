// Clients as threads: what they count, whatever time it takes, and that they end.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "meter/clients.h"
#include "meter/measure.h"
#include "temp_dir.h"

namespace mdfs::tools {
namespace {

namespace fs = std::filesystem;
using meter::Kind;

constexpr std::uint64_t kKiB = 1024;

// Half of the transfers write, in blocks of 4 KiB.
Measurement mixed(const std::string& path) {
  Measurement wanted;
  wanted.paths = {path};
  wanted.profile = *meter::parse_profile(R"(
name = "mixed"
files = 2
file = "256 KiB"
transfer = ["4 KiB", "64 KiB"]
block = "4 KiB"
writes = 0.5
random = 0.2
sync = "transfer"
)",
                                         "mixed");
  wanted.clients = 4;
  wanted.duration_s = 0.05;
  wanted.most_bytes = 1u << 20;
  return wanted;
}

const std::atomic<bool> kNever = false;

TEST(MeterClientsTest, ManyClientsCountWhatTheyTransfer) {
  const test::TempDir folder;
  const auto places = measure(mixed(folder.path()), kNever);
  ASSERT_TRUE(places.ok()) << places.error().message();
  ASSERT_EQ(places->size(), 1u);
  const MeasuredPlace& place = places->front();
  EXPECT_EQ(place.files.file_bytes, 128 * kKiB) << "8 files within 1 MiB";
  ASSERT_EQ(place.steps.size(), 1u);
  const meter::Step& step = place.steps[0].step;
  EXPECT_EQ(step.clients, 4u);
  EXPECT_GE(step.tally.count(), 4u);
  EXPECT_GT(step.measured_s, 0);
  for (std::size_t i = 0; i < meter::kKinds; ++i) {
    const meter::Transfers& kind = step.tally.transfers.of(static_cast<Kind>(i));
    EXPECT_EQ(kind.bytes, kind.blocks * 4 * kKiB) << meter::name_of(static_cast<Kind>(i));
    EXPECT_EQ(step.tally.totals[i].count(), kind.count);
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(MeterClientsTest, RoundsAddUpAndPlacesAreMeasuredAlike) {
  const test::TempDir one, other;
  Measurement wanted = mixed(one.path());
  wanted.paths.push_back(other.path());
  wanted.rounds = 3;
  wanted.duration_s = 0.01;
  const auto places = measure(wanted, kNever);
  ASSERT_TRUE(places.ok()) << places.error().message();
  for (const MeasuredPlace& place : *places) {
    ASSERT_EQ(place.steps.size(), 1u);
    EXPECT_GE(place.steps[0].step.tally.count(), 12u) << "each of 4 clients one in each of 3 rounds";
  }
}

TEST(MeterClientsTest, AnInterruptionEndsAllClientsAndRemovesTheFiles) {
  const test::TempDir folder;
  Measurement wanted = mixed(folder.path());
  wanted.profile.begin = meter::Begin::kEmpty;
  wanted.profile.writes = 1;
  wanted.profile.random = 0;
  wanted.duration_s = 600;
  const std::atomic<bool> at_once = true;
  const auto places = measure(wanted, at_once);
  ASSERT_FALSE(places.ok());
  EXPECT_EQ(places.error().code, Errc::kCancelled);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(MeterClientsTest, AnErrorOfOneClientEndsAll) {
  const test::TempDir folder;
  const std::string path = folder.path() / "file";
  std::ofstream(path).close();
  fs::resize_file(path, 1u << 20);
  Measurement wanted = mixed(path);
  wanted.profile.writes = 0;
  auto place = MeterPlace::look(path, wanted.profile, 4, 1u << 20, false);
  ASSERT_TRUE(place.ok());
  fs::resize_file(path, 0);
  const auto step = run_clients(
      {.profile = wanted.profile, .place = *place, .clients = 4, .duration_s = 600, .seed = 1, .interrupted = kNever});
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().code, Errc::kIo);
}

TEST(MeterClientsTest, BuffersHaveABound) {
  meter::Profile profile = mixed("/").profile;
  profile.block_bytes.high = meter::kMostBlockBytes;
  EXPECT_TRUE(check_buffers(profile, 16).ok());
  EXPECT_EQ(check_buffers(profile, 17).error().code, Errc::kTooBig);
}

}  // namespace
}  // namespace mdfs::tools
