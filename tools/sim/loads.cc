// mdfs-sim poisson, closed, saturate, streams: many windows at a time.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "geometry/shape_text.h"
#include "model/quantity.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "sim/experiment.h"
#include "streams_of_mount.h"
#include "support/ranges.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMaxLoadWindows = 10'000'000;
constexpr unsigned kMaxLoadReplications = 10'000;
constexpr unsigned kMaxClients = 1'000'000;
constexpr unsigned kFormulaPositions = 100;
constexpr double kNearlyFull = 0.999;
constexpr std::uint64_t kFramesOfAnImage = 4096;

struct LoadCommand : SimOptions {
  std::string size = "512x512";
  sim::LoadOptions load;
};

void add_load_options(CLI::App& command, LoadCommand& options) {
  add_sim_options(command, options);
  command.add_option("--size", options.size, "Window in pixels, slowest axis first")->capture_default_str();
  command.add_option("--windows", options.load.windows, "Number of windows in a replication")
      ->check(whole_number(1, kMaxLoadWindows))
      ->capture_default_str();
  command.add_option("--replications", options.load.replications, "Number of independent runs, for the error bar")
      ->check(whole_number(1, kMaxLoadReplications))
      ->capture_default_str();
  command.add_flag("--own-images", options.load.own_images, "Give each client an image of its own");
}

void add_warm_up(CLI::App& command, LoadCommand& options) {
  command.add_option("--warm-up", options.load.warm_up, "Share of the windows to leave out at the start")
      ->check(number_from(0, 0.9))
      ->capture_default_str();
}

void load_parameters(const LoadCommand& options, Report& report) {
  report.parameter("size", options.size);
  report.parameter("windows", options.load.windows);
  report.parameter("warm_up", options.load.warm_up);
  report.parameter("replications", options.load.replications);
  report.parameter("own_images", options.load.own_images);
}

// The JSON of one load; the whole report has a list of them.
nlohmann::ordered_json load_json(const sim::LoadResult& result) {
  const sim::Summary summary = sim::summarize(result.delays_s);
  nlohmann::ordered_json json = {{"requested_bytes_per_s", result.requested_bytes_per_s},
                                 {"done_bytes_per_s", result.done_bytes_per_s},
                                 {"delay_s",
                                  {{"count", summary.count},
                                   {"mean", summary.mean},
                                   {"p50", summary.p50},
                                   {"p95", summary.p95},
                                   {"p99", summary.p99},
                                   {"max", summary.max}}},
                                 {"bottleneck", sim::bottleneck(result.use)}};
  const sim::Histogram bins = sim::histogram(result.delays_s, kHistogramBins);
  json["histogram"] = {{"low_s", bins.low}, {"width_s", bins.width}, {"counts", bins.counts}};
  if (std::isfinite(result.mean.half_width)) json["delay_s"]["half_width_95"] = result.mean.half_width;
  for (const sim::ResourceUse& use : result.use) {
    for (const sim::InstanceUse& one : use.instances) {
      json["utilization"][use.name].push_back(one.utilization);
      json["mean_queue"][use.name].push_back(one.mean_queue);
    }
  }
  return json;
}

const std::vector<std::string>& load_columns() {
  static const std::vector<std::string> kColumns = {"load",      "asked_B/s", "done_B/s", "mean_s", "half_width_95_s",
                                                    "p50_s",     "p95_s",     "p99_s",    "max_s",  "utilization",
                                                    "bottleneck"};
  return kColumns;
}

void load_row(const std::string& name, const sim::LoadResult& result, Report& report) {
  const sim::Summary summary = sim::summarize(result.delays_s);
  const std::string busiest = sim::bottleneck(result.use);
  report.row({name, number_text(result.requested_bytes_per_s), number_text(result.done_bytes_per_s),
              number_text(summary.mean), number_text(result.mean.half_width), number_text(summary.p50),
              number_text(summary.p95), number_text(summary.p99), number_text(summary.max),
              number_text(sim::utilization_of(result.use, busiest)), busiest});
  report.json()["loads"].push_back(load_json(result));
  report.json()["loads"].back()["load"] = name;
}

struct PoissonCommand : LoadCommand {
  std::vector<std::string> loads = {"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"};
};

