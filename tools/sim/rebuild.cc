// mdfs-sim rebuild: how long a lost disk is rebuilt on the others, and what windows cost meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "sim/rebuild.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "model/quantity.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "sim/experiment.h"
#include "support/ranges.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMostWindowsBeside = 1'000'000;
constexpr unsigned kPositionsOfLoad = 100;
constexpr std::size_t kBatches = 20;
constexpr std::uint64_t kMostExtentsRebuilt = 1u << 24;  // of an image whose rebuild is simulated

struct RebuildCommand : SimOptions {
  std::vector<std::string> sizes = {"64x64", "512x512"};
  unsigned windows = 500;
  std::optional<std::string> load;  // absent: one window at a time
  std::string think = "0 s";
};

// The volume with all disks, and without the lost one.
struct Volumes {
  sim::System healthy, degraded;
};

Result<Volumes> make_volumes(const RebuildCommand& options) {
  MDFS_TRY_ASSIGN(sim::Setup setup, make_setup(options));
  if (setup.copies != 2 && setup.width == 1)
    return Error{Errc::kUsage, "--copies 1: the extents of a lost disk are lost; it must be 2, or --parity 1"};
  if (setup.cache_bytes != 0) return Error{Errc::kUsage, "--cache: windows beside a rebuild are read from the disks"};
  if (setup.disks < 3)
    return Error{Errc::kUsage,
                 fmt::format("--disks {}: a rebuild needs 3 or more, for both copies of each extent", setup.disks)};
  sim::Setup whole = setup;
  whole.lost_disk.reset();
  if (!setup.lost_disk) setup.lost_disk = 0;
  if (*setup.lost_disk >= setup.disks)
    return Error{Errc::kUsage, fmt::format("--lost-disk {}: not in 0..{}", *setup.lost_disk, setup.disks - 1)};
  MDFS_TRY_ASSIGN(sim::System healthy, sim::System::make(std::move(whole)));
  MDFS_TRY_ASSIGN(sim::System degraded, sim::System::make(std::move(setup)));
  if (geometry::extent_count(degraded.setup().image.rank, degraded.setup().image.grid()) > kMostExtentsRebuilt)
    return Error{Errc::kUsage, fmt::format("--shape: more than {} extents; the rebuild of so many is not simulated",
                                           kMostExtentsRebuilt)};
  return Volumes{std::move(healthy), std::move(degraded)};
}

// What a window costs in one state.
struct State {
  std::string name;
  std::vector<double> delays_s;
  std::optional<double> rebuild_s;  // beside which the windows were read
};

sim::Interval mean_of(const std::vector<double>& delays_s) {
  sim::Interval interval = sim::confidence_interval(sim::batch_means(delays_s, kBatches));
  interval.mean = sim::summarize(delays_s).mean;
  return interval;
}

Result<std::vector<State>> simulate(const RebuildCommand& options, const Volumes& volumes, const sim::RebuildPlan& plan,
                                    const std::string& size) {
  sim::RebuildLoad load;
  MDFS_TRY_ASSIGN(load.length, named("--sizes", parse_window_size(volumes.healthy.setup().image, size)));
  load.windows = options.windows;
  MDFS_TRY_ASSIGN(load.think_s, named("--think", model::parse_time_s(options.think)));
  if (options.load) {
    const sim::RandomResult single = sim::read_random(volumes.healthy, load.length, kPositionsOfLoad, options.seed);
    MDFS_TRY_ASSIGN(load.windows_per_s,
                    named("--load", parse_rate(*options.load, single.window_bytes, single.maximum_sustainable())));
  }
  sim::LoadOptions alike;
  alike.length = load.length;
  alike.windows = options.windows;
  alike.seed = options.seed;
  const auto read = [&](const sim::System& system) {
    return load.windows_per_s ? sim::poisson(system, alike, *load.windows_per_s).delays_s
                              : sim::closed(system, alike, 1, load.think_s).delays_s;
  };
  std::vector<State> states = {{"healthy", read(volumes.healthy), {}}, {"degraded", read(volumes.degraded), {}}};
  sim::RebuildResult beside = sim::run_rebuild(volumes.degraded, plan, load, options.seed);
  states.push_back({"rebuilding", std::move(beside.delays_s), beside.rebuild_s});
  return states;
}

