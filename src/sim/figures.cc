// One function a group of figures.
// SPDX-License-Identifier: Apache-2.0
#include "sim/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/paper_setup.h"

namespace mdfs::sim {
namespace {

constexpr double kMega = 1e6;
constexpr unsigned kFigureReplications = 4;

using Figures = std::vector<NamedFigure>;

std::vector<geometry::Coord> figure_sizes(const System& system) { return squares(system.setup().image, 128, 1536, 64); }

Series size_curve(const LatencyFit& fit, std::string name, Series::Style style) {
  Series series{.name = std::move(name), .style = style, .x = {}, .y = {}};
  for (std::size_t i = 0; i < fit.sizes_bytes.size(); ++i) {
    series.x.push_back(fit.sizes_bytes[i] / kMega);
    series.y.push_back(fit.delays_s[i]);
  }
  return series;
}

Series fitted_line(const LatencyFit& fit, std::string name) {
  const double last = fit.sizes_bytes.back();
  return {.name = std::move(name),
          .style = Series::Style::kDashed,
          .x = {0, last / kMega},
          .y = {fit.latency_s, fit.latency_s + last / fit.bytes_per_s}};
}

Status single_request(std::uint64_t seed, Figures& figures) {
  Figure six{.title = "4 disks: delay of windows at random (T800)",
             .x_label = "window, MB",
             .y_label = "delay, s",
             .series = {}};
  Figure seven{
      .title = "Delay by number of disks (T800)", .x_label = "window, MB", .y_label = "delay, s", .series = {}};
  for (const unsigned disks : {1U, 2U, 4U, 8U}) {
    MDFS_TRY_ASSIGN(const System system, preset_system("gigaview-t800", disks));
    const LatencyFit fit = fit_sizes(system, figure_sizes(system), 4 * kFitPositions, seed);
    seven.series.push_back(
        size_curve(fit, fmt::format("{} disk{}", disks, disks == 1 ? "" : "s"), Series::Style::kLine));
    if (disks != 4) continue;
    six.series.push_back(size_curve(fit, "simulated", Series::Style::kPoints));
    six.series.push_back(
        fitted_line(fit, fmt::format("{:.0f} ms + size / {:.2f} MB/s", fit.latency_s * 1e3, fit.bytes_per_s / kMega)));
  }
  Figure eight{.title = "Throughput by number of disks (T800)", .x_label = "disks", .y_label = "MB/s", .series = {}};
  Figure nine{.title = "Latency by number of disks (T800)", .x_label = "disks", .y_label = "ms", .series = {}};
  Series throughput{.name = "", .style = Series::Style::kLine, .x = {}, .y = {}};
  Series latency{.name = "", .style = Series::Style::kLine, .x = {}, .y = {}};
  for (unsigned disks = 1; disks <= 16; ++disks) {
    MDFS_TRY_ASSIGN(const System system, preset_system("gigaview-t800", disks));
    const LatencyFit fit = fit_squares(system, seed);
    throughput.x.push_back(disks);
    throughput.y.push_back(fit.bytes_per_s / kMega);
    latency.x.push_back(disks);
    latency.y.push_back(fit.latency_s * 1e3);
  }
  eight.series.push_back(std::move(throughput));
  nine.series.push_back(std::move(latency));
  figures.push_back({"1994-figure-06", std::move(six)});
  figures.push_back({"1994-figure-07", std::move(seven)});
  figures.push_back({"1994-figure-08", std::move(eight)});
  figures.push_back({"1994-figure-09", std::move(nine)});
  return {};
}

LoadOptions poisson_options(std::uint64_t seed) {
  return {.length = plane(512, 512),
          .windows = kPoissonWindows,
          .warm_up = 0.1,
          .replications = kFigureReplications,
          .seed = seed,
          .own_images = false};
}

// Mean delay against requested throughput, up to a share of what the system sustains.
Series load_curve(const System& system, std::string name, double maximum_bytes_per_s, double scale,
                  std::uint64_t seed) {
  Series series{.name = std::move(name), .style = Series::Style::kLine, .x = {}, .y = {}};
  constexpr double kWindowBytes = 512.0 * 512 * 3;
  for (int step = 1; step <= 18; ++step) {
    const double rate = 0.05 * step * maximum_bytes_per_s / kWindowBytes;
    const LoadResult result = poisson(system, poisson_options(seed), rate);
    series.x.push_back(scale * rate * kWindowBytes / kMega);
    series.y.push_back(result.mean.mean * 1e3);
    series.half_width.push_back(result.mean.half_width * 1e3);
  }
  return series;
}

Figure load_figure(std::string title) {
  return {.title = std::move(title), .x_label = "requested, MB/s", .y_label = "mean delay, ms", .series = {}};
}

Status multiple_requests(std::uint64_t seed, Figures& figures) {
  MDFS_TRY_ASSIGN(const System t800, preset_system("gigaview-t800", 4));
  const RandomResult single800 = read_random(t800, plane(512, 512), kRandomPositions, seed);
  Figure eleven = load_figure("512x512 windows under Poisson loads (T800, 4 disks)");
  eleven.series.push_back(load_curve(t800, "simulated", single800.maximum_sustainable(), 1, seed));
  figures.push_back({"1994-figure-11", std::move(eleven)});

  MDFS_TRY_ASSIGN(const System t9000, preset_system("gigaview-t9000-004", 4));
  const RandomResult single = read_random(t9000, plane(512, 512), kRandomPositions, seed);
  MDFS_TRY_ASSIGN(const System fixed, fixed_system(single.mean_delay_s));
  const Series gigaview = load_curve(t9000, "GigaView", single.maximum_sustainable(), 1, seed);
  Series server = load_curve(fixed, "fixed service time", single.throughput(), 1, seed);
  server.style = Series::Style::kDashed;
  Figure twelve = load_figure("GigaView and a fixed server of the same delay (T9000, 4 disks)");
  twelve.series = {gigaview, server};
  figures.push_back({"1994-figure-12", std::move(twelve)});
  Figure thirteen = load_figure("The same, the fixed server's load divided by the utilization");
  const double scale = 1 / utilization_of(single.use, "disk");
  for (double& x : server.x) x *= scale;
  thirteen.series = {gigaview, server};
  figures.push_back({"1994-figure-13", std::move(thirteen)});

  Figure fourteen = load_figure("Effect of the number of disks (T9000)");
  for (const unsigned disks : {4U, 8U, 12U, 16U}) {
    MDFS_TRY_ASSIGN(const System system, preset_system("gigaview-t9000-004", disks));
    const RandomResult one = read_random(system, plane(512, 512), kRandomPositions, seed);
    fourteen.series.push_back(load_curve(system, fmt::format("{} disks", disks), one.maximum_sustainable(), 1, seed));
  }
  fourteen.y_max = 2000;
  figures.push_back({"1994-figure-14", std::move(fourteen)});
  return {};
}

Status architectures(std::uint64_t seed, Figures& figures) {
  Figure three{.title = "GigaView (lines) and workstation cluster (dashed)",
               .x_label = "window, MB",
               .y_label = "delay, s",
               .series = {}};
  unsigned colour = 0;
  for (const unsigned disks : {4U, 8U, 12U, 16U}) {
    for (const std::string machine : {"gigaview-t9000-000", "dec-cluster"}) {
      MDFS_TRY_ASSIGN(const System system, preset_system(machine, disks));
      const bool cluster = machine == "dec-cluster";
      Series series = size_curve(fit_sizes(system, figure_sizes(system), kFitPositions, seed),
                                 cluster ? "" : fmt::format("{} disks", disks),
                                 cluster ? Series::Style::kDashed : Series::Style::kLine);
      series.colour = colour;
      three.series.push_back(std::move(series));
    }
    ++colour;
  }
  figures.push_back({"1995-figure-3", std::move(three)});
  return {};
}

Result<std::vector<double>> frame_delays(const std::string& machine, std::vector<Stream> streams, double slice_s,
                                         std::uint64_t seed) {
  MDFS_TRY_ASSIGN(const System system, frame_system(machine, 8, true));
  StreamsOptions options;
  options.streams = std::move(streams);
  options.slice_s = slice_s;
  options.slices = kTimeSlices;
  options.seed = seed;
  options.frame_extents = kFrameExtents;
  MDFS_TRY_ASSIGN(StreamsResult result, run_streams(system, options));
  return std::move(result.all_delays_s);
}

Figure delay_figure(std::string title) {
  return {.title = std::move(title), .x_label = "delay, ms", .y_label = "cumulative probability", .series = {}};
}

Status frame_streams(std::uint64_t seed, Figures& figures) {
  const std::vector<Stream> one = {{8, 0}};
  const std::vector<Stream> three = {{8, 0}, {7, 0}, {6, 0}};
  const std::array<std::pair<std::string, std::string>, 2> machines = {
      std::pair{std::string("gigaview-t9000-000"), std::string("GigaView")},
      std::pair{std::string("dec-cluster"), std::string("workstation cluster")}};
  Figure four = delay_figure("One stream of 32 frames/s");
  Figure six = delay_figure("Three streams in phase, 27 frames/s together");
  for (unsigned i = 0; i < machines.size(); ++i) {
    const auto& [machine, name] = machines[i];
    MDFS_TRY_ASSIGN(const std::vector<double> single, frame_delays(machine, one, 0.25, seed));
    add_distribution(four, name, single, i);
    MDFS_TRY_ASSIGN(const std::vector<double> multiple, frame_delays(machine, three, 0.776, seed));
    add_distribution(six, name, multiple, i);
    Figure five = delay_figure(fmt::format("{}: one stream of 4 to 40 frames/s", name));
    for (unsigned rate = 4; rate <= 40; rate += 6) {
      MDFS_TRY_ASSIGN(const std::vector<double> delays, frame_delays(machine, one, 8.0 / rate, seed));
      add_distribution(five, fmt::format("{} frames/s", rate), delays, (rate - 4) / 6);
    }
    std::erase_if(five.series, [](const Series& series) { return series.style == Series::Style::kArea; });
    five.x_max = 120;
    figures.push_back({fmt::format("1995-figure-5-{}", i == 0 ? "gigaview" : "workstation"), std::move(five)});
  }
  figures.push_back({"1995-figure-4", std::move(four)});
  figures.push_back({"1995-figure-6", std::move(six)});
  return {};
}

}  // namespace

Result<std::vector<NamedFigure>> paper_figures(std::uint64_t seed) {
  Figures figures;
  MDFS_TRY(single_request(seed, figures));
  MDFS_TRY(multiple_requests(seed, figures));
  MDFS_TRY(architectures(seed, figures));
  MDFS_TRY(frame_streams(seed, figures));
  return figures;
}

}  // namespace mdfs::sim