Status run_poisson(const PoissonCommand& options) {
  MDFS_TRY_ASSIGN(const sim::System system, make_system(options));
  sim::LoadOptions load = options.load;
  load.seed = options.seed;
  MDFS_TRY_ASSIGN(load.length, named("--size", parse_window_size(system.setup().image, options.size)));
  const sim::RandomResult single = sim::read_random(system, load.length, kFormulaPositions, options.seed);
  Report report(options, "poisson", &system);
  load_parameters(options, report);
  report.parameter("loads", options.loads);
  report.json()["maximum_sustainable_bytes_per_s"] = single.maximum_sustainable();
  report.line(fmt::format("sustainable by formula {}", rate_text(single.maximum_sustainable())));
  report.columns(load_columns());
  sim::Figure figure{.title = fmt::format("{}: Poisson loads", system.setup().machine.name),
                     .x_label = "requested, MB/s",
                     .y_label = "mean delay, ms",
                     .series = {}};
  sim::Series curve{.name = "", .style = sim::Series::Style::kLine, .x = {}, .y = {}};
  for (const std::string& text : options.loads) {
    MDFS_TRY_ASSIGN(const double rate,
                    named("--loads", parse_rate(text, single.window_bytes, single.maximum_sustainable())));
    const sim::LoadResult result = sim::poisson(system, load, rate);
    load_row(text, result, report);
    if (rate * single.window_bytes > single.maximum_sustainable() * kNearlyFull)
      report.line(fmt::format("load {}: more than is sustainable; the delay grows with the length of the run", text));
    curve.x.push_back(result.requested_bytes_per_s / 1e6);
    curve.y.push_back(result.mean.mean * 1e3);
    curve.half_width.push_back(result.mean.half_width * 1e3);
    if (options.loads.size() == 1)
      figure = delay_figure(fmt::format("{}: load {}", system.setup().machine.name, text), result.delays_s);
  }
  if (options.loads.size() > 1) figure.series.push_back(std::move(curve));
  report.print();
  if (!options.plot.empty()) MDFS_TRY(write_figure(figure, options.plot));
  return {};
}

struct ClosedCommand : LoadCommand {
  std::vector<unsigned> clients = {1, 2, 4, 8};
  std::string think = "0 s";
};

Status run_closed(const ClosedCommand& options) {
  MDFS_TRY_ASSIGN(const sim::System system, make_system(options));
  sim::LoadOptions load = options.load;
  load.seed = options.seed;
  MDFS_TRY_ASSIGN(load.length, named("--size", parse_window_size(system.setup().image, options.size)));
  MDFS_TRY_ASSIGN(const double think_s, named("--think", model::parse_time_s(options.think)));
  Report report(options, "closed", &system);
  load_parameters(options, report);
  report.parameter("clients", options.clients);
  report.parameter("think_s", think_s);
  report.columns(load_columns());
  sim::Figure figure{.title = fmt::format("{}: clients in a closed loop", system.setup().machine.name),
                     .x_label = "clients",
                     .y_label = "throughput, MB/s",
                     .series = {}};
  sim::Series curve{.name = "", .style = sim::Series::Style::kLine, .x = {}, .y = {}};
  for (const unsigned clients : options.clients) {
    if (clients > load.windows)
      return Error{Errc::kUsage, fmt::format("--clients {}: must be at most --windows, {}", clients, load.windows)};
    const sim::LoadResult result = sim::closed(system, load, clients, think_s);
    load_row(fmt::format("{} clients", clients), result, report);
    curve.x.push_back(clients);
    curve.y.push_back(result.done_bytes_per_s / 1e6);
  }
  figure.series.push_back(std::move(curve));
  report.print();
  if (!options.plot.empty()) MDFS_TRY(write_figure(figure, options.plot));
  return {};
}

Status run_saturate(const LoadCommand& options) {
  MDFS_TRY_ASSIGN(const sim::System system, make_system(options));
  sim::LoadOptions load = options.load;
  load.seed = options.seed;
  MDFS_TRY_ASSIGN(load.length, named("--size", parse_window_size(system.setup().image, options.size)));
  const sim::RandomResult single = sim::read_random(system, load.length, kFormulaPositions, options.seed);
  const sim::LoadResult result = sim::saturate(system, load);
  const sim::Interval interval = sim::confidence_interval(result.replication_throughput);
  Report report(options, "saturate", &system);
  load_parameters(options, report);
  auto& json = report.json();
  json["throughput_bytes_per_s"] = interval.mean;
  if (std::isfinite(interval.half_width)) json["half_width_95"] = interval.half_width;
  json["maximum_sustainable_bytes_per_s"] = single.maximum_sustainable();
  json["windows_per_s"] = interval.mean / single.window_bytes;
  json["events"] = result.events;
  report.line(fmt::format("throughput of a backlog {}{}, {:.4g} windows/s; sustainable by formula {}",
                          rate_text(interval.mean),
                          std::isfinite(interval.half_width) ? " +- " + rate_text(interval.half_width) + " (95 %)" : "",
                          interval.mean / single.window_bytes, rate_text(single.maximum_sustainable())));
  report.resources(result.use);
  if (options.csv) {
    report.columns({"replication", "throughput_B/s"});
    for (std::size_t i = 0; i < result.replication_throughput.size(); ++i)
      report.row({std::to_string(i), number_text(result.replication_throughput[i])});
  }
  report.print();
  if (!options.plot.empty())
    MDFS_TRY(write_figure(utilization_figure(fmt::format("{}: backlog", system.setup().machine.name), result.use),
                          options.plot));
  return {};
}

