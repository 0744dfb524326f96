// mdfs-sim compare: the same windows in the model and on a mount.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "clients.h"
#include "commands.h"
#include "geometry/extent_grid.h"
#include "geometry/shape_text.h"
#include "geometry/window_spec.h"
#include "model/trace.h"
#include "mount.h"
#include "options.h"
#include "plot.h"
#include "random_windows.h"
#include "report.h"
#include "sim/agreement.h"
#include "sim/experiment.h"
#include "support/interruption.h"
#include "support/ranges.h"
#include "volume.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMaxWindows = 100'000;
constexpr unsigned kReplications = 50;      // of a machine with randomness
constexpr std::size_t kReadAgain = 10;      // windows
constexpr const char* kTraceRow = "trace";  // in the column of sizes

struct CompareOptions : SimOptions {
  std::string image;
  std::vector<std::string> sizes = {"512x512"};
  unsigned windows = 20;
  unsigned warm_up = 2;
  std::vector<unsigned> disk_counts = {1, 2, 4, 8};
  std::string scratch = std::filesystem::temp_directory_path();
  double tolerance = 0.1;
  unsigned clients = 1;
  std::string trace;         // empty: windows at random
  std::string out_of_place;  // an option that is for volumes that are made, beside an image that is there
};

struct Comparison {
  unsigned disks = 0;
  std::string extent;
  std::string size;
  double window_bytes = 0;
  std::size_t clients = 1;
  sim::ComparedDelays delays;
  double predicted_s = 0;       // mean, of a new image: what window and random print without a mount
  std::vector<double> again_s;  // some of the same windows from the cache of the mount
  std::uint64_t cached_extents = 0;
  std::uint64_t late_requests = 0;  // of modelled disks: the disks below were slower
  std::size_t other_plans = 0;      // windows for which the mount plans other requests than the simulator
  std::uint64_t misplaced = 0;      // extents that lie on another disk than the placement says
  std::uint64_t stored = 0;         // extents that are no holes
  std::string bottleneck;
  bool modelled = false;

  sim::Agreement mean;
  sim::Agreement p50;
  sim::Agreement p95;

  sim::Within verdict(double tolerance) const {
    return sim::worst_of(std::array{mean.verdict(tolerance), p50.verdict(tolerance), p95.verdict(tolerance)});
  }
  // The computer alone takes longer than the error that is looked for.
  bool machine_is_faster_than_computer(double tolerance) const {
    return sim::summarize(again_s).mean > tolerance * mean.simulated_s;
  }
};

bool same_plan(const sim::System& system, const geometry::Window& window, const MountPlan& plan) {
  std::vector<std::uint64_t> requests(plan.requests.size());
  std::vector<std::uint64_t> bytes(plan.bytes.size());
  for (const sim::Request& request : system.split(window, 0).requests) {
    ++requests[request.disk];
    bytes[request.disk] += static_cast<std::uint64_t>(request.full_bytes);
  }
  return requests == plan.requests && bytes == plan.bytes;
}

// Extents that lie elsewhere than the simulator's placement, from the first extent's disk on, says.
std::uint64_t count_misplaced(const sim::System& fresh, const sim::StoredImage& stored, std::uint64_t base) {
  const geometry::ByteGeometry bytes = geometry::byte_geometry(fresh.setup().image);
  std::uint64_t misplaced = 0;
  for (std::size_t number = 0; number < stored.places.size(); ++number) {
    const sim::ExtentPlace& place = stored.places[number];
    if (place.stored_bytes == 0) continue;
    misplaced += place.disk != fresh.layout().disk_of(geometry::extent_coord(bytes, number), base) ? 1 : 0;
  }
  return misplaced;
}

// Mean stored size of the extents as a share of their bytes; a raw image has none.
std::optional<double> compressed_share(const geometry::Geometry& image, const sim::StoredImage& stored) {
  if (image.codec == geometry::Codec::kRaw) return std::nullopt;
  double bytes = 0, extents = 0;
  for (const sim::ExtentPlace& place : stored.places) {
    bytes += static_cast<double>(place.stored_bytes);
    extents += place.stored_bytes > 0 ? 1 : 0;
  }
  if (extents == 0) return 1;
  return std::min(bytes / extents / static_cast<double>(image.extent_bytes()), model::kMaxCompressedShare);
}

