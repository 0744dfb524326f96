// Tables, JSON and pictures of measurements, from counts that are worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "meter/picture.h"
#include "meter/report.h"

namespace mdfs::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kMiB = 1u << 20;

// So many reads of 1 MiB, each of `total_s`, half of it latency.
MeasuredStep reads(unsigned clients, unsigned count, double total_s, std::string broken = "") {
  MeasuredStep measured{{.clients = clients, .measured_s = 1}, std::move(broken)};
  for (unsigned i = 0; i < count; ++i)
    measured.step.tally.add(meter::TimedTransfer{
        .sequential = true, .blocks = 4, .bytes = kMiB, .transfer_s = total_s / 2, .total_s = total_s});
  return measured;
}

MeasuredPlace place_of(const std::string& path, std::vector<MeasuredStep> steps) {
  MeasuredPlace place;
  place.path = path;
  place.filesystem = "tmpfs";
  place.files = {2, 4 * kMiB};
  place.bytes = 8 * kMiB;
  place.steps = std::move(steps);
  place.held = 1;
  return place;
}

Measurement playout() {
  Measurement wanted;
  wanted.profile = *meter::find_profile("playout");
  return wanted;
}

TEST(MeterReportTest, ATableHasTheKindsThatHappened) {
  const std::vector places = {place_of("/a", {reads(1, 64, 0.01)})};
  const std::string text = meter_text(playout(), places);
  EXPECT_THAT(text, HasSubstr("/a (tmpfs): 2 files of 4 MiB a client, 8 MiB in all\n"));
  EXPECT_THAT(text, HasSubstr("1 client, 1 s: 64 MiB/s in all\n"));
  EXPECT_THAT(text, testing::ContainsRegex("sequential reads +64 +200 MiB/s +5 ms"));
  EXPECT_THAT(text, Not(HasSubstr("writes")));
  EXPECT_THAT(text, Not(HasSubstr("late:")));
}

TEST(MeterReportTest, NamesOfPathsAreShownAndNotObeyed) {
  const std::vector places = {place_of("/a\x1b[2J", {reads(1, 1, 0.01)})};
  EXPECT_THAT(meter_text(playout(), places), Not(HasSubstr("\x1b")));
}

TEST(MeterReportTest, TwoPlacesAreComparedWhereTheirClientsAreAsMany) {
  Measurement wanted = playout();
  const std::vector places = {place_of("/a", {reads(1, 10, 0.01), reads(2, 40, 0.01)}),
                              place_of("/b", {reads(1, 20, 0.02)})};
  const std::string text = meter_text(wanted, places);
  EXPECT_THAT(text, testing::ContainsRegex("rate in all +10 MiB/s +20 MiB/s +2\n"));
  EXPECT_THAT(text, testing::ContainsRegex("sequential reads, latency: mean +5 ms +10 ms +2\n"));
  const auto json = meter_json(wanted, places);
  ASSERT_EQ(json["comparison"].size(), 1u);
  EXPECT_EQ(json["comparison"][0]["clients"], 1);
  EXPECT_EQ(json["comparison"][0]["bytes_per_s"]["ratio"], 2.0);
  EXPECT_NEAR(json["comparison"][0]["sequential_read_bytes_per_s"]["ratio"].get<double>(), 0.5, 1e-9);
  EXPECT_FALSE(json["comparison"][0].contains("random_write_bytes_per_s"));
}

TEST(MeterReportTest, ARampShowsTheLimitThatBroke) {
  Measurement wanted = playout();
  wanted.ramp = true;
  wanted.clients = 2;
  const std::vector places = {place_of("/a", {reads(1, 10, 0.01), reads(2, 40, 0.01, "late: 3 of 40")})};
  const std::string text = meter_text(wanted, places);
  EXPECT_THAT(text, testing::ContainsRegex("2 +40 MiB/s .*late: 3 of 40\n"));
  EXPECT_THAT(text, HasSubstr("hold for up to 1 client.\n"));
  const auto json = meter_json(wanted, places);
  EXPECT_EQ(json["places"][0]["most_clients_held"], 1);
  EXPECT_EQ(json["places"][0]["steps"][1]["holds"], false);
}

TEST(MeterReportTest, FilesInMemoryAreMentionedUnlessTheyAreBypassedOrOnlyWritten) {
  Measurement wanted = playout();
  std::vector places = {place_of("/a", {reads(1, 1, 0.01)})};
  places[0].fits_memory = true;
  EXPECT_THAT(meter_text(wanted, places), HasSubstr("fit into memory"));
  wanted.direct = true;
  EXPECT_THAT(meter_text(wanted, places), Not(HasSubstr("fit into memory")));
  wanted = playout();
  wanted.profile = *meter::find_profile("record");
  EXPECT_THAT(meter_text(wanted, places), Not(HasSubstr("fit into memory")));
}

TEST(MeterReportTest, JsonHasEveryKindAndPercentile) {
  const auto json = meter_json(playout(), std::vector{place_of("/a", {reads(1, 64, 0.01)})});
  EXPECT_EQ(json["output_version"], 1);
  EXPECT_FALSE(json.contains("comparison"));
  const auto& transfers = json["places"][0]["steps"][0]["transfers"];
  EXPECT_EQ(transfers.size(), 4u);
  EXPECT_EQ(transfers["sequential_read"]["count"], 64);
  EXPECT_EQ(transfers["sequential_read"]["blocks"], 256);
  EXPECT_NEAR(transfers["sequential_read"]["bytes_per_s"].get<double>(), 64.0 * kMiB / 0.32, 1);
  EXPECT_DOUBLE_EQ(transfers["sequential_read"]["time_s"]["p99"], 0.01);
  EXPECT_EQ(transfers["random_write"]["count"], 0);
}

TEST(MeterReportTest, ThePictureOfARampHasTwoSeriesAPlaceAndElseOneAKind) {
  Measurement wanted = playout();
  std::vector places = {place_of("/a", {reads(1, 10, 0.01), reads(2, 40, 0.01)}), place_of("/b", {reads(1, 20, 0.02)})};
  sim::Figure figure = meter_figure(wanted, places);
  ASSERT_EQ(figure.series.size(), 3u);
  EXPECT_EQ(figure.series[0].y.back(), 100) << "of all transfers";
  EXPECT_EQ(figure.series[0].name, "/a: sequential read");
  wanted.ramp = true;
  figure = meter_figure(wanted, places);
  ASSERT_EQ(figure.series.size(), 4u);
  EXPECT_EQ(figure.series[0].x, (std::vector<double>{1, 2}));
  EXPECT_EQ(figure.series[0].y, (std::vector<double>{10, 40}));
  EXPECT_EQ(figure.series[1].y, (std::vector<double>{10, 20})) << "of one client";
}

}  // namespace
}  // namespace mdfs::tools
