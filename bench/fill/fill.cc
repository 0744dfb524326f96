// Reading rates of images on a volume that becomes full, by policy: as JSON, and drawn.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "alloc/policy.h"
#include "base/log.h"
#include "fill/filling.h"
#include "sim/figure.h"
#include "sim/statistics.h"
#include "support/chart.h"

namespace mdfs::bench {
namespace {

constexpr std::array kPolicies = {geometry::AllocationPolicy::kScatter, geometry::AllocationPolicy::kFirst,
                                  geometry::AllocationPolicy::kNear};
constexpr double kMega = 1e6;

struct Arguments {
  std::string machine = "sata-disk-zoned";
  std::string svg;
  unsigned seeds = 5;
  std::uint64_t disk_mib = 1024;
};

// Of one policy at one step, over the seeds.
struct Rates {
  std::vector<double> full, images, windows, runs;
};

Result<std::vector<Rates>> measure(const model::Machine& machine, geometry::AllocationPolicy policy,
                                   const std::vector<double>& steps, const Arguments& arguments) {
  std::vector<Rates> rates(steps.size());
  for (unsigned seed = 1; seed <= arguments.seeds; ++seed) {
    FillOptions options{.disk_bytes = arguments.disk_mib << 20, .policy = policy, .seed = seed, .steps = steps};
    MDFS_TRY_ASSIGN(const std::vector<FillPoint> points, fill(machine, options));
    for (std::size_t i = 0; i < points.size(); ++i) {
      rates[i].full.push_back(points[i].full);
      rates[i].images.push_back(points[i].image_bytes_per_s / kMega);
      rates[i].windows.push_back(points[i].window_bytes_per_s / kMega);
      rates[i].runs.push_back(points[i].runs);
    }
  }
  return rates;
}

nlohmann::ordered_json interval_json(const std::vector<double>& values) {
  const sim::Interval interval = sim::confidence_interval(values);
  return {{"mean", interval.mean}, {"half_width_95", interval.half_width}};
}

Status run(const Arguments& arguments) {
  MDFS_TRY_ASSIGN(const model::Machine machine, model::find_machine(arguments.machine));
  std::vector<double> steps;
  for (int i = 1; i <= 9; ++i) steps.push_back(i / 10.0);
  sim::Figure figure{.title = fmt::format("Images stored as a volume fills: {}", machine.name),
                     .x_label = "volume in use when they were stored, %",
                     .y_label = "whole images read from 4 disks, MB/s",
                     .series = {}};
  nlohmann::ordered_json json{{"output_version", 1}, {"machine", machine.name}, {"policies", {}}};
  for (std::size_t p = 0; p < kPolicies.size(); ++p) {
    MDFS_TRY_ASSIGN(const std::vector<Rates> rates, measure(machine, kPolicies[p], steps, arguments));
    sim::Series series{.name = std::string(alloc::name(kPolicies[p])), .x = {}, .y = {}};
    nlohmann::ordered_json& rows = json["policies"][series.name] = nlohmann::ordered_json::array();
    for (const Rates& at : rates) {
      const sim::Interval images = sim::confidence_interval(at.images);
      const double full = sim::summarize(at.full).mean;
      series.x.push_back(full * 100);
      series.y.push_back(images.mean);
      series.half_width.push_back(images.half_width);
      rows.push_back({{"full", full},
                      {"image_mb_per_s", interval_json(at.images)},
                      {"window_mb_per_s", interval_json(at.windows)},
                      {"runs_per_image_and_disk", sim::summarize(at.runs).mean}});
    }
    figure.series.push_back(std::move(series));
  }
  fmt::print("{}\n", json.dump(2));
  if (arguments.svg.empty()) return {};
  std::ofstream file(arguments.svg);
  file << tools::to_svg(figure);
  file.close();
  return file.good() ? Status{} : Status{Errc::kIo, arguments.svg};
}

}  // namespace
}  // namespace mdfs::bench

int main(int argc, char** argv) {
  mdfs::bench::Arguments arguments;
  CLI::App app{"Reading rates of images on a volume that becomes full, by policy, in virtual time."};
  app.add_option("--machine", arguments.machine, "Of mdfs-sim, with zones (default sata-disk-zoned)");
  app.add_option("--seeds", arguments.seeds, "Volumes filled for each policy (default 5)")->check(CLI::Range(2, 100));
  app.add_option("--disk-mib", arguments.disk_mib, "Size of each of the four disks (default 1024)");
  app.add_option("--svg", arguments.svg, "Also draw it");
  CLI11_PARSE(app, argc, argv);
  // That disks become full is no news here, and the log would go where the figures go.
  mdfs::Status status = mdfs::set_log_level("error");
  if (status.ok()) status = mdfs::bench::run(arguments);
  if (status.ok()) return 0;
  fmt::print(stderr, "fill: {}\n", status.error().message());
  return 1;
}