// As the simulator sees the mounted image: whole samples of so many bytes.
Result<geometry::Geometry> simulated_image(const geometry::Geometry& image, const std::string& path) {
  if (image.sample_bytes() > geometry::kMaxChannels)
    return Error{Errc::kNotSupported, fmt::format("{}: samples of {} bytes; at most {} are simulated", path,
                                                  image.sample_bytes(), geometry::kMaxChannels)};
  geometry::Geometry result = image;
  result.type = geometry::ElementType::kU8;
  result.channels = static_cast<unsigned>(image.sample_bytes());
  result.codec = geometry::Codec::kRaw;
  MDFS_TRY(geometry::check(result));
  return result;
}

// An image on a mount, and what the simulator takes it for.
struct Subject {
  MountedImage mounted;
  sim::System system;  // with the image as it lies
  sim::System fresh;   // with a new image of this size, which the simulator places itself
  std::uint64_t misplaced = 0;
};

Result<Subject> subject_of(const CompareOptions& options, const model::Machine& machine, const std::string& path) {
  MDFS_TRY_ASSIGN(MountedImage mounted, MountedImage::open(path));
  if (mounted.modelled_hash() && *mounted.modelled_hash() != model::hash_text(machine))
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: its disks are modelled as another machine ({}) than {} ({})", path,
                             *mounted.modelled_hash(), machine.name, model::hash_text(machine))};
  sim::Setup setup;
  setup.machine = model::as_disks(machine);
  if (setup.machine.stages.empty())
    return Error{Errc::kInvalidArgument,
                 fmt::format("machine {}: all its stages are per window, and disks see no windows", machine.name)};
  setup.disks = mounted.disks();
  MDFS_TRY_ASSIGN(setup.image, simulated_image(mounted.geometry(), path));
  MDFS_TRY_ASSIGN(setup.stored, mounted.stored());
  if (!options.trace.empty()) setup.cache_bytes = mounted.cache_bytes();  // a trace may read extents again
  MDFS_TRY_ASSIGN(sim::System system, sim::System::make(setup));
  sim::Setup by_placement = setup;
  by_placement.stored = nullptr;
  by_placement.compressed_share = compressed_share(mounted.geometry(), *setup.stored);
  by_placement.machine.layout.kind = model::Layout::Kind::kExtents;
  by_placement.machine.layout.requests = model::Layout::Requests::kMount;
  if (!options.image.empty()) by_placement.machine.layout.row_offset.clear();
  MDFS_TRY_ASSIGN(sim::System fresh, sim::System::make(by_placement));
  const std::uint64_t misplaced = count_misplaced(fresh, *setup.stored, mounted.base());
  return Subject{std::move(mounted), std::move(system), std::move(fresh), misplaced};
}

// The delay of each window, in replications of the machine's randomness.
std::vector<std::vector<double>> simulate(const sim::System& system, std::span<const Reading> readings,
                                          std::uint64_t seed, std::string& bottleneck) {
  const unsigned replications = system.route().is_random() ? kReplications : 1;
  const sim::LoadResult result = sim::replay({&system, 1}, entries_of(readings), seed, replications);
  bottleneck = sim::bottleneck(result.use);
  std::vector<std::vector<double>> runs;
  for (auto at = result.delays_s.begin(); at != result.delays_s.end();
       at += static_cast<std::ptrdiff_t>(readings.size()))
    runs.emplace_back(at, at + static_cast<std::ptrdiff_t>(readings.size()));
  return runs;
}

// Without the windows that warm up.
std::vector<double> counted(const std::vector<double>& delays, unsigned warm_up) {
  return {delays.begin() + warm_up, delays.end()};
}

// The last windows once more, by the same clients at once: the first time their extents come into the cache, whatever
// was in it.
Result<std::vector<double>> read_again(const std::string& path, std::span<const Reading> readings,
                                       std::size_t clients) {
  const std::size_t count = std::min(readings.size(), std::max(kReadAgain, clients));
  std::vector<Reading> last(readings.end() - static_cast<std::ptrdiff_t>(count), readings.end());
  for (Reading& one : last) one.time_s = 0;
  MDFS_TRY_ASSIGN([[maybe_unused]] const std::vector<double> once, timed_reads(path, last, Interruption::asked()));
  return timed_reads(path, last, Interruption::asked());
}

