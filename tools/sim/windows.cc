// mdfs-sim window, random, sweep: windows read from an idle machine.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "geometry/shape_text.h"
#include "geometry/window_spec.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "sim/experiment.h"
#include "support/ranges.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMaxPositions = 10'000'000;
constexpr std::size_t kMaxSweepRows = 10'000;

struct WindowOptions : SimOptions {
  std::string spec;
};

Status run_window(const WindowOptions& options) {
  MDFS_TRY_ASSIGN(const sim::System system, make_system(options));
  MDFS_TRY_ASSIGN(const geometry::Window window, geometry::parse_window(system.setup().image, options.spec));
  MDFS_TRY(sim::check_length(system.setup().image, window.length));
  if (window.channel)
    return Error{Errc::kInvalidArgument, "a machine reads whole pixels: a window cannot select a channel"};
  const sim::WindowResult result = sim::read_window(system, window, options.seed);
  const sim::WindowRecord& record = result.record;
  const double delay = record.delay_s();
  const double throughput = delay > 0 ? record.window_bytes / delay : 0;  // hits of a cache may cost nothing
  double most = 0;
  for (const sim::ResourceUse& use : result.use) most = std::max(most, use.mean_utilization());
  const double sustainable = most > 0 ? throughput / most : 0;

  Report report(options, "window", &system);
  report.parameter("window", geometry::to_spec(system.setup().image, window));
  auto& json = report.json();
  json["delay_s"] = delay;
  json["extents"] = record.extents;
  json["window_bytes"] = record.window_bytes;
  json["read_bytes"] = record.read_bytes;
  json["throughput_bytes_per_s"] = throughput;
  json["maximum_sustainable_bytes_per_s"] = sustainable;
  json["events"] = result.events;
  report.line(fmt::format("window {}: {} extents, {:.0f} bytes of {:.0f} read",
                          geometry::to_spec(system.setup().image, window), record.extents, record.window_bytes,
                          record.read_bytes));
  report.line(fmt::format("delay {}, {}; sustainable by formula {}", time_text(delay), rate_text(throughput),
                          rate_text(sustainable)));
  report.resources(result.use);
  if (options.csv) {
    report.columns({"resource", "instance", "utilization", "mean_queue", "max_queue", "served", "delay_s"});
    for (const sim::ResourceUse& use : result.use)
      for (std::size_t i = 0; i < use.instances.size(); ++i)
        report.row({use.name, std::to_string(i), number_text(use.instances[i].utilization),
                    number_text(use.instances[i].mean_queue), std::to_string(use.instances[i].max_queue),
                    std::to_string(use.instances[i].served), number_text(delay)});
  }
  report.print();
  if (!options.plot.empty())
    MDFS_TRY(write_figure(utilization_figure(fmt::format("{}: one window", system.setup().machine.name), result.use),
                          options.plot));
  return {};
}

struct RandomOptions : SimOptions {
  std::string size = "512x512";
  unsigned positions = 100;
};

Status run_random(const RandomOptions& options) {
  MDFS_TRY_ASSIGN(const sim::System system, make_system(options));
  MDFS_TRY_ASSIGN(const geometry::Coord size, named("--size", parse_window_size(system.setup().image, options.size)));
  const sim::RandomResult result = sim::read_random(system, size, options.positions, options.seed);
  const sim::Interval interval = sim::confidence_interval(result.delays_s);

  Report report(options, "random", &system);
  report.parameter("size", options.size);
  report.parameter("positions", options.positions);
  auto& json = report.json();
  report.delays(result.delays_s, &interval);
  json["throughput_bytes_per_s"] = result.throughput();
  json["maximum_sustainable_bytes_per_s"] = result.maximum_sustainable();
  report.line(fmt::format("throughput {}; sustainable by formula {}", rate_text(result.throughput()),
                          rate_text(result.maximum_sustainable())));
  report.resources(result.use);
  if (options.csv) {
    report.columns({"position", "delay_s"});
    for (std::size_t i = 0; i < result.delays_s.size(); ++i)
      report.row({std::to_string(i), number_text(result.delays_s[i])});
  }
  report.print();
  if (!options.plot.empty())
    MDFS_TRY(
        write_figure(delay_figure(fmt::format("{}: windows of {} at random", system.setup().machine.name, options.size),
                                  result.delays_s),
                     options.plot));
  return {};
}

struct SweepOptions : RandomOptions {
  std::vector<std::string> sizes = {"512x512"};
  std::vector<unsigned> disk_counts;
  std::vector<unsigned> row_offsets;
  std::vector<std::string> extents;
};

