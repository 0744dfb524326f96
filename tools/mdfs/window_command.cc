// mdfs window read, write and explain.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/aligned_buffer.h"
#include "commands.h"
#include "convert.h"
#include "geometry/level.h"
#include "geometry/shape_text.h"
#include "geometry/window_spec.h"
#include "handle_pool.h"
#include "image_text.h"
#include "imagefile/image_file.h"
#include "lost_files.h"
#include "mounted.h"
#include "parts.h"
#include "support/file.h"
#include "support/json_output.h"
#include "support/progress.h"
#include "support/ranges.h"
#include "support/streams.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr std::uint64_t kReadPartBytes = 16u << 20;   // whole elements of any type
constexpr std::uint64_t kWritePartBytes = 16u << 20;  // whole elements of any type
constexpr std::uint64_t kMaxWriteBytes = std::uint64_t{4} << 30;

struct OpenWindow {
  Image image;
  unsigned level = 0;
  geometry::Geometry geometry;  // of the level, as the window
  geometry::Window window;
  std::string spec;                // its canonical spelling
  mdfs_ioc_window ioc{};           // as calls take it
  std::uint32_t placed_disks = 0;  // over which the image is spread
};

Result<OpenWindow> open_window(const std::string& path, const std::string& spec, int flags) {
  OpenWindow open;
  MDFS_TRY_ASSIGN(open.image, open_image(path, flags));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry info, image_info(*open.image, path));
  MDFS_TRY_ASSIGN(const geometry::Geometry whole, client::to_geometry(info));
  const auto window = geometry::parse_level_window(whole, spec);
  if (!window.ok()) return Error{window.error().code, path + ": " + window.error().where};
  open.level = window->level;
  open.geometry = geometry::level_geometry(whole, window->level);
  open.window = window->window;
  open.spec = geometry::to_spec(whole, *window);
  open.ioc = client::from_window(whole, *window);
  open.placed_disks = info.placed_disks;
  return open;
}

// ---- read

struct ReadArguments {
  std::string path, spec, output = "-";
  bool force = false;
};

// The error of the daemon is an errno: what it means here.
Error explained(const Error& error, const ReadArguments& arguments, const OpenWindow& open) {
  if (error.code != Errc::kTooBig || open.level == 0) return error;
  return {Errc::kTooBig, fmt::format("{}: window {}: too large to be computed; store the levels of the image (mdfs "
                                     "image levels --set auto), or read less at a time",
                                     arguments.path, open.spec)};
}

Status read_command(const ReadArguments& arguments) {
  MDFS_TRY_ASSIGN(const OpenWindow open, open_window(arguments.path, arguments.spec, O_RDONLY));
  const imagefile::ArrayInfo array = array_of_window(open.geometry, open.window);
  MDFS_TRY_ASSIGN(const auto sink, imagefile::create_sink(arguments.output, array, arguments.force));
  const std::uint64_t bytes = geometry::window_bytes(open.geometry, open.window);
  const bool to_file = arguments.output != "-";
  Progress progress("reading", bytes, to_file || ::isatty(STDOUT_FILENO) != 1);
  // One binding, so one version of a window of any size.
  MDFS_TRY_ASSIGN(const auto handles, client::HandlePool::open(arguments.path, O_RDONLY));
  mdfs_ioc_window window = open.ioc;
  const auto fd = handles->bind(window);
  if (!fd.ok()) return explained(fd.error(), arguments, open);
  File bound(*fd, arguments.path);
  if (window.bytes != bytes)
    return {Errc::kInvalidArgument, arguments.path + ": was replaced by another image during the read"};
  AlignedBuffer buffer(static_cast<std::size_t>(std::min(kReadPartBytes, bytes)));
  for (std::uint64_t at = 0; at < bytes;) {
    const MutableBytes part = buffer.bytes().first(static_cast<std::size_t>(std::min(kReadPartBytes, bytes - at)));
    MDFS_TRY_ASSIGN(const std::size_t got, bound.read_at(at, part));
    if (got == 0) return {Errc::kIo, arguments.path + ": the read returned fewer bytes than the window has"};
    MDFS_TRY(sink->write(part.first(got)));
    progress.add(got);
    at += got;
  }
  MDFS_TRY(sink->finish());
  progress.finish();
  if (to_file) print_out("{}\n", array_line(arguments.output, array, bytes));
  return {};
}