Result<Comparison> compare(const CompareOptions& options, const std::string& size, std::span<const Reading> readings,
                           const std::string& path, Subject& subject) {
  const sim::Setup& setup = subject.system.setup();
  MountedImage& mounted = subject.mounted;
  Comparison result;
  result.disks = setup.disks;
  result.extent = geometry::shape_text(setup.image.rank, setup.image.extent);
  result.size = size;
  result.modelled = mounted.modelled_hash().has_value();
  result.misplaced = subject.misplaced;
  std::set<std::uint64_t> clients;
  for (const Reading& reading : readings) clients.insert(reading.client);
  result.clients = clients.size();
  for (const auto& place : setup.stored->places) result.stored += place.stored_bytes > 0 ? 1 : 0;
  for (const Reading& reading : readings) {
    MDFS_TRY_ASSIGN(const MountPlan plan, mounted.plan(reading.window));
    result.cached_extents += plan.cached_extents;
    result.other_plans += same_plan(subject.system, reading.window, plan) ? 0 : 1;
    result.window_bytes +=
        static_cast<double>(geometry::window_bytes(setup.image, reading.window)) / static_cast<double>(readings.size());
  }
  std::string predicted_bottleneck;
  const auto predicted = simulate(subject.fresh, readings, options.seed, predicted_bottleneck);
  for (const std::vector<double>& run : predicted)
    result.predicted_s += sim::summarize(counted(run, options.warm_up)).mean / static_cast<double>(predicted.size());
  for (const std::vector<double>& run : simulate(subject.system, readings, options.seed, result.bottleneck))
    result.delays.simulated_s.push_back(counted(run, options.warm_up));
  MDFS_TRY_ASSIGN(const std::uint64_t late_before, mounted.late_requests());
  MDFS_TRY_ASSIGN(const std::vector<double> measured, timed_reads(path, readings, Interruption::asked()));
  MDFS_TRY_ASSIGN(const std::uint64_t late_after, mounted.late_requests());
  result.late_requests = late_after - late_before;
  result.delays.measured_s = counted(measured, options.warm_up);
  MDFS_TRY_ASSIGN(result.again_s, read_again(path, readings.subspan(options.warm_up), result.clients));
  result.mean = sim::mean_agreement(result.delays);
  result.p50 = sim::agreement_at(result.delays, 0.50, options.seed);
  result.p95 = sim::agreement_at(result.delays, 0.95, options.seed);
  return result;
}

void add_notes(const Comparison& one, double tolerance, Report& report) {
  const auto note = [&](const std::string& text) {
    report.line(fmt::format("{} disks, windows of {}: {}", one.disks, one.size, text));
  };
  if (one.cached_extents > 0)
    note(fmt::format("{} extents were in the mount's cache; mount again for a cold read", one.cached_extents));
  if (one.other_plans > 0)
    note(fmt::format("the mount plans other requests than the simulator for {} windows", one.other_plans));
  if (one.late_requests > 0)
    note(fmt::format("{} requests came late: the disks below are slower than the modelled ones", one.late_requests));
  if (one.machine_is_faster_than_computer(tolerance))
    note(
        fmt::format("the machine is faster than this computer: read again, without the disks, they take {} here, more "
                    "than {:g} % of the simulated {}",
                    time_text(sim::summarize(one.again_s).mean), tolerance * 100, time_text(one.mean.simulated_s)));
  if (one.verdict(tolerance) == sim::Within::kUnsure) note("an error bar of a ratio is too wide: read more windows");
  if (one.misplaced > 0)
    note(fmt::format("{} of {} extents lie elsewhere than the placement says", one.misplaced, one.stored));
}

nlohmann::ordered_json agreement_json(const sim::Agreement& at, double tolerance) {
  return {{"simulated_s", at.simulated_s},
          {"measured_s", at.measured_s},
          {"ratio", at.ratio.mean},
          {"ratio_half_width_95", at.ratio.half_width},
          {"verdict", sim::within_text(at.verdict(tolerance))}};
}