// One line of the sweep, and its point for the fit.
Status sweep_row(const SweepOptions& options, const SimOptions& shared, const std::string& size, Report& report,
                 std::vector<double>& bytes, std::vector<double>& delays) {
  MDFS_TRY_ASSIGN(const sim::System system, make_system(shared));
  MDFS_TRY_ASSIGN(const geometry::Coord length, named("--sizes", parse_window_size(system.setup().image, size)));
  const sim::RandomResult result = sim::read_random(system, length, options.positions, options.seed);
  const sim::Interval interval = sim::confidence_interval(result.delays_s);
  const sim::Setup& setup = system.setup();
  const std::string extent = geometry::shape_text(setup.image.rank, setup.image.extent);
  const std::string offset = shared.row_offset ? std::to_string(*shared.row_offset) : "machine";
  bytes.push_back(result.window_bytes);
  delays.push_back(result.mean_delay_s);
  double most = 0;
  for (const sim::ResourceUse& use : result.use) most = std::max(most, use.mean_utilization());
  report.row({std::to_string(setup.disks), extent, offset, size, number_text(result.mean_delay_s),
              number_text(interval.half_width), number_text(result.throughput()), number_text(most),
              sim::bottleneck(result.use), number_text(result.maximum_sustainable())});
  report.json()["rows"].push_back({{"disks", setup.disks},
                                   {"extent", extent},
                                   {"row_offset", offset},
                                   {"placement", system.placement_text()},
                                   {"size", size},
                                   {"delay_s", result.mean_delay_s},
                                   {"half_width_95", interval.half_width},
                                   {"throughput_bytes_per_s", result.throughput()},
                                   {"utilization", most},
                                   {"bottleneck", sim::bottleneck(result.use)},
                                   {"maximum_sustainable_bytes_per_s", result.maximum_sustainable()}});
  return {};
}

// Throughput against disks if those vary, else delay against size.
sim::Figure sweep_figure(const nlohmann::ordered_json& rows, const std::string& machine, bool by_disks) {
  sim::Figure figure{.title = machine,
                     .x_label = by_disks ? "disks" : "window, MB",
                     .y_label = by_disks ? "throughput, MB/s" : "delay, ms",
                     .series = {}};
  const auto varies = [&](const char* key) {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row[key] != rows.front()[key]; });
  };
  const bool names_extent = varies("extent");
  const bool names_offset = varies("row_offset");
  std::vector<std::string> order;  // of first appearance
  std::map<std::string, sim::Series> curves;
  for (const auto& row : rows) {
    std::string name =
        by_disks ? row["size"].get<std::string>() : fmt::format("{} disks", row["disks"].get<unsigned>());
    if (names_extent) name += ", extents " + row["extent"].get<std::string>();
    if (names_offset) name += ", row offset " + row["row_offset"].get<std::string>();
    if (!curves.contains(name)) order.push_back(name);
    const double delay = row["delay_s"].get<double>();
    const double throughput = row["throughput_bytes_per_s"].get<double>();
    sim::Series& curve = curves[name];
    curve.name = name;
    curve.x.push_back(by_disks ? row["disks"].get<double>() : throughput * delay / 1e6);
    curve.y.push_back(by_disks ? throughput / 1e6 : delay * 1e3);
    if (!by_disks)
      curve.half_width.push_back(row["half_width_95"].is_number() ? row["half_width_95"].get<double>() * 1e3 : 0);
  }
  for (const std::string& name : order) figure.series.push_back(std::move(curves[name]));
  return figure;
}

// All sizes with one machine, and the line through them.
Status sweep_sizes(const SweepOptions& options, const SimOptions& shared, Report& report) {
  std::vector<double> bytes;
  std::vector<double> delays;
  for (const std::string& size : options.sizes) MDFS_TRY(sweep_row(options, shared, size, report, bytes, delays));
  if (bytes.size() < 3) return {};
  const sim::Line line = sim::fit_line(bytes, delays);
  if (line.b <= 0) return {};
  report.json()["fits"].push_back({{"disks", shared.disks.value_or(0)},
                                   {"latency_s", line.a},
                                   {"throughput_bytes_per_s", 1 / line.b},
                                   {"r_squared", line.r_squared}});
  report.line(fmt::format("fit{}: delay = {} + size / {} (R^2 {:.4f})",
                          shared.disks ? fmt::format(", {} disks", *shared.disks) : "", time_text(line.a),
                          rate_text(1 / line.b), line.r_squared));
  return {};
}