const std::vector<std::string>& columns() {
  static const std::vector<std::string> kColumns = {"size",  "state", "windows", "mean_s",    "half_width_95_s",
                                                    "p50_s", "p95_s", "max_s",   "rebuild_s", "rebuild_B/s"};
  return kColumns;
}

void report_state(const std::string& size, const State& state, const sim::RebuildPlan& plan, Report& report) {
  const sim::Summary summary = sim::summarize(state.delays_s);
  const sim::Interval mean = mean_of(state.delays_s);
  const auto bytes = static_cast<double>(plan.bytes);
  const bool rebuilds = state.rebuild_s && *state.rebuild_s > 0;
  report.row({size, state.name, std::to_string(summary.count), number_text(mean.mean), number_text(mean.half_width),
              number_text(summary.p50), number_text(summary.p95), number_text(summary.max),
              rebuilds ? number_text(*state.rebuild_s) : "", rebuilds ? number_text(bytes / *state.rebuild_s) : ""});
  nlohmann::ordered_json json = {{"size", size},         {"state", state.name},  {"windows", summary.count},
                                 {"mean_s", mean.mean},  {"p50_s", summary.p50}, {"p95_s", summary.p95},
                                 {"p99_s", summary.p99}, {"max_s", summary.max}};
  if (std::isfinite(mean.half_width)) json["half_width_95"] = mean.half_width;
  if (rebuilds) {
    json["rebuild_s"] = *state.rebuild_s;
    json["rebuild_bytes_per_s"] = bytes / *state.rebuild_s;
  }
  report.json()["states"].push_back(std::move(json));
}

// The image may be a sample: so long takes a disk that is as full as --filled says.
void report_full_disk(const model::Machine& machine, double bytes_per_s, Report& report) {
  const double bytes = model::head_capacity(machine) * machine.layout.filled;
  if (!(bytes > 0) || !(bytes_per_s > 0)) return;
  report.json()["full_disk"] = {{"bytes", bytes}, {"rebuild_s", bytes / bytes_per_s}};
  report.line(
      fmt::format("a disk with {:.4g} GB in use, at this rate: {:.3g} h", bytes / 1e9, bytes / bytes_per_s / 3600));
}

void report_protection(const sim::ParityLayout& parities, Report& report) {
  const std::uint64_t extents = parities.extents(), copies = parities.copies(), groups = parities.groups() - copies;
  const double stored = 1 + static_cast<double>(parities.groups()) / static_cast<double>(extents);
  report.json()["protection"] = {
      {"extents", extents}, {"grouped", extents - copies}, {"groups", groups}, {"copies", copies}, {"stored", stored}};
  report.line(fmt::format("{} of {} extents share {} parities, {} have copies: {:.3f} times the room of the extents",
                          extents - copies, extents, groups, copies, stored));
}