// ---- write

struct WriteArguments {
  std::string path, spec, source;
};

bool is_raw(const std::string& source) { return source == "-" || source.ends_with(".raw"); }

// The samples for a window, from start to end.
class Samples {
 public:
  virtual ~Samples() = default;
  // The next ones; `last`: there must be no more of them.
  virtual Status read(MutableBytes into, bool last) = 0;
};

// Raw samples: exactly the window's bytes.
class RawSamples final : public Samples {
 public:
  RawSamples(File file, std::uint64_t bytes) : file_(std::move(file)), bytes_(bytes) {}

  Status read(MutableBytes into, bool last) override {
    done_ += into.size();
    MDFS_TRY(file_.read_exactly(into, bytes_ - done_));
    std::byte more{};
    std::size_t extra = 0;
    if (last) {
      MDFS_TRY_ASSIGN(extra, file_.read({&more, 1}));
    }
    if (extra == 0) return {};
    return {Errc::kBadData, fmt::format("{}: more than the window's {} bytes", file_.name(), bytes_)};
  }

 private:
  File file_;
  const std::uint64_t bytes_;
  std::uint64_t done_ = 0;
};

class ArraySamples final : public Samples {
 public:
  explicit ArraySamples(std::unique_ptr<imagefile::ImageSource> source) : source_(std::move(source)) {}
  Status read(MutableBytes into, bool) override { return source_->read(into); }

 private:
  const std::unique_ptr<imagefile::ImageSource> source_;
};

Result<std::unique_ptr<Samples>> open_raw(const std::string& source, std::uint64_t bytes) {
  File file = File::standard_input();
  if (source != "-") {
    MDFS_TRY_ASSIGN(file, File::open(source, O_RDONLY));
  }
  return std::unique_ptr<Samples>(std::make_unique<RawSamples>(std::move(file), bytes));
}

// The window's array, with or without the axes that are one sample long.
Result<std::unique_ptr<Samples>> open_array(const std::string& source, const OpenWindow& open) {
  MDFS_TRY_ASSIGN(auto file, imagefile::open_source(source, {}));
  const auto squeezed = [](std::vector<std::uint64_t> lengths) {
    lengths.erase(std::remove(lengths.begin(), lengths.end(), std::uint64_t{1}), lengths.end());
    return lengths;
  };
  const imagefile::ArrayInfo wanted = array_of_window(open.geometry, open.window);
  const imagefile::ArrayInfo& found = file->array();
  if (found.type != wanted.type || squeezed(found.lengths) != squeezed(wanted.lengths))
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: {} {}, the window is {} {}", source, format_shape(found.lengths),
                             geometry::name(found.type), format_shape(wanted.lengths), geometry::name(wanted.type))};
  return std::unique_ptr<Samples>(std::make_unique<ArraySamples>(std::move(file)));
}

// The error of the daemon is an errno: what it means here.
Error explained(const Error& error, const WriteArguments& arguments, std::uint64_t bytes) {
  if (error.code != Errc::kTooBig) return error;
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
    return {Errc::kTooBig,
            fmt::format("{}: window {}, {}: this process may write {} to a file (ulimit -f)", arguments.path,
                        arguments.spec, format_size(bytes), format_size(limit.rlim_cur))};
  return {Errc::kTooBig, fmt::format("{}: window {}, {}: larger than max_window; mount with max_window={}",
                                     arguments.path, arguments.spec, format_size(bytes), bytes)};
}

