// Admission, and the delays of frames with and without a reservation.
// SPDX-License-Identifier: Apache-2.0
#include "streams_of_mount.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "geometry/window_spec.h"
#include "plot.h"
#include "report.h"
#include "sim/experiment.h"
#include "sim/mount_streams.h"
#include "streams/demand.h"
#include "support/ranges.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMostOthers = 1000;  // readers or writers
constexpr double kLeastSeconds = 0.1, kMostSeconds = 86400;

Result<unsigned> axis_of(const geometry::Geometry& image, const std::string& name) {
  if (name.empty()) return 0u;
  const std::string axes(image.axes.begin(), image.axes.begin() + image.rank);
  const std::size_t axis = name.size() == 1 ? axes.find(name) : std::string::npos;
  if (axis == std::string::npos)
    return Error{Errc::kUsage, fmt::format("--axis {}: the image has the axes {}", name, axes)};
  return static_cast<unsigned>(axis);
}

// As of `mdfs stream open`: by default the whole image, and one sample along an axis that is not named.
Result<geometry::Window> first_frame(const geometry::Geometry& image, const MountStreamOptions& options,
                                     std::size_t stream, unsigned axis) {
  const auto of_one = [&](geometry::Window window) {
    window.length[axis] = 1;
    window.start[axis] = options.step < 0 ? image.shape[axis] - 1 : 0;
    return window;
  };
  if (options.windows.empty()) return of_one(geometry::whole(image));
  const std::string& spec = options.windows.size() == 1 ? options.windows.front() : options.windows[stream];
  MDFS_TRY_ASSIGN(geometry::Window window, named("--window", geometry::parse_window(image, spec)));
  const char letter = image.axes[axis];
  if (!spec.starts_with(letter) && spec.find(fmt::format(",{}", letter)) == std::string::npos) window = of_one(window);
  MDFS_TRY(sim::check_length(image, window.length));
  if (window.channel) return Error{Errc::kUsage, "--window: a machine reads whole pixels, not a channel"};
  return window;
}

Result<sim::MountStreamsOptions> experiment_of(const geometry::Geometry& image, const MountStreamOptions& options,
                                               std::uint64_t seed) {
  const std::size_t count = options.rates.size();
  if (options.windows.size() > 1 && options.windows.size() != count)
    return Error{Errc::kUsage, fmt::format("--window: {} of them for {} streams; give one for all, or one for each",
                                           options.windows.size(), count)};
  MDFS_TRY_ASSIGN(const unsigned axis, axis_of(image, options.axis));
  sim::MountStreamsOptions experiment;
  for (std::size_t i = 0; i < count; ++i) {
    sim::MountStream stream;
    stream.axis = axis;
    stream.step = options.step;
    stream.rate = options.rates[i];
    stream.lookahead = options.lookahead;
    stream.drops = options.drops;
    stream.unchecked = options.unchecked;
    MDFS_TRY_ASSIGN(stream.window, first_frame(image, options, i, axis));
    // Streams of one window begin at different frames, so that they do not follow one another from disk to disk.
    if (options.windows.size() <= 1) {
      const std::uint64_t length = stream.window.length[axis], first = stream.window.start[axis] / length;
      const std::uint64_t ahead = options.step > 0 ? image.shape[axis] / length - first : first + 1;
      const std::uint64_t away = ahead / 2 * i / count * length;
      stream.window.start[axis] += options.step > 0 ? away : -away;
    }
    experiment.streams.push_back(stream);
  }
  experiment.other = {options.readers, {}, options.writers, options.scrub};
  MDFS_TRY_ASSIGN(experiment.other.reader_length,
                  named("--reader-size", parse_window_size(image, options.readers > 0 ? options.reader_size : "1")));
  experiment.limit = options.limit;
  experiment.seconds = options.seconds;
  experiment.seed = seed;
  return experiment;
}

// Of all streams together.
struct Frames {
  std::uint64_t all = 0, in_time = 0, late = 0, overdue = 0;
  double latest_s = 0;
  std::vector<double> read_s, ahead_s;
};

void add(Frames& sum, const sim::StreamFrames& one) {
  sum.all += one.all();
  sum.in_time += one.counts.in_time;
  sum.late += one.late();
  sum.overdue += one.overdue;
  for (const double ahead : one.ahead_s) sum.latest_s = std::max(sum.latest_s, -ahead);
  sum.read_s.insert(sum.read_s.end(), one.read_s.begin(), one.read_s.end());
  sum.ahead_s.insert(sum.ahead_s.end(), one.ahead_s.begin(), one.ahead_s.end());
}

