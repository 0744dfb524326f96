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

#include "geometry/decompose.h"
#include "geometry/shape_text.h"
#include "geometry/window_spec.h"
#include "mdfs_sim.h"
#include "mdfs_sim_mount.h"
#include "mdfs_sim_options.h"
#include "mdfs_sim_plot.h"
#include "mdfs_sim_report.h"
#include "mdfs_sim_volume.h"
#include "sim/experiment.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMaxWindows = 100'000;
constexpr unsigned kTriesForAWindow = 200;
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
  std::string size = "512x512";
  unsigned windows = 20;
  unsigned warm_up = 2;
  std::vector<unsigned> disk_counts = {1, 2, 4, 8};
  std::string scratch = std::filesystem::temp_directory_path();
  double tolerance = 0.1;
  std::string out_of_place;  // an option that is for volumes that are made, beside an image that is there
};

// Windows at random of which no two share an extent: what one has read is no help to another.
std::vector<geometry::Window> disjoint_windows(const geometry::Geometry& image, const geometry::Coord& length,
                                               unsigned count, std::uint64_t seed) {
  model::Random random(seed);
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const geometry::Coord grid = image.grid();
  std::unordered_set<std::uint64_t> taken;
  std::vector<geometry::Window> windows;
  for (unsigned tries = 0; windows.size() < count && tries < count * kTriesForAWindow; ++tries) {
    const geometry::Window window = sim::random_window(image, length, random);
    const geometry::Box box = geometry::byte_box(image, window);
    if (geometry::piece_count(bytes, box) > kMostPieces) break;
    std::vector<std::uint64_t> extents;
    for (const geometry::Piece& piece : geometry::decompose(bytes, box)) {
      std::uint64_t index = 0;
      for (unsigned axis = 0; axis < image.rank; ++axis) index = index * grid[axis] + piece.extent[axis];
      extents.push_back(index);
    }
    const bool free = std::none_of(extents.begin(), extents.end(), [&](auto index) { return taken.contains(index); });
    if (!free) continue;
    taken.insert(extents.begin(), extents.end());
    windows.push_back(window);
  }
  return windows;
}

struct Comparison {
  unsigned disks = 0;
  std::string extent;
  double window_bytes = 0;
  std::vector<double> simulated_s;
  std::vector<double> measured_s;
  std::uint64_t cached_extents = 0;
  std::size_t other_plans = 0;  // windows for which the mount plans other requests than the simulator
  std::uint64_t misplaced = 0;  // extents that lie on another disk than the placement says
  std::uint64_t stored = 0;     // extents that are no holes
  std::string bottleneck;
  bool modelled = false;