struct StreamsCommand : SimOptions {
  std::vector<unsigned> frames = {8};
  std::string slice = "1 s";
  unsigned slices = 1000;
  unsigned skipped = 2;
  std::string frame;
  unsigned frame_extents = 8;
  bool stagger = false;
  bool own_images = false;
  MountStreamOptions mount;
};

// With --frame: frames of so many bytes one after another, cut into equal extents, one after another on the disks.
Result<sim::System> stream_system(const StreamsCommand& options) {
  if (options.frame.empty()) return make_system(options);
  MDFS_TRY_ASSIGN(const double bytes, named("--frame", model::parse_size_bytes(options.frame)));
  const double extent = bytes / options.frame_extents;
  if (!(extent >= 1) || extent != std::floor(extent) || bytes > 1e15)
    return Error{Errc::kUsage, fmt::format("--frame {} is not cut into {} equal extents of whole bytes", options.frame,
                                           options.frame_extents)};
  SimOptions shared = options;
  shared.shape = fmt::format("{}", static_cast<std::uint64_t>(bytes) * kFramesOfAnImage);
  shared.extent = fmt::format("{}", static_cast<std::uint64_t>(extent));
  shared.bytes_per_pixel = 1;
  return make_system(shared);
}

void stream_parameters(const StreamsCommand& options, Report& report) {
  report.parameter("frames", options.frames);
  report.parameter("slices", options.slices);
  report.parameter("skip", options.skipped);
  report.parameter("frame", options.frame);
  report.parameter("stagger", options.stagger);
  report.parameter("own_images", options.own_images);
  mount_stream_parameters(options.mount, report);
}

Status run_streams_command(const StreamsCommand& options) {
  MDFS_TRY_ASSIGN(const sim::System system, stream_system(options));
  if (!options.mount.rates.empty()) {
    Report report(options, "streams", &system);
    stream_parameters(options, report);
    return run_streams_of_mount(options, options.mount, report, system);
  }
  sim::StreamsOptions streams;
  MDFS_TRY_ASSIGN(streams.slice_s, named("--slice", model::parse_time_s(options.slice)));
  if (streams.slice_s <= 0)
    return Error{Errc::kUsage, fmt::format("--slice {}: must be longer than 0 s", options.slice)};
  streams.slices = options.slices;
  streams.skipped = options.skipped;
  streams.seed = options.seed;
  streams.own_images = options.own_images;
  streams.frame_extents = options.frame.empty() ? 1 : options.frame_extents;
  const auto count = static_cast<double>(options.frames.size());
  for (std::size_t i = 0; i < options.frames.size(); ++i) {
    const double gap = streams.slice_s / options.frames[i];
    streams.streams.push_back({options.frames[i], options.stagger ? gap * static_cast<double>(i) / count : 0});
  }
  MDFS_TRY_ASSIGN(const sim::StreamsResult result, sim::run_streams(system, streams));
  Report report(options, "streams", &system);
  stream_parameters(options, report);
  report.parameter("slice_s", streams.slice_s);
  report.parameter("frame_extents", streams.frame_extents);
  auto& json = report.json();
  json["frames_per_s"] = result.frames_per_s;
  json["requested_bytes_per_s"] = result.bytes_per_s;
  json["late_frames"] = result.late;
  report.line(fmt::format("{:.4g} frames/s, {}; {} of {} frames later than the next one's turn", result.frames_per_s,
                          rate_text(result.bytes_per_s), result.late, result.all_delays_s.size()));
  sim::Interval interval = result.mean;
  report.delays(result.all_delays_s, &interval);
  report.resources(result.use);
  report.columns({"stream", "frames_per_slice", "mean_s", "p50_s", "p95_s", "p99_s", "max_s"});
  sim::Figure figure{.title = fmt::format("{}: delay of frames", system.setup().machine.name),
                     .x_label = "delay, ms",
                     .y_label = "cumulative probability",
                     .series = {}};
  for (unsigned i = 0; i < result.delays_s.size(); ++i) {
    const sim::Summary one = sim::summarize(result.delays_s[i]);
    report.row({std::to_string(i), std::to_string(options.frames[i]), number_text(one.mean), number_text(one.p50),
                number_text(one.p95), number_text(one.p99), number_text(one.max)});
    json["streams"].push_back({{"frames_per_slice", options.frames[i]},
                               {"mean_s", one.mean},
                               {"p50_s", one.p50},
                               {"p95_s", one.p95},
                               {"p99_s", one.p99},
                               {"max_s", one.max}});
    sim::add_distribution(figure, fmt::format("stream {}", i), result.delays_s[i], i);
  }
  report.print();
  if (!options.plot.empty()) MDFS_TRY(write_figure(figure, options.plot));
  return {};
}

