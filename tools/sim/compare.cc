// mdfs-sim compare: the same windows in the model and on a mount.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "commands.h"
#include "geometry/extent_grid.h"
#include "geometry/shape_text.h"
#include "geometry/window_spec.h"
#include "model/trace.h"
#include "mount.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "sim/experiment.h"
#include "support/ranges.h"
#include "volume.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMaxWindows = 100'000;
constexpr unsigned kReplications = 50;  // of a machine with randomness
constexpr unsigned kTriesForAWindow = 200;
constexpr std::size_t kReadAgain = 10;           // windows
constexpr std::uint64_t kMostPieces = 1u << 20;  // extents of one window

std::atomic<bool> interrupted{false};

// Until the end of the command a signal only asks it to end, so that what was mounted is unmounted.
class SignalGuard {
 public:
  SignalGuard() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~SignalGuard() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

struct CompareOptions : SimOptions {
  std::string image;
  std::vector<std::string> sizes = {"512x512"};
  unsigned windows = 20;
  unsigned warm_up = 2;
  std::vector<unsigned> disk_counts = {1, 2, 4, 8};
  std::string scratch = std::filesystem::temp_directory_path();
  double tolerance = 0.1;
  std::string out_of_place;  // an option that is for volumes that are made, beside an image that is there
};

using Windows = std::vector<geometry::Window>;

// At random, no two with a common extent, nor with those in `taken`: what one window has read is no help to another.
// Together they take at most so many extents, or one window.
Windows disjoint_windows(const geometry::Geometry& image, const geometry::Coord& length, unsigned count,
                         std::uint64_t most_extents, model::Random& random, std::unordered_set<std::uint64_t>& taken) {
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const std::uint64_t before = taken.size();
  Windows windows;
  for (unsigned tries = 0; windows.size() < count && tries < count * kTriesForAWindow; ++tries) {
    const geometry::Window window = sim::random_window(image, length, random);
    const geometry::Box box = geometry::byte_box(image, window);
    if (geometry::piece_count(bytes, box) > kMostPieces) break;
    std::vector<std::uint64_t> extents;
    for (const geometry::Piece& piece : geometry::decompose(bytes, box))
      extents.push_back(geometry::extent_index(bytes, piece.extent));
    const bool free = std::none_of(extents.begin(), extents.end(), [&](auto index) { return taken.contains(index); });
    if (!free) continue;
    if (!windows.empty() && taken.size() - before + extents.size() > most_extents) break;
    taken.insert(extents.begin(), extents.end());
    windows.push_back(window);
  }
  return windows;
}

// Of each size. Large ones are placed first, and each size gets an equal part of the image at most.
Result<std::vector<Windows>> choose_windows(const CompareOptions& options, const geometry::Geometry& image) {
  std::vector<geometry::Coord> lengths;
  std::vector<std::size_t> order;
  for (const std::string& size : options.sizes) {
    MDFS_TRY_ASSIGN(const geometry::Coord length, parse_window_size(image, size));
    order.push_back(lengths.size());
    lengths.push_back(length);
  }
  const auto volume = [&](std::size_t i) {
    double samples = 1;
    for (unsigned axis = 0; axis < image.rank; ++axis) samples *= static_cast<double>(lengths[i][axis]);
    return samples;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return volume(a) > volume(b); });
  const std::uint64_t extents = geometry::extent_count(image.rank, image.grid());
  model::Random random(options.seed);
  std::unordered_set<std::uint64_t> taken;
  std::vector<Windows> windows(lengths.size());
  const unsigned count = options.windows + options.warm_up;
  for (const std::size_t i : order) {
    windows[i] = disjoint_windows(image, lengths[i], count, extents / lengths.size(), random, taken);
    if (windows[i].size() < options.warm_up + 2)
      return Error{Errc::kOutOfRange, fmt::format("the image is too small for {} windows of {} without a common extent",
                                                  options.warm_up + 2, options.sizes[i])};
  }
  return windows;
}

enum class Verdict { kWithin, kUnsure, kOff };

struct Comparison {
  unsigned disks = 0;
  std::string extent;
  std::string size;
  double window_bytes = 0;
  std::vector<double> simulated_s;  // of each window; the mean over the replications
  std::vector<double> predicted_s;  // of a new image: what window and random print without a mount
  std::vector<double> measured_s;
  std::vector<double> again_s;  // some of the same windows from the cache of the mount
  std::uint64_t cached_extents = 0;
  std::uint64_t late_requests = 0;  // of modelled disks: the disks below were slower
  std::size_t other_plans = 0;      // windows for which the mount plans other requests than the simulator
  std::uint64_t misplaced = 0;      // extents that lie on another disk than the placement says
  std::uint64_t stored = 0;         // extents that are no holes
  std::string bottleneck;
  bool modelled = false;