// Of each window, the mean over the replications.
std::vector<double> mean_of_runs(const std::vector<std::vector<double>>& runs) {
  std::vector<double> means(runs.front().size());
  for (const std::vector<double>& run : runs)
    for (std::size_t i = 0; i < run.size(); ++i) means[i] += run[i] / static_cast<double>(runs.size());
  return means;
}

void add_row(const Comparison& one, double tolerance, Report& report) {
  const sim::Interval measured = sim::confidence_interval(one.delays.measured_s);
  const sim::Within verdict = one.verdict(tolerance);
  report.row({std::to_string(one.disks), one.extent, one.size, std::to_string(one.clients),
              std::to_string(one.delays.measured_s.size()), number_text(one.mean.simulated_s),
              number_text(one.mean.measured_s), number_text(one.mean.ratio.mean),
              number_text(one.mean.ratio.half_width), number_text(one.p50.ratio.mean),
              number_text(one.p50.ratio.half_width), number_text(one.p95.ratio.mean),
              number_text(one.p95.ratio.half_width), std::string(sim::within_text(verdict)),
              number_text(sim::summarize(one.again_s).mean), number_text(one.predicted_s), one.bottleneck});
  report.json()["rows"].push_back({{"disks", one.disks},
                                   {"extent", one.extent},
                                   {"size", one.size},
                                   {"clients", one.clients},
                                   {"modelled_disks", one.modelled},
                                   {"windows", one.delays.measured_s.size()},
                                   {"window_bytes", one.window_bytes},
                                   {"simulated_s", one.mean.simulated_s},
                                   {"measured_s", one.mean.measured_s},
                                   {"measured_half_width_95", measured.half_width},
                                   {"ratio", one.mean.ratio.mean},
                                   {"ratio_half_width_95", one.mean.ratio.half_width},
                                   {"mean", agreement_json(one.mean, tolerance)},
                                   {"p50", agreement_json(one.p50, tolerance)},
                                   {"p95", agreement_json(one.p95, tolerance)},
                                   {"within", verdict == sim::Within::kYes},
                                   {"verdict", sim::within_text(verdict)},
                                   {"again_s", sim::summarize(one.again_s).mean},
                                   {"machine_is_faster_than_computer", one.machine_is_faster_than_computer(tolerance)},
                                   {"predicted_s", one.predicted_s},
                                   {"bottleneck", one.bottleneck},
                                   {"cached_extents", one.cached_extents},
                                   {"late_requests", one.late_requests},
                                   {"windows_planned_otherwise", one.other_plans},
                                   {"extents", one.stored},
                                   {"extents_off_placement", one.misplaced},
                                   {"simulated_delays_s", mean_of_runs(one.delays.simulated_s)},
                                   {"measured_delays_s", one.delays.measured_s}});
  add_notes(one, tolerance, report);
}

// Delay against disks, two curves for each size.
sim::Figure compare_figure(const std::vector<Comparison>& rows, const std::string& machine,
                           const std::vector<std::string>& sizes) {
  sim::Figure figure{.title = machine, .x_label = "disks", .y_label = "mean delay of a window, ms", .series = {}};
  for (unsigned i = 0; i < sizes.size(); ++i) {
    sim::Series simulated{.name = sizes[i] + ", simulated", .style = sim::Series::Style::kLine, .x = {}, .y = {}};
    sim::Series measured{.name = sizes[i] + ", measured", .style = sim::Series::Style::kPoints, .x = {}, .y = {}};
    simulated.colour = measured.colour = i;
    for (const Comparison& one : rows) {
      if (one.size != sizes[i]) continue;
      simulated.x.push_back(one.disks);
      simulated.y.push_back(one.mean.simulated_s * 1e3);
      measured.x.push_back(one.disks);
      measured.y.push_back(one.mean.measured_s * 1e3);
      measured.half_width.push_back(one.mean.ratio.half_width * one.mean.simulated_s * 1e3);
    }
    figure.series.push_back(std::move(simulated));
    figure.series.push_back(std::move(measured));
  }
  return figure;
}