nlohmann::ordered_json frames_json(const Frames& frames) {
  const sim::Summary read = sim::summarize(frames.read_s), ahead = sim::summarize(frames.ahead_s);
  return {{"frames", frames.all},
          {"in_time", frames.in_time},
          {"late", frames.late},
          {"of_these_never_read", frames.overdue},
          {"latest_s", frames.latest_s},
          {"read_s", {{"mean", read.mean}, {"p50", read.p50}, {"p95", read.p95}, {"p99", read.p99}, {"max", read.max}}},
          {"ahead_s", {{"min", ahead.min}, {"mean", ahead.mean}, {"p50", ahead.p50}}}};
}

void report_admission(const sim::MountStreamsOptions& experiment, const std::vector<sim::StreamAnswer>& answers,
                      Report& report) {
  auto& json = report.json();
  json["streams"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const sim::StreamAnswer& answer = answers[i];
    const streams::Admission& admission = answer.admission;
    json["streams"].push_back({{"rate", experiment.streams[i].rate},
                               {"lookahead", answer.lookahead},
                               {"accepted", admission.accepted},
                               {"runs", answer.runs},
                               {"busiest_disk", admission.busiest},
                               {"load", admission.load}});
    if (std::isfinite(admission.rate_that_fits)) json["streams"].back()["rate_that_fits"] = admission.rate_that_fits;
    if (admission.accepted) continue;
    report.line(fmt::format("stream {} is refused: disk {} would be busy for {:.3g} of the time; {:.4g} frames/s fit{}",
                            i, admission.busiest, admission.load, admission.rate_that_fits,
                            answer.runs ? ", and it runs all the same" : ""));
  }
  const streams::Loads loads = sim::reserved_loads(experiment, answers);
  json["reserved_loads"] = loads;
  const auto running = std::count_if(answers.begin(), answers.end(), [](const auto& answer) { return answer.runs; });
  double most = 0;
  for (const double load : loads) most = std::max(most, load);
  report.line(fmt::format("{} of {} streams run; the busiest disk is reserved for {:.3f} of the time", running,
                          answers.size(), most));
}

void report_frames(const std::string& name, const sim::MountStreamsOptions& experiment,
                   const std::vector<sim::StreamAnswer>& answers, const sim::MountStreamsResult& result, Report& report,
                   Frames& all) {
  auto& json = report.json()[name];
  nlohmann::ordered_json each = nlohmann::ordered_json::array();
  const auto row = [&](const std::string& stream, const std::string& rate, const Frames& frames) {
    const sim::Summary read = sim::summarize(frames.read_s);
    report.row({name, stream, rate, std::to_string(frames.all), std::to_string(frames.in_time),
                std::to_string(frames.late), number_text(frames.latest_s), number_text(read.mean),
                number_text(read.p50), number_text(read.p95), number_text(read.max)});
  };
  for (std::size_t i = 0; i < result.streams.size(); ++i) {
    if (!answers[i].runs) continue;
    Frames one;
    add(one, result.streams[i]);
    add(all, result.streams[i]);
    row(std::to_string(i), number_text(experiment.streams[i].rate), one);
    each.push_back(frames_json(one));
    each.back()["stream"] = i;
  }
  row("all", "", all);
  json = frames_json(all);
  json["streams"] = std::move(each);
  json["windows_of_readers"] = result.windows;
  json["windows_of_readers_per_s"] = static_cast<double>(result.windows) / result.seconds;
  json["seconds"] = result.seconds;
  json["written_bytes"] = result.written_bytes;
  json["scrubbed_bytes"] = result.scrubbed_bytes;
  for (const sim::ResourceUse& use : result.use)
    for (const sim::InstanceUse& one : use.instances) json["utilization"][use.name].push_back(one.utilization);
}

}  // namespace