  // Measured over simulated mean. The error bar comes from the differences window by window, so what makes one window
  // slower than another in both is no part of it.
  sim::Interval ratio() const {
    std::vector<double> differences;
    for (std::size_t i = 0; i < measured_s.size(); ++i) differences.push_back(measured_s[i] - simulated_s[i]);
    const sim::Interval interval = sim::confidence_interval(differences);
    const double mean = sim::summarize(simulated_s).mean;
    return {1 + interval.mean / mean, interval.half_width / mean};
  }
  Verdict verdict(double tolerance) const {
    const sim::Interval interval = ratio();
    const double gap = std::fabs(interval.mean - 1);
    if (gap <= tolerance) return Verdict::kWithin;
    return gap - interval.half_width <= tolerance ? Verdict::kUnsure : Verdict::kOff;
  }
};

std::string verdict_text(Verdict verdict) {
  return verdict == Verdict::kWithin ? "yes" : verdict == Verdict::kUnsure ? "unsure" : "no";
}

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

// The mean delay of each window over replications of the machine's randomness.
std::vector<double> simulate(const sim::System& system, const Windows& windows, std::uint64_t seed,
                             std::string& bottleneck) {
  const unsigned replications = system.route().is_random() ? kReplications : 1;
  std::vector<double> delays(windows.size());
  for (unsigned run = 0; run < replications; ++run) {
    const sim::InTurnResult result = sim::read_in_turn(system, windows, seed + run);
    for (std::size_t i = 0; i < windows.size(); ++i) delays[i] += result.records[i].delay_s() / replications;
    bottleneck = sim::bottleneck(result.use);
  }
  return delays;
}

Result<Comparison> compare(const CompareOptions& options, const std::string& size, const Windows& windows,
                           Subject& subject) {
  const sim::Setup& setup = subject.system.setup();
  MountedImage& mounted = subject.mounted;
  Comparison result;
  result.disks = setup.disks;
  result.extent = geometry::shape_text(setup.image.rank, setup.image.extent);
  result.size = size;
  result.modelled = mounted.modelled_hash().has_value();
  result.window_bytes = static_cast<double>(geometry::window_bytes(setup.image, windows.front()));
  result.misplaced = subject.misplaced;
  for (const auto& place : setup.stored->places) result.stored += place.stored_bytes > 0 ? 1 : 0;
  for (const geometry::Window& window : windows) {
    MDFS_TRY_ASSIGN(const MountPlan plan, mounted.plan(window));
    result.cached_extents += plan.cached_extents;
    result.other_plans += same_plan(subject.system, window, plan) ? 0 : 1;
  }
  std::string predicted_bottleneck;
  const std::vector<double> predicted = simulate(subject.fresh, windows, options.seed, predicted_bottleneck);
  const std::vector<double> simulated = simulate(subject.system, windows, options.seed, result.bottleneck);
  MDFS_TRY_ASSIGN(const std::uint64_t late_before, mounted.late_requests());
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (interrupted) return Error{Errc::kCancelled, "stopped by a signal"};
    MDFS_TRY_ASSIGN(const double seconds, mounted.timed_read(windows[i]));
    if (i < options.warm_up) continue;
    result.measured_s.push_back(seconds);
    result.simulated_s.push_back(simulated[i]);
    result.predicted_s.push_back(predicted[i]);
  }
  MDFS_TRY_ASSIGN(const std::uint64_t late_after, mounted.late_requests());
  result.late_requests = late_after - late_before;
  // With any earlier contents, the cache now has what was read last.
  const std::size_t counted = windows.size() - options.warm_up;
  for (std::size_t i = windows.size() - std::min(counted, kReadAgain); i < windows.size(); ++i) {
    if (interrupted) return Error{Errc::kCancelled, "stopped by a signal"};
    MDFS_TRY_ASSIGN([[maybe_unused]] const double once, mounted.timed_read(windows[i]));
    MDFS_TRY_ASSIGN(const double twice, mounted.timed_read(windows[i]));
    result.again_s.push_back(twice);
  }
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
  const double again = sim::summarize(one.again_s).mean;
  if (again > tolerance * sim::summarize(one.simulated_s).mean)
    note(fmt::format("read again, without the disks, they take {} here: too long to see such a machine",
                     time_text(again)));
  if (one.verdict(tolerance) == Verdict::kUnsure) note("the error bar of the ratio is too wide: read more windows");
  if (one.misplaced > 0)
    note(fmt::format("{} of {} extents lie elsewhere than the placement says", one.misplaced, one.stored));
}