Result<MeasuredVolume> volume_of(const CompareOptions& options, const model::Machine& machine, unsigned disks) {
  MeasuredVolume wanted;
  wanted.scratch = options.scratch;
  wanted.disks = disks;
  SimOptions shared = options;
  shared.disks = disks;
  MDFS_TRY_ASSIGN(const sim::Setup setup, make_setup(shared));
  wanted.image = setup.image;
  if (setup.image.rank == 2) wanted.row_offset = model::row_offset(machine, disks);
  wanted.model = options.machine;
  wanted.seed = options.seed;
  return wanted;
}

void compare_parameters(const CompareOptions& options, const model::Machine& machine, Report& report) {
  report.parameter("machine", options.machine);
  report.parameter("image", options.image);
  const bool traced = !options.trace.empty();
  report.parameter("trace", options.trace);
  report.parameter("sizes", traced ? nlohmann::ordered_json() : nlohmann::ordered_json(options.sizes));
  report.parameter("windows", traced ? nlohmann::ordered_json() : nlohmann::ordered_json(options.windows));
  report.parameter("clients", traced ? nlohmann::ordered_json() : nlohmann::ordered_json(options.clients));
  report.parameter("warm_up", options.warm_up);
  report.parameter("tolerance", options.tolerance);
  const bool made = options.image.empty();  // else these are those of the image
  report.parameter("shape", made ? nlohmann::ordered_json(options.shape) : nullptr);
  report.parameter("extent",
                   made ? nlohmann::ordered_json(options.extent.empty() ? machine.extent : options.extent) : nullptr);
  report.parameter("bytes_per_pixel",
                   made ? nlohmann::ordered_json(options.bytes_per_pixel.value_or(machine.bytes_per_pixel)) : nullptr);
  report.parameter("disk_counts", made ? nlohmann::ordered_json(options.disk_counts) : nullptr);
  report.parameter("scratch", made ? nlohmann::ordered_json(options.scratch) : nullptr);
}

// The trace, or all sizes, on one image.
Status compare_image(const CompareOptions& options, const model::Machine& machine, const std::string& path,
                     std::vector<Comparison>& rows) {
  MDFS_TRY_ASSIGN(Subject subject, subject_of(options, machine, path));
  const geometry::Geometry& image = subject.system.setup().image;
  if (!options.trace.empty()) {
    MDFS_TRY_ASSIGN(const std::vector<Reading> readings, read_clients(options.trace, image));
    if (readings.size() < options.warm_up + 2)
      return Error{Errc::kOutOfRange,
                   fmt::format("{}: {} windows; at least {} are needed with --warm-up {}", options.trace,
                               readings.size(), options.warm_up + 2, options.warm_up)};
    MDFS_TRY_ASSIGN(Comparison one, compare(options, kTraceRow, readings, path, subject));
    rows.push_back(std::move(one));
    return {};
  }
  MDFS_TRY_ASSIGN(
      const std::vector<Windows> windows,
      choose_windows(image, options.sizes, options.windows + options.warm_up, options.warm_up + 2, options.seed));
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const std::vector<Reading> readings = dealt_out(windows[i], options.clients);
    MDFS_TRY_ASSIGN(Comparison one, compare(options, options.sizes[i], readings, path, subject));
    rows.push_back(std::move(one));
  }
  return {};
}