void add_mount_stream_options(CLI::App& command, MountStreamOptions& options, const std::vector<std::string>& others) {
  auto* rate =
      command.add_option("--rate", options.rates, "Streams of a mount: frames a second, one number for each stream")
          ->delimiter(',')
          ->check(number_from(streams::kLeastRate, streams::kMostRate));
  for (const std::string& other : others) rate->excludes(command.get_option(other));
  command.add_option("--window", options.windows, "First frame, of all streams or one for each")->needs(rate);
  command.add_option("--axis", options.axis, "Axis along which frames follow one another (default: the slowest)")
      ->needs(rate)
      ->check([](const std::string& name) { return name.empty() ? "no axis" : ""; });
  command.add_option("--step", options.step, "Frames from one to the next; below 0: backwards")
      ->needs(rate)
      ->check(step_number(INT32_MAX));
  command.add_option("--lookahead", options.lookahead, "Frames that are read ahead (default: as on a mount)")
      ->needs(rate)
      ->check(whole_number(1, streams::kMostLookahead));
  command.add_flag("--drop", options.drops, "Leave out frames whose time is over")->needs(rate);
  command.add_flag("--unchecked,--force", options.unchecked, "Open streams that admission refuses, too")->needs(rate);
  command.add_option("--limit", options.limit, "Share of the time of each disk for all streams")
      ->needs(rate)
      ->check(number_from(streams::kLeastLimit, streams::kMostLimit))
      ->capture_default_str();
  command.add_option("--seconds", options.seconds, "Time for which each stream runs")
      ->needs(rate)
      ->check(number_from(kLeastSeconds, kMostSeconds))
      ->capture_default_str();
  command.add_option("--readers", options.readers, "Readers of windows at random places, each as fast as it can")
      ->needs(rate)
      ->check(whole_number(0, kMostOthers));
  command.add_option("--reader-size", options.reader_size, "Window of these readers")
      ->needs(rate)
      ->capture_default_str();
  command.add_option("--writers", options.writers, "Writers, each as fast as it can")
      ->needs(rate)
      ->check(whole_number(0, kMostOthers));
  command.add_flag("--scrub", options.scrub, "A scrub runs")->needs(rate);
}

void mount_stream_parameters(const MountStreamOptions& options, Report& report) {
  report.parameter("rate", options.rates);
  report.parameter("window", options.windows);
  report.parameter("axis", options.axis);
  report.parameter("step", options.step);
  report.parameter("lookahead", options.lookahead);
  report.parameter("drop", options.drops);
  report.parameter("unchecked", options.unchecked);
  report.parameter("limit", options.limit);
  report.parameter("seconds", options.seconds);
  report.parameter("readers", options.readers);
  report.parameter("reader_size", options.reader_size);
  report.parameter("writers", options.writers);
  report.parameter("scrub", options.scrub);
}

Status run_streams_of_mount(const SimOptions& shared, const MountStreamOptions& options, Report& report,
                            const sim::System& system) {
  if (!system.reads_as_mount())
    return Error{Errc::kInvalidArgument, "--rate: the machine must place and read extents as a mount does"};
  if (system.is_protected())
    return Error{Errc::kUsage, "--copies 2, --parity 1: streams of a mount are simulated with one copy of each extent"};
  if (system.setup().cache_bytes != 0) return Error{Errc::kUsage, "--cache: streams read all frames from the disks"};
  MDFS_TRY_ASSIGN(const sim::MountStreamsOptions experiment, experiment_of(system.setup().image, options, shared.seed));
  MDFS_TRY_ASSIGN(const std::vector<sim::StreamAnswer> answers, sim::ask_admission(system, experiment));
  report_admission(experiment, answers, report);
  report.columns({"reservation", "stream", "rate", "frames", "in_time", "late", "latest_s", "read_mean_s", "read_p50_s",
                  "read_p95_s", "read_max_s"});
  sim::Figure figure{.title = fmt::format("{}: frames of {} streams", system.setup().machine.name, answers.size()),
                     .x_label = "ms ahead of the deadline",
                     .y_label = "cumulative probability",
                     .series = {}};
  unsigned colour = 0;
  for (const auto& [name, reservation] :
       {std::pair("reserved", sim::Reservation::kReserved), std::pair("unreserved", sim::Reservation::kNone)}) {
    const sim::MountStreamsResult result = sim::run_mount_streams(system, experiment, answers, reservation);
    Frames all;
    report_frames(name, experiment, answers, result, report, all);
    sim::add_distribution(figure, name, all.ahead_s, colour++);
  }
  report.print();
  if (!shared.plot.empty()) MDFS_TRY(write_figure(figure, shared.plot));
  return {};
}

}  // namespace mdfs::tools