// Part after part to a descriptor that is bound to the window: the last one applies all of them, and what ends before
// changes nothing.
Status write_command(const WriteArguments& arguments) {
  MDFS_TRY_ASSIGN(const OpenWindow open, open_window(arguments.path, arguments.spec, O_RDWR));
  if (open.level > 0)
    return {Errc::kInvalidArgument, fmt::format("{}: window {}: levels are only read", arguments.path, open.spec)};
  const std::uint64_t bytes = geometry::window_bytes(open.geometry, open.window);
  if (bytes > kMaxWriteBytes)
    return {Errc::kTooBig, fmt::format("window {}: {} bytes; a window write takes at most {}", arguments.spec, bytes,
                                       format_size(kMaxWriteBytes))};
  MDFS_TRY_ASSIGN(const auto samples,
                  is_raw(arguments.source) ? open_raw(arguments.source, bytes) : open_array(arguments.source, open));
  MDFS_TRY_ASSIGN(const auto handles, client::HandlePool::open(arguments.path, O_RDWR));
  mdfs_ioc_window window = open.ioc;
  MDFS_TRY_ASSIGN(const int fd, handles->bind(window));
  File bound(fd, arguments.path);
  Progress progress("writing", bytes);
  AlignedBuffer buffer(static_cast<std::size_t>(std::min(kWritePartBytes, bytes)));
  for (std::uint64_t at = 0; at < bytes;) {
    const MutableBytes part =
        buffer.bytes().first(static_cast<std::size_t>(std::min<std::uint64_t>(kWritePartBytes, bytes - at)));
    MDFS_TRY(samples->read(part, at + part.size() == bytes));
    if (const Status written = bound.write_at(at, part); !written.ok())
      return explained(written.error(), arguments, bytes);
    progress.add(part.size());
    at += part.size();
  }
  progress.finish();
  print_out("{}: window {} replaced, {} bytes\n", arguments.path, open.spec, bytes);
  return {};
}

// ---- explain

struct ExplainArguments {
  std::string path, spec;
  bool json = false;
  std::optional<double> rate, iops;
};

// Milliseconds that the slowest disk needs if it does `rate` MB/s and `iops` requests a second.
double floor_ms(const ExplainArguments& arguments, const mdfs_ioc_plan& plan) {
  double worst = 0;
  for (std::uint32_t i = 0; i < plan.disk_count; ++i) {
    const double by_bytes = arguments.rate ? static_cast<double>(plan.disks[i].bytes) / (*arguments.rate * 1e6) : 0;
    const double by_requests = arguments.iops ? static_cast<double>(plan.disks[i].requests) / *arguments.iops : 0;
    worst = std::max({worst, by_bytes, by_requests});
  }
  return worst * 1e3;
}

void print_json(const ExplainArguments& arguments, const OpenWindow& open, const mdfs_ioc_plan& plan) {
  const imagefile::ArrayInfo array = array_of_window(open.geometry, open.window);
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["window"] = open.spec;
  json["axes"] = array.axes;
  json["shape"] = array.lengths;
  json["bytes"] = geometry::window_bytes(open.geometry, open.window);
  json["extents"] = plan.extents;
  json["holes"] = plan.holes;
  json["cached"] = plan.cached;
  json["largest_request_bytes"] = plan.largest_request_bytes;
  json["disks"] = nlohmann::ordered_json::array();
  for (std::uint32_t i = 0; i < plan.disk_count; ++i)
    json["disks"].push_back(
        {{"bytes", plan.disks[i].bytes}, {"requests", plan.disks[i].requests}, {"runs", plan.disks[i].runs}});
  if (arguments.rate || arguments.iops) json["floor_ms"] = floor_ms(arguments, plan);
  print_out("{}\n", dump_json(json));
}

