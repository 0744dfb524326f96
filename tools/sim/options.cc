// Reading the shared options of mdfs-sim.
// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "geometry/shape_text.h"
#include "model/quantity.h"
#include "model/trace.h"
#include "sim/experiment.h"
#include "support/ranges.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr double kMaxWindowsPerS = 1e9;
constexpr std::uint64_t kMaxCacheBytes = std::uint64_t{16} << 40;

}  // namespace

std::vector<Choice> machine_choices() {
  std::vector<Choice> choices;
  for (const model::Preset& preset : model::presets()) choices.push_back({std::string(preset.name), "shipped machine"});
  return choices;
}

void add_output_options(CLI::App& command, SimOptions& options, bool plot) {
  command.add_option("--seed", options.seed, "Seed of all random numbers; the same seed gives the same figures")
      ->check(whole_number(0, UINT64_MAX));
  auto* json = command.add_flag("--json", options.json, "Print JSON");
  command.add_flag("--csv", options.csv, "Print comma-separated values")->excludes(json);
  if (plot)
    command.add_option("--plot", options.plot, "Draw a figure to this file (.svg; .png needs rsvg-convert)")
        ->check([](const std::string& path) {
          return path.ends_with(".svg") || path.ends_with(".png") ? "" : path + " must end in .svg or .png";
        })
        ->type_name("FILE");
}

void add_sim_options(CLI::App& command, SimOptions& options) {
  complete_with(command
                    .add_option("MACHINE", options.machine,
                                "Shipped machine (see mdfs-sim machines) or file, see mdfs-machine(5)")
                    ->required(),
                machine_choices());
  command.add_option("--disks", options.disks, "Number of disks")->check(whole_number(1, model::kMaxDisks));
  add_image_options(command, options);
  add_output_options(command, options, true);
}

void add_image_options(CLI::App& command, SimOptions& options) {
  command.add_option("--shape", options.shape, "Image in pixels, slowest axis first: YxX or ZxYxX");
  command.add_option("--extent", options.extent, "Extent in pixels, slowest axis first");
  command.add_option("--bytes-per-pixel", options.bytes_per_pixel, "Bytes of one pixel")
      ->check(whole_number(1, geometry::kMaxChannels));
  command.add_option("--row-offset", options.row_offset, "Disks by which each row of extents is shifted")
      ->check(whole_number(0, model::kMaxDisks));
  command.add_option("--plane-offset", options.plane_offset, "Disks by which each plane of extents is shifted")
      ->check(whole_number(0, model::kMaxDisks));
  command
      .add_option("--filled", options.filled, "Share of each disk that is in use before the image is stored, 0 to 1")
      ->check(number_from(0, 1));
  command
      .add_option("--compressed", options.compressed,
                  "Stored size of a compressed image as a share of its bytes, 0.0001 to 2 (default: the image is raw)")
      ->check(number_from(1e-4, model::kMaxCompressedShare));
  CLI::Option* const copies =
      command.add_option("--copies", options.copies, "Copies of each extent, on different disks: 1 or 2")
          ->check(whole_number(1, 2));
  add_parity_options(command, options.parity, "Of images: 1 for several extents in place of their copies (default: 0)",
                     copies);
  command
      .add_option("--lost-disk", options.lost_disk,
                  "With --copies 2 or --parity 1: this disk is lost, and its extents are read from the others")
      ->check(whole_number(0, model::kMaxDisks - 1));
  command
      .add_option("--cache", options.cache,
                  "Cache of the mount, 0 to 16T; 0: every window is read from the disks (default: that of the trace, "
                  "else 0)")
      ->type_name("SIZE");
  command.add_option("--seeks", options.seeks, "constant, or uniform between 0 and twice the seek time of the machine")
      ->check(CLI::IsMember({"constant", "uniform"}));
}

Result<sim::Setup> make_setup(const SimOptions& options) {
  MDFS_TRY_ASSIGN(const model::Machine machine, model::find_machine(options.machine));
  sim::Setup setup;
  setup.machine = machine;
  if (options.filled) setup.machine.layout.filled = *options.filled;
  setup.disks = options.disks.value_or(machine.disks);
  setup.row_offset = options.row_offset;
  setup.plane_offset = options.plane_offset;
  setup.compressed_share = options.compressed;
  MDFS_TRY_ASSIGN(setup.width, options.parity.width_for(setup.disks));
  setup.copies = setup.width > 1 ? 1 : options.copies;
  setup.lost_disk = options.lost_disk;
  if (options.cache) {
    MDFS_TRY_ASSIGN(setup.cache_bytes, parse_size(*options.cache, "--cache"));
    if (setup.cache_bytes > kMaxCacheBytes)
      return Error{Errc::kUsage, fmt::format("--cache {} is not in 0..16T", *options.cache)};
  }
  setup.uniform_seeks = options.seeks == "uniform";
  const std::string& shape = options.shape.empty() ? machine.shape : options.shape;
  const std::string& extent = options.extent.empty() ? machine.extent : options.extent;
  const unsigned bytes = options.bytes_per_pixel.value_or(machine.bytes_per_pixel);
  MDFS_TRY_ASSIGN(setup.image, named(fmt::format("--shape {} and --extent {}", shape, extent),
                                     sim::make_image(shape, extent, !options.extent.empty(), bytes)));
  return setup;
}

Result<sim::System> make_system(const SimOptions& options) {
  MDFS_TRY_ASSIGN(sim::Setup setup, make_setup(options));
  return sim::System::make(std::move(setup));
}

Result<geometry::Coord> parse_window_size(const geometry::Geometry& image, const std::string& text) {
  MDFS_TRY_ASSIGN(const geometry::Lengths lengths, geometry::parse_shape(text));
  if (lengths.rank > image.rank)
    return Error{Errc::kInvalidArgument, fmt::format("a window of {} has more axes than the image", text)};
  geometry::Coord size{};
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    const unsigned missing = image.rank - lengths.rank;
    size[axis] = axis < missing ? 1 : lengths.length[axis - missing];
  }
  MDFS_TRY(sim::check_length(image, size));
  return size;
}

Result<double> parse_rate(const std::string& text, double window_bytes, double maximum_bytes_per_s) {
  std::string_view rest = text;
  MDFS_TRY_ASSIGN(const double number, model::take_number(rest));
  model::skip_blanks(rest);
  double rate = 0;
  if (rest.empty()) {
    rate = number * maximum_bytes_per_s / window_bytes;
  } else if (rest == "/s") {
    rate = number;
  } else {
    MDFS_TRY_ASSIGN(const double bytes_per_s, model::parse_rate_bytes_per_s(text));
    rate = bytes_per_s / window_bytes;
  }
  if (!(rate > 0)) return Error{Errc::kInvalidArgument, fmt::format("a load of \"{}\" requests nothing", text)};
  if (rate > kMaxWindowsPerS)
    return Error{Errc::kInvalidArgument,
                 fmt::format("a load of \"{}\" is above {:g} windows a second", text, kMaxWindowsPerS)};
  return rate;
}

}  // namespace mdfs::tools