// What all rows have in common, beside the shared parameters, of which some are lists here.
void sweep_parameters(const SweepOptions& options, const std::vector<unsigned>& disks, Report& report) {
  for (const char* varied : {"disks", "extent", "row_offset", "placement"}) report.parameter(varied, nullptr);
  report.parameter("disk_counts", disks);
  report.parameter("sizes", options.sizes);
  report.parameter("row_offsets", options.row_offsets);
  report.parameter("extents", options.extents);
  report.parameter("positions", options.positions);
}

Status run_sweep(const SweepOptions& options) {
  SimOptions first = options;
  if (!options.disk_counts.empty()) first.disks = options.disk_counts.front();
  if (!options.extents.empty()) first.extent = options.extents.front();
  if (!options.row_offsets.empty()) first.row_offset = options.row_offsets.front();
  MDFS_TRY_ASSIGN(const sim::System system, make_system(first));
  const model::Machine& machine = system.setup().machine;
  Report report(options, "sweep", nullptr);
  report.shared_parameters(system);
  report.columns({"disks", "extent", "row_offset", "size", "delay_s", "half_width_95_s", "throughput_B/s",
                  "utilization", "bottleneck", "sustainable_B/s"});
  const auto disks =
      options.disk_counts.empty() ? std::vector<unsigned>{options.disks.value_or(machine.disks)} : options.disk_counts;
  const auto extents = options.extents.empty() ? std::vector<std::string>{options.extent} : options.extents;
  std::vector<std::optional<unsigned>> offsets(options.row_offsets.begin(), options.row_offsets.end());
  if (offsets.empty()) offsets.push_back(options.row_offset);
  if (disks.size() * extents.size() * offsets.size() * options.sizes.size() > kMaxSweepRows)
    return Error{Errc::kUsage, fmt::format("a sweep has at most {} rows", kMaxSweepRows)};
  sweep_parameters(options, disks, report);
  for (const unsigned count : disks)
    for (const std::string& extent : extents)
      for (const auto& offset : offsets) {
        SimOptions shared = options;
        shared.disks = count;
        shared.extent = extent;
        shared.row_offset = offset;
        MDFS_TRY(sweep_sizes(options, shared, report));
      }
  report.print();
  if (!options.plot.empty())
    MDFS_TRY(write_figure(sweep_figure(report.json()["rows"], machine.name, disks.size() > 1), options.plot));
  return {};
}

}  // namespace

void add_window_commands(SimProgram& program) {
  auto window = std::make_shared<WindowOptions>();
  auto* command = program.app.add_subcommand("window", "Read one window from an idle machine");
  add_sim_options(*command, *window);
  command->add_option("WINDOW", window->spec, "X,Y,W,H, or axes as on a mount: y50+30,x100+40")->required();
  command->callback([&program, window] { program.action = [window] { return run_window(*window); }; });

  auto random = std::make_shared<RandomOptions>();
  command = program.app.add_subcommand("random", "Read windows at random positions, each from an idle machine");
  add_sim_options(*command, *random);
  command->add_option("--size", random->size, "Window in pixels, slowest axis first")->capture_default_str();
  command->add_option("--positions", random->positions, "Number of windows")
      ->check(whole_number(1, kMaxPositions))
      ->capture_default_str();
  command->callback([&program, random] { program.action = [random] { return run_random(*random); }; });

  auto sweep = std::make_shared<SweepOptions>();
  command = program.app.add_subcommand(
      "sweep", "Read random windows for all combinations of sizes, disks, row offsets and extents");
  add_sim_options(*command, *sweep);
  command->add_option("--sizes", sweep->sizes, "Comma-separated windows in pixels")->delimiter(',');
  command->add_option("--disk-counts", sweep->disk_counts, "Comma-separated numbers of disks")
      ->delimiter(',')
      ->check(whole_number(1, model::kMaxDisks));
  command->add_option("--row-offsets", sweep->row_offsets, "Comma-separated row offsets")
      ->delimiter(',')
      ->check(whole_number(0, model::kMaxDisks));
  command->add_option("--extents", sweep->extents, "Comma-separated extents in pixels")->delimiter(',');
  command->add_option("--positions", sweep->positions, "Number of windows for each row of the output")
      ->check(whole_number(1, kMaxPositions))
      ->capture_default_str();
  command->callback([&program, sweep] { program.action = [sweep] { return run_sweep(*sweep); }; });
}

}  // namespace mdfs::tools