void print_text(const ExplainArguments& arguments, const OpenWindow& open, const mdfs_ioc_plan& plan) {
  const imagefile::ArrayInfo array = array_of_window(open.geometry, open.window);
  print_out("window {}: shape {} ({}), {} bytes\n", open.spec, format_shape(array.lengths), array.axes,
            geometry::window_bytes(open.geometry, open.window));
  print_out("  {} extents, {} of them holes, {} in the cache\n", plan.extents, plan.holes, plan.cached);
  std::uint64_t total = 0, busiest = 0;
  for (std::uint32_t i = 0; i < plan.disk_count; ++i) {
    const auto& disk = plan.disks[i];
    total += disk.bytes;
    busiest = std::max<std::uint64_t>(busiest, disk.bytes);
    print_out("  disk {}: {} bytes in {} requests, {} contiguous runs\n", i, disk.bytes, disk.requests, disk.runs);
  }
  // Of the disks that hold the image a small window reaches no more than it has extents.
  const std::uint64_t reached = std::min<std::uint64_t>(open.placed_disks, plan.extents - plan.holes);
  if (total > 0)
    print_out("  from disks: {} bytes; the busiest reads {:.2f} times the even share of {}\n", total,
              static_cast<double>(busiest) * static_cast<double>(reached) / static_cast<double>(total),
              reached < open.placed_disks
                  ? fmt::format("the {} disks that so few extents can reach, of {}", reached, open.placed_disks)
                  : fmt::format("all {} disks", reached));
  if (arguments.rate || arguments.iops) print_out("  floor: {:.2f} ms\n", floor_ms(arguments, plan));
}

Status explain_command(const ExplainArguments& arguments) {
  MDFS_TRY_ASSIGN(const OpenWindow open, open_window(arguments.path, arguments.spec, O_RDONLY));
  mdfs_ioc_plan plan{};
  const int result = mdfs_plan(open.image.get(), &open.ioc, &plan);
  if (result < 0) return library_error(result, arguments.path);
  if (plan.disk_count > MDFS_IOC_MAX_DISKS)
    return {Errc::kCorrupt, arguments.path + ": the daemon's answer is invalid"};
  if (arguments.json)
    print_json(arguments, open, plan);
  else
    print_text(arguments, open, plan);
  return {};
}

}  // namespace

void add_window_commands(CLI::App& app, Action& action) {
  CLI::App* noun = app.add_subcommand(
      "window", "Read, write and explain windows, such as y50+30,x100+40 or z10 or 100,50,40,30 (x,y,w,h)");
  noun->require_subcommand(1);

  const auto read = std::make_shared<ReadArguments>();
  CLI::App* command = noun->add_subcommand("read", "Read a window");
  command
      ->add_option("-o,--output", read->output,
                   ".npy, .raw, .pgm, .ppm, .png, .tif and so on (default: raw samples to standard output)")
      ->type_name("FILE");
  command->add_flag("--force", read->force, "Replace an existing file");
  command->add_option("PATH", read->path, "Image on the mounted volume")->required();
  command->add_option("SPEC", read->spec, "The window")->required();
  command->callback([read, &action] { action = [read] { return with_lost_disks(read_command(*read), read->path); }; });

  const auto write = std::make_shared<WriteArguments>();
  command = noun->add_subcommand("write", "Replace a window atomically");
  command->add_option("PATH", write->path, "Image on the mounted volume")->required();
  command->add_option("SPEC", write->spec, "The window")->required();
  command->add_option("SRC", write->source, "Image file of the window's shape and type; .raw and - hold raw samples")
      ->required();
  command->callback([write, &action] { action = [write] { return write_command(*write); }; });

  const auto explain = std::make_shared<ExplainArguments>();
  command = noun->add_subcommand("explain", "Show the requests that a read of a window makes to each disk");
  command->add_flag("--json", explain->json, "Print JSON");
  command->add_option("--rate", explain->rate, "Compute the shortest time on disks of this many MB/s")
      ->check(number_above_zero());
  command->add_option("--iops", explain->iops, "Compute the shortest time on disks of this many requests per second")
      ->check(number_above_zero());
  command->add_option("PATH", explain->path, "Image on the mounted volume")->required();
  command->add_option("SPEC", explain->spec, "The window")->required();
  command->callback([explain, &action] { action = [explain] { return explain_command(*explain); }; });
}

}  // namespace mdfs::tools