void add_streams(SimProgram& program) {
  auto streams = std::make_shared<StreamsCommand>();
  auto* command = program.app.add_subcommand("streams", "Request streams of frames at fixed times");
  add_sim_options(*command, *streams);
  command->add_option("--frames", streams->frames, "Frames per time slice, one number for each stream")
      ->delimiter(',')
      ->check(whole_number(1, kMaxLoadWindows));
  command->add_option("--slice", streams->slice, "Length of a time slice, such as \"776 ms\"")->capture_default_str();
  command->add_option("--slices", streams->slices, "Number of time slices")
      ->check(whole_number(1, kMaxLoadWindows))
      ->capture_default_str();
  command->add_option("--skip", streams->skipped, "Number of slices at the start that do not count")
      ->check(whole_number(0, kMaxLoadWindows))
      ->capture_default_str();
  auto* frame = command->add_option("--frame", streams->frame,
                                    "Bytes of a frame, such as \"400 KiB\" (default: a plane of a three-axis --shape)");
  for (const char* other : {"--shape", "--extent", "--bytes-per-pixel"}) frame->excludes(command->get_option(other));
  command->add_option("--frame-extents", streams->frame_extents, "Number of extents in a --frame")
      ->check(whole_number(1, 1U << 20))
      ->capture_default_str();
  command->add_flag("--stagger", streams->stagger, "Begin the streams one after another, not in phase");
  command->add_flag("--own-images", streams->own_images, "Give each stream an image of its own");
  add_mount_stream_options(
      *command, streams->mount,
      {"--frames", "--slice", "--slices", "--skip", "--frame", "--frame-extents", "--stagger", "--own-images"});
  command->callback([&program, streams] { program.action = [streams] { return run_streams_command(*streams); }; });
}

}  // namespace

void add_load_commands(SimProgram& program) {
  auto poisson = std::make_shared<PoissonCommand>();
  poisson->load.replications = 5;
  auto* command = program.app.add_subcommand("poisson", "Request windows at random times");
  add_load_options(*command, *poisson);
  add_warm_up(*command, *poisson);
  command
      ->add_option("--loads", poisson->loads, "Shares of the sustainable load (0.7), windows (30/s) or bytes (6MB/s)")
      ->delimiter(',');
  command->callback([&program, poisson] { program.action = [poisson] { return run_poisson(*poisson); }; });

  auto closed = std::make_shared<ClosedCommand>();
  closed->load.windows = 1000;
  closed->load.replications = 5;
  command =
      program.app.add_subcommand("closed", "Let each client request its next window after the last one has arrived");
  add_load_options(*command, *closed);
  add_warm_up(*command, *closed);
  command->add_option("--clients", closed->clients, "Comma-separated numbers of clients")
      ->delimiter(',')
      ->check(whole_number(1, kMaxClients));
  command->add_option("--think", closed->think, "Time from the arrival of a window to the next request")
      ->capture_default_str();
  command->callback([&program, closed] { program.action = [closed] { return run_closed(*closed); }; });

  auto saturate = std::make_shared<LoadCommand>();
  saturate->load.windows = 400;
  saturate->load.replications = 5;
  saturate->load.warm_up = 0;
  command = program.app.add_subcommand("saturate", "Request all windows at once, and measure the throughput");
  add_load_options(*command, *saturate);
  command->callback([&program, saturate] { program.action = [saturate] { return run_saturate(*saturate); }; });

  add_streams(program);
}

}  // namespace mdfs::tools