void report_plan(const Volumes& volumes, const sim::RebuildPlan& plan, const sim::RebuildResult& alone,
                 Report& report) {
  const sim::Setup& setup = volumes.degraded.setup();
  auto& json = report.json();
  json["lost"] = {{"disk", *setup.lost_disk}, {"extents", plan.extents}, {"bytes", plan.bytes}};
  report.line(fmt::format("disk {} is lost: {:.4g} MB in {} extents to rebuild on {} disks", *setup.lost_disk,
                          static_cast<double>(plan.bytes) / 1e6, plan.extents, setup.disks - 1));
  if (setup.width > 1) report_protection(volumes.degraded.parities(), report);
  report.line("disk     read MB  written MB");
  nlohmann::ordered_json disks = nlohmann::ordered_json::array();
  for (unsigned disk = 0; disk < plan.disks.size(); ++disk) {
    const sim::DiskShare& share = plan.disks[disk];
    disks.push_back({{"disk", disk}, {"read_bytes", share.read_bytes}, {"written_bytes", share.written_bytes}});
    if (disk == *setup.lost_disk) continue;
    report.line(fmt::format("{:>4} {:>11.4g} {:>11.4g}", disk, static_cast<double>(share.read_bytes) / 1e6,
                            static_cast<double>(share.written_bytes) / 1e6));
  }
  const double bytes_per_s = alone.rebuild_s > 0 ? static_cast<double>(plan.bytes) / alone.rebuild_s : 0;
  json["disks"] = std::move(disks);
  json["imbalance"] = plan.imbalance;
  json["alone"] = {{"rebuild_s", alone.rebuild_s}, {"rebuild_bytes_per_s", bytes_per_s}};
  report.line(fmt::format("the busiest disk has {:.3f} times the mean", plan.imbalance));
  report.line(fmt::format("alone: {}, {}", time_text(alone.rebuild_s), rate_text(bytes_per_s)));
  report_full_disk(setup.machine, bytes_per_s, report);
}

Status run_rebuild_command(const RebuildCommand& options) {
  MDFS_TRY_ASSIGN(const Volumes volumes, make_volumes(options));
  MDFS_TRY_ASSIGN(const sim::RebuildPlan plan, sim::plan_rebuild(volumes.degraded));
  if (plan.pieces.empty())
    return Error{Errc::kInvalidArgument, "no extent of the image lies on the lost disk; use a larger --shape"};
  Report report(options, "rebuild", &volumes.degraded);
  report.parameter("sizes", options.sizes);
  report.parameter("windows", options.windows);
  report.parameter("load", options.load ? nlohmann::ordered_json(*options.load) : nlohmann::ordered_json(nullptr));
  MDFS_TRY_ASSIGN(const double think_s, named("--think", model::parse_time_s(options.think)));
  report.parameter("think_s", think_s);
  report_plan(volumes, plan, sim::run_rebuild(volumes.degraded, plan, std::nullopt, options.seed), report);
  report.columns(columns());
  sim::Figure figure{.title = fmt::format("{}: windows beside a rebuild", volumes.healthy.setup().machine.name),
                     .x_label = "delay, ms",
                     .y_label = "cumulative probability",
                     .series = {}};
  unsigned colour = 0;
  for (const std::string& size : options.sizes) {
    MDFS_TRY_ASSIGN(const std::vector<State> states, simulate(options, volumes, plan, size));
    for (const State& state : states) {
      report_state(size, state, plan, report);
      sim::add_distribution(figure, size + ", " + state.name, state.delays_s, colour++);
    }
  }
  report.print();
  if (!options.plot.empty()) MDFS_TRY(write_figure(figure, options.plot));
  return {};
}

}  // namespace

void add_rebuild_command(SimProgram& program) {
  auto options = std::make_shared<RebuildCommand>();
  options->copies = 2;
  auto* command =
      program.app.add_subcommand("rebuild", "Rebuild a lost disk, and read windows before, without it and meanwhile");
  add_sim_options(*command, *options);
  command->add_option("--sizes,--size", options->sizes, "Comma-separated windows in pixels, slowest axis first")
      ->delimiter(',');
  command->add_option("--windows", options->windows, "Number of windows of each size and state, at least")
      ->check(whole_number(20, kMostWindowsBeside))
      ->capture_default_str();
  auto* load = command->add_option(
      "--load", options->load,
      "Windows at random times: a share of the sustainable load (0.5), windows (30/s) or bytes (6MB/s) "
      "(default: one at a time)");
  command->add_option("--think", options->think, "One at a time: from the arrival of a window to the next request")
      ->capture_default_str()
      ->excludes(load);
  command->callback([&program, options] { program.action = [options] { return run_rebuild_command(*options); }; });
}

}  // namespace mdfs::tools