  double ratio() const { return sim::summarize(measured_s).mean / sim::summarize(simulated_s).mean; }
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
std::uint64_t count_misplaced(const sim::System& by_placement, const sim::StoredImage& stored, std::uint64_t base) {
  const geometry::Geometry& image = by_placement.setup().image;
  std::uint64_t misplaced = 0;
  std::size_t index = 0;
  for (const sim::Request& request : by_placement.split(geometry::whole(image), base).requests) {
    const auto& place = stored.places[index++];
    misplaced += place.stored_bytes > 0 && place.disk != request.disk ? 1 : 0;
  }
  return misplaced;
}

// As the simulator sees the mounted image: whole samples of so many bytes.
Result<geometry::Geometry> simulated_image(const geometry::Geometry& image) {
  if (image.sample_bytes() > geometry::kMaxChannels)
    return Error{Errc::kNotSupported, fmt::format("samples of {} bytes", image.sample_bytes())};
  geometry::Geometry result = image;
  result.type = geometry::ElementType::kU8;
  result.channels = static_cast<unsigned>(image.sample_bytes());
  result.codec = geometry::Codec::kRaw;
  MDFS_TRY(geometry::check(result));
  return result;
}

Result<Comparison> compare(const CompareOptions& options, const model::Machine& machine, const std::string& path) {
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
  MDFS_TRY_ASSIGN(setup.image, simulated_image(mounted.geometry()));
  MDFS_TRY_ASSIGN(setup.stored, mounted.stored());
  MDFS_TRY_ASSIGN(const sim::System system, sim::System::make(setup));
  sim::Setup by_placement = setup;
  by_placement.stored = nullptr;
  by_placement.machine.layout.kind = model::Layout::Kind::kExtents;
  if (!options.image.empty()) by_placement.machine.layout.row_offset.clear();
  MDFS_TRY_ASSIGN(const sim::System placed, sim::System::make(by_placement));
  MDFS_TRY_ASSIGN(const geometry::Coord length, parse_window_size(setup.image, options.size));
  const auto windows = disjoint_windows(setup.image, length, options.windows + options.warm_up, options.seed);
  if (windows.size() < options.warm_up + 2)
    return Error{Errc::kOutOfRange,
                 fmt::format("{}: too small for two windows of {} without a common extent", path, options.size)};

  Comparison result;
  result.disks = setup.disks;
  result.extent = geometry::shape_text(setup.image.rank, setup.image.extent);
  result.modelled = mounted.modelled_hash().has_value();
  result.window_bytes = static_cast<double>(geometry::window_bytes(setup.image, windows.front()));
  result.misplaced = count_misplaced(placed, *setup.stored, mounted.base());
  for (const auto& place : setup.stored->places) result.stored += place.stored_bytes > 0 ? 1 : 0;
  for (const geometry::Window& window : windows) {
    MDFS_TRY_ASSIGN(const MountPlan plan, mounted.plan(window));
    result.cached_extents += plan.cached_extents;
    result.other_plans += same_plan(system, window, plan) ? 0 : 1;
  }
  const sim::InTurnResult simulated = sim::read_in_turn(system, windows, options.seed);
  result.bottleneck = sim::bottleneck(simulated.use);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (interrupted) return Error{Errc::kCancelled, "stopped by a signal"};
    MDFS_TRY_ASSIGN(const double seconds, mounted.timed_read(windows[i]));
    if (i < options.warm_up) continue;
    result.measured_s.push_back(seconds);
    result.simulated_s.push_back(simulated.records[i].delay_s());
  }
  return result;
}

void add_row(const Comparison& one, double tolerance, Report& report) {
  const sim::Interval simulated = sim::confidence_interval(one.simulated_s);
  const sim::Interval measured = sim::confidence_interval(one.measured_s);
  const bool within = std::fabs(one.ratio() - 1) <= tolerance;
  report.row({std::to_string(one.disks), one.extent, std::to_string(one.measured_s.size()),
              number_text(one.window_bytes), number_text(simulated.mean), number_text(measured.mean),
              number_text(measured.half_width), number_text(one.ratio()), within ? "yes" : "no", one.bottleneck});
  report.json()["rows"].push_back({{"disks", one.disks},
                                   {"extent", one.extent},
                                   {"modelled_disks", one.modelled},
                                   {"windows", one.measured_s.size()},
                                   {"window_bytes", one.window_bytes},
                                   {"simulated_s", simulated.mean},
                                   {"measured_s", measured.mean},
                                   {"measured_half_width_95", measured.half_width},
                                   {"ratio", one.ratio()},
                                   {"within", within},
                                   {"bottleneck", one.bottleneck},
                                   {"cached_extents", one.cached_extents},
                                   {"windows_planned_otherwise", one.other_plans},
                                   {"extents", one.stored},
                                   {"extents_off_placement", one.misplaced},
                                   {"simulated_delays_s", one.simulated_s},
                                   {"measured_delays_s", one.measured_s}});
  if (one.cached_extents > 0)
    report.line(fmt::format("{} disks: {} extents were in the mount's cache; mount anew for a cold read", one.disks,
                            one.cached_extents));
  if (one.other_plans > 0)
    report.line(fmt::format("{} disks: the mount plans other requests than the simulator for {} windows", one.disks,
                            one.other_plans));
  report.line(fmt::format("{} disks: {} of {} extents lie where the placement says", one.disks,
                          one.stored - one.misplaced, one.stored));
}