void add_row(const Comparison& one, double tolerance, Report& report) {
  const sim::Interval simulated = sim::confidence_interval(one.simulated_s);
  const sim::Interval measured = sim::confidence_interval(one.measured_s);
  const sim::Interval ratio = one.ratio();
  const Verdict verdict = one.verdict(tolerance);
  const double predicted = sim::summarize(one.predicted_s).mean;
  report.row({std::to_string(one.disks), one.extent, one.size, std::to_string(one.measured_s.size()),
              number_text(simulated.mean), number_text(measured.mean), number_text(ratio.mean),
              number_text(ratio.half_width), verdict_text(verdict), number_text(sim::summarize(one.again_s).mean),
              number_text(predicted), one.bottleneck});
  report.json()["rows"].push_back({{"disks", one.disks},
                                   {"extent", one.extent},
                                   {"size", one.size},
                                   {"modelled_disks", one.modelled},
                                   {"windows", one.measured_s.size()},
                                   {"window_bytes", one.window_bytes},
                                   {"simulated_s", simulated.mean},
                                   {"measured_s", measured.mean},
                                   {"measured_half_width_95", measured.half_width},
                                   {"ratio", ratio.mean},
                                   {"ratio_half_width_95", ratio.half_width},
                                   {"within", verdict == Verdict::kWithin},
                                   {"verdict", verdict_text(verdict)},
                                   {"again_s", sim::summarize(one.again_s).mean},
                                   {"predicted_s", predicted},
                                   {"bottleneck", one.bottleneck},
                                   {"cached_extents", one.cached_extents},
                                   {"late_requests", one.late_requests},
                                   {"windows_planned_otherwise", one.other_plans},
                                   {"extents", one.stored},
                                   {"extents_off_placement", one.misplaced},
                                   {"simulated_delays_s", one.simulated_s},
                                   {"measured_delays_s", one.measured_s}});
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
      const double predicted = sim::summarize(one.simulated_s).mean;
      simulated.x.push_back(one.disks);
      simulated.y.push_back(predicted * 1e3);
      measured.x.push_back(one.disks);
      measured.y.push_back(sim::summarize(one.measured_s).mean * 1e3);
      measured.half_width.push_back(one.ratio().half_width * predicted * 1e3);
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
  report.parameter("sizes", options.sizes);
  report.parameter("windows", options.windows);
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

// All sizes on one image.
Status compare_image(const CompareOptions& options, const model::Machine& machine, const std::string& path,
                     std::vector<Comparison>& rows) {
  MDFS_TRY_ASSIGN(Subject subject, subject_of(options, machine, path));
  MDFS_TRY_ASSIGN(const std::vector<Windows> windows, choose_windows(options, subject.system.setup().image));
  for (std::size_t i = 0; i < windows.size(); ++i) {
    MDFS_TRY_ASSIGN(Comparison one, compare(options, options.sizes[i], windows[i], subject));
    rows.push_back(std::move(one));
  }
  return {};
}

Status run_compare(const CompareOptions& options) {
  if (!options.out_of_place.empty())
    return Error{Errc::kUsage, options.out_of_place + " is for new volumes: leave it out with an image"};
  const SignalGuard guard;
  MDFS_TRY_ASSIGN(const model::Machine machine, model::find_machine(options.machine));
  Report report(options, "compare", nullptr);
  report.json()["machine"] = {{"name", machine.name}, {"hash", model::hash_text(machine)}};
  compare_parameters(options, machine, report);
  report.columns({"disks", "extent", "size", "windows", "simulated_s", "measured_s", "ratio", "half_width_95", "within",
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
    missed += one.verdict(options.tolerance) == Verdict::kWithin ? 0 : 1;
  }
  report.json()["missed"] = missed;
  report.print();
  if (!options.plot.empty()) MDFS_TRY(write_figure(compare_figure(rows, machine.name, options.sizes), options.plot));
  if (missed > 0)
    return Error{Errc::kOutOfRange,
                 fmt::format("{} of {} measured means are further than {:g} % from the simulated ones", missed,
                             rows.size(), options.tolerance * 100)};
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
  command->add_option("--sizes,--size", options->sizes, "Comma-separated windows in pixels, slowest axis first")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--windows", options->windows, "Number of windows of each size, at random, without common extents")
      ->check(whole_number(2, kMaxWindows))
      ->capture_default_str();
  command->add_option("--warm-up", options->warm_up, "Number of windows read first, which do not count")
      ->check(whole_number(0, kMaxWindows))
      ->capture_default_str();
  command
      ->add_option("--tolerance", options->tolerance, "Largest difference of the means, relative to the simulated mean")
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
  add_output_options(*command, *options, true);
  command->callback([&program, options, given = std::vector{counts, shape, extent, bytes, scratch}] {
    for (const CLI::Option* one : given)
      if (!options->image.empty() && one->count() > 0) options->out_of_place = one->get_name();
    program.action = [options] { return run_compare(*options); };
  });
}

}  // namespace mdfs::tools