Status run_compare(const CompareOptions& options) {
  if (!options.out_of_place.empty())
    return Error{Errc::kUsage, options.out_of_place + " is for new volumes: leave it out with an image"};
  const Interruption interruption;
  MDFS_TRY_ASSIGN(const model::Machine machine, model::find_machine(options.machine));
  Report report(options, "compare", nullptr);
  report.json()["machine"] = {{"name", machine.name}, {"hash", model::hash_text(machine)}};
  compare_parameters(options, machine, report);
  report.columns({"disks", "extent", "size", "clients", "windows", "simulated_s", "measured_s", "ratio",
                  "half_width_95", "p50_ratio", "p50_half_width_95", "p95_ratio", "p95_half_width_95", "within",
                  "again_s", "predicted_s", "bottleneck"});
  report.line(fmt::format("{} ({}): windows simulated, and read from a mount by bind and pread, cold", machine.name,
                          model::hash_text(machine)));
  std::vector<Comparison> rows;
  if (!options.image.empty()) {
    MDFS_TRY(compare_image(options, machine, options.image, rows));
  } else {
    for (const unsigned disks : options.disk_counts) {
      MDFS_TRY_ASSIGN(const MeasuredVolume wanted, volume_of(options, machine, disks));
      MDFS_TRY_ASSIGN(const TemporaryVolume volume, TemporaryVolume::make(wanted));
      MDFS_TRY(compare_image(options, machine, volume.image_path(), rows));
    }
  }
  std::size_t missed = 0;
  for (const Comparison& one : rows) {
    add_row(one, options.tolerance, report);
    missed += one.verdict(options.tolerance) == sim::Within::kYes ? 0 : 1;
  }
  report.json()["missed"] = missed;
  report.print();
  const std::vector<std::string> sizes = options.trace.empty() ? options.sizes : std::vector<std::string>{kTraceRow};
  if (!options.plot.empty()) MDFS_TRY(write_figure(compare_figure(rows, machine.name, sizes), options.plot));
  if (missed > 0)
    return Error{
        Errc::kOutOfRange,
        fmt::format("{} of {} rows are further than {:g} % from the simulated delays, in the mean, at the median "
                    "or at p95",
                    missed, rows.size(), options.tolerance * 100)};
  return {};
}

}  // namespace

void add_compare_command(SimProgram& program) {
  auto options = std::make_shared<CompareOptions>();
  options->shape = "4096x4096";
  auto* command = program.app.add_subcommand("compare", "Read the same windows in the model and on a mount");
  complete_with(
      command->add_option("MACHINE", options->machine, "Machine of the model, and of the new disks")->required(),
      machine_choices());
  command->add_option("IMAGE", options->image,
                      "Image on a mounted volume (default: make volumes of --disk-counts modelled disks)");
  auto* sizes =
      command->add_option("--sizes,--size", options->sizes, "Comma-separated windows in pixels, slowest axis first")
          ->delimiter(',')
          ->capture_default_str();
  auto* clients = command
                      ->add_option("--clients", options->clients,
                                   "Number of clients that read at once, each its next window when the last has come")
                      ->check(whole_number(1, kMostReaders))
                      ->capture_default_str();
  auto* windows = command
                      ->add_option("--windows", options->windows,
                                   "Number of windows of each size, at random, without common extents")
                      ->check(whole_number(2, kMaxWindows))
                      ->capture_default_str();
  command->add_option("--warm-up", options->warm_up, "Number of windows read first, which do not count")
      ->check(whole_number(0, kMaxWindows))
      ->capture_default_str();
  command
      ->add_option("--tolerance", options->tolerance,
                   "Largest difference in the mean, at the median and at p95, relative to the simulated delay")
      ->check(number_from(0, 10))
      ->capture_default_str();
  auto* counts =
      command->add_option("--disk-counts", options->disk_counts, "Comma-separated numbers of disks of the new volumes")
          ->delimiter(',')
          ->check(whole_number(1, MDFS_IOC_MAX_DISKS));
  auto* shape = command->add_option("--shape", options->shape, "Shape of the new image")->capture_default_str();
  auto* extent = command->add_option("--extent", options->extent, "Extent of the new image (default: the machine's)");
  auto* bytes = command->add_option("--bytes-per-pixel", options->bytes_per_pixel, "Bytes of a pixel of the new image")
                    ->check(whole_number(1, geometry::kMaxChannels));
  auto* scratch = command->add_option("--scratch", options->scratch, "Directory for the new disks")->type_name("FILE");
  command
      ->add_option("--trace", options->trace,
                   "Trace whose windows are read at their times, as of replay (default: windows at random)")
      ->type_name("FILE")
      ->excludes(sizes)
      ->excludes(clients)
      ->excludes(windows);
  add_output_options(*command, *options, true);
  command->callback([&program, options, given = std::vector{counts, shape, extent, bytes, scratch}] {
    for (const CLI::Option* one : given)
      if (!options->image.empty() && one->count() > 0) options->out_of_place = one->get_name();
    program.action = [options] { return run_compare(*options); };
  });
}

}  // namespace mdfs::tools