sim::Figure compare_figure(const std::vector<Comparison>& rows, const std::string& machine, const std::string& size) {
  sim::Figure figure{.title = fmt::format("{}: windows of {}", machine, size),
                     .x_label = "disks",
                     .y_label = "mean delay, ms",
                     .series = {}};
  sim::Series simulated{.name = "simulated", .style = sim::Series::Style::kLine, .x = {}, .y = {}};
  sim::Series measured{.name = "measured on a mount", .style = sim::Series::Style::kPoints, .x = {}, .y = {}};
  for (const Comparison& one : rows) {
    const sim::Interval interval = sim::confidence_interval(one.measured_s);
    simulated.x.push_back(one.disks);
    simulated.y.push_back(sim::summarize(one.simulated_s).mean * 1e3);
    measured.x.push_back(one.disks);
    measured.y.push_back(interval.mean * 1e3);
    measured.half_width.push_back(interval.half_width * 1e3);
  }
  figure.series = {std::move(simulated), std::move(measured)};
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

Status run_compare(const CompareOptions& options) {
  if (!options.out_of_place.empty())
    return Error{Errc::kUsage, options.out_of_place + " is for volumes that are made: it goes without an image"};
  const SignalGuard guard;
  MDFS_TRY_ASSIGN(const model::Machine machine, model::find_machine(options.machine));
  Report report(options, "compare", nullptr);
  report.json()["machine"] = {{"name", machine.name}, {"hash", model::hash_text(machine)}};
  report.parameter("machine", options.machine);
  report.parameter("image", options.image);
  report.parameter("size", options.size);
  report.parameter("windows", options.windows);
  report.parameter("warm_up", options.warm_up);
  report.parameter("tolerance", options.tolerance);
  report.parameter("shape", options.shape);
  report.parameter("extent", options.extent.empty() ? machine.extent : options.extent);
  report.columns({"disks", "extent", "windows", "window_B", "simulated_s", "measured_s", "half_width_95_s", "ratio",
                  "within", "bottleneck"});
  report.line(fmt::format("{} ({}): windows of {}, simulated and read from a mount by bind and pread, cold",
                          machine.name, model::hash_text(machine), options.size));
  std::vector<Comparison> rows;
  if (!options.image.empty()) {
    MDFS_TRY_ASSIGN(Comparison one, compare(options, machine, options.image));
    rows.push_back(std::move(one));
  } else {
    for (const unsigned disks : options.disk_counts) {
      MDFS_TRY_ASSIGN(const MeasuredVolume wanted, volume_of(options, machine, disks));
      MDFS_TRY_ASSIGN(const TemporaryVolume volume, TemporaryVolume::make(wanted));
      MDFS_TRY_ASSIGN(Comparison one, compare(options, machine, volume.image_path()));
      rows.push_back(std::move(one));
    }
  }
  std::size_t missed = 0;
  for (const Comparison& one : rows) {
    add_row(one, options.tolerance, report);
    missed += std::fabs(one.ratio() - 1) <= options.tolerance ? 0 : 1;
  }
  report.json()["missed"] = missed;
  if (!options.plot.empty()) MDFS_TRY(write_figure(compare_figure(rows, machine.name, options.size), options.plot));
  report.print();
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
  auto* command = program.app.add_subcommand("compare", "The same windows in the model and on a mount");
  command->add_option("machine", options->machine, "The machine of the model, and of the disks that are made")
      ->required();
  command->add_option("image", options->image,
                      "An image on a mounted volume; without it volumes of --disk-counts are made, on modelled disks");
  command->add_option("--size", options->size, "Window in pixels, slowest axis first")->capture_default_str();
  command->add_option("--windows", options->windows, "At random, no two with a common extent")
      ->check(CLI::Range(2U, kMaxWindows))
      ->capture_default_str();
  command->add_option("--warm-up", options->warm_up, "Windows read before, which do not count")
      ->check(CLI::Range(0U, kMaxWindows))
      ->capture_default_str();
  command->add_option("--tolerance", options->tolerance, "How far the means may lie apart, as a share")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  auto* counts = command->add_option("--disk-counts", options->disk_counts, "Of the volumes that are made")
                     ->delimiter(',')
                     ->check(CLI::Range(1U, unsigned{MDFS_IOC_MAX_DISKS}));
  auto* shape = command->add_option("--shape", options->shape, "Of the image that is made")->capture_default_str();
  auto* extent = command->add_option("--extent", options->extent, "Of the image that is made; else the machine's");
  auto* bytes = command->add_option("--bytes-per-pixel", options->bytes_per_pixel, "Of the image that is made");
  auto* scratch = command->add_option("--scratch", options->scratch, "Directory for the disks that are made");
  add_output_options(*command, *options, true);
  command->callback([&program, options, given = std::vector{counts, shape, extent, bytes, scratch}] {
    for (const CLI::Option* one : given)
      if (!options->image.empty() && one->count() > 0) options->out_of_place = one->get_name();
    program.action = [options] { return run_compare(*options); };
  });
}

}  // namespace mdfs::tools
