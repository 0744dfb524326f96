// mdfs window read, cut, write and explain.
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
#include "damaged_extent.h"
#include "geometry/cut_spec.h"
#include "geometry/decompose.h"
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
#include "views/cut_view.h"

namespace mdfs::tools {
namespace {

constexpr std::uint64_t kReadPartBytes = 16u << 20;   // whole elements of any type
constexpr std::uint64_t kWritePartBytes = 16u << 20;  // whole elements of any type
constexpr std::uint64_t kMaxWriteBytes = std::uint64_t{4} << 30;

struct OpenWindow {
  Image image;
  unsigned level = 0;
  geometry::Geometry geometry;  // of the level, as the window
  geometry::Window window;      // inside the image
  std::optional<geometry::CutPlane> cut;
  imagefile::ArrayInfo array;
  std::uint64_t bytes = 0;         // of the array
  std::string spec;                // its canonical spelling
  bool is_box = true;              // what calls take; else a file under win/
  mdfs_ioc_window ioc{};           // of the window
  std::uint32_t placed_disks = 0;  // over which the image is spread
};

Result<OpenWindow> open_window(const std::string& path, const std::string& spec, int flags) {
  OpenWindow open;
  MDFS_TRY_ASSIGN(open.image, open_image(path, flags));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry info, image_info(*open.image, path));
  MDFS_TRY_ASSIGN(const geometry::Geometry whole, client::to_geometry(info));
  open.placed_disks = info.placed_disks;
  if (geometry::is_cut(spec)) {
    const auto cut = geometry::parse_cut(whole, spec);
    if (!cut.ok()) return Error{cut.error().code, path + ": " + cut.error().where};
    open.level = cut->level;
    open.geometry = geometry::level_geometry(whole, cut->level);
    open.cut = cut->plane;
    open.array = array_of_cut(open.geometry, cut->plane);
    open.bytes = geometry::cut_bytes(open.geometry, cut->plane);
    open.spec = geometry::to_spec(whole, *cut);
    open.is_box = false;
    return open;
  }
  const auto window = geometry::parse_level_window(whole, spec);
  if (!window.ok()) return Error{window.error().code, path + ": " + window.error().where};
  open.level = window->level;
  open.geometry = geometry::level_geometry(whole, window->level);
  open.window = window->window;
  const geometry::Window padded = geometry::padded(open.geometry, window->window, window->padding);
  open.array = array_of_window(open.geometry, padded);
  open.bytes = geometry::window_bytes(open.geometry, padded);
  open.spec = geometry::to_spec(whole, *window);
  open.is_box = window->padding.is_empty();
  open.ioc = client::from_window(whole, *window);
  return open;
}

// ---- read

struct ReadArguments {
  std::string path, spec, output = "-";
  bool force = false;
};

// The error of the daemon is an errno: what it means here.
Error explained(const Error& error, const ReadArguments& arguments, const OpenWindow& open) {
  if (error.code == Errc::kTooBig && open.cut)
    return {Errc::kTooBig, fmt::format("{}: window {}: a cut has at most {} of samples, and is as large around in a "
                                       "level",
                                       arguments.path, open.spec, format_size(views::kMaxCutBytes))};
  if (error.code != Errc::kTooBig || open.level == 0) return error;
  return {Errc::kTooBig, fmt::format("{}: window {}: too large to be computed; store the levels of the image (mdfs "
                                     "image levels --set auto), or read less at a time",
                                     arguments.path, open.spec)};
}

// The samples of the window, from the first on.
Result<File> open_samples(client::HandlePool& handles, const std::string& path, const OpenWindow& open) {
  if (!open.is_box) return File::open(fmt::format("{}@/win/{}.raw", path, open.spec), O_RDONLY);
  mdfs_ioc_window window = open.ioc;
  MDFS_TRY_ASSIGN(const int fd, handles.bind(window));
  if (window.bytes != open.bytes)
    return Error{Errc::kInvalidArgument, path + ": was replaced by another image during the read"};
  return File(fd, path);
}

// The rows of the window that hold these bytes of the array.
geometry::Window part_of(const OpenWindow& open, std::uint64_t at, std::uint64_t bytes) {
  geometry::Window part = open.window;
  unsigned axis = 0;
  while (axis + 1 < open.geometry.rank && part.length[axis] == 1) ++axis;
  const std::uint64_t row_bytes = open.bytes / part.length[axis];
  const std::uint64_t first = at / row_bytes, last = (at + bytes - 1) / row_bytes;
  part.start[axis] += first;
  part.length[axis] = last - first + 1;
  return part;
}

Status read_command(const ReadArguments& arguments) {
  MDFS_TRY_ASSIGN(const OpenWindow open, open_window(arguments.path, arguments.spec, O_RDONLY));
  MDFS_TRY_ASSIGN(const auto sink, imagefile::create_sink(arguments.output, open.array, arguments.force));
  const std::uint64_t bytes = open.bytes;
  const bool to_file = arguments.output != "-";
  Progress progress("reading", bytes, to_file || ::isatty(STDOUT_FILENO) != 1);
  // One binding, or one open file, so one version of a window of any size.
  MDFS_TRY_ASSIGN(const auto handles, client::HandlePool::open(arguments.path, O_RDONLY));
  auto opened = open_samples(*handles, arguments.path, open);
  if (!opened.ok()) return explained(opened.error(), arguments, open);
  File bound = std::move(*opened);
  AlignedBuffer buffer(static_cast<std::size_t>(std::min(kReadPartBytes, bytes)));
  for (std::uint64_t at = 0; at < bytes;) {
    const MutableBytes part = buffer.bytes().first(static_cast<std::size_t>(std::min(kReadPartBytes, bytes - at)));
    const Result<std::size_t> read = bound.read_at(at, part);
    if (!read.ok())
      return open.is_box ? with_damaged_extent(read.error(), *open.image, open.geometry, open.level,
                                               part_of(open, at, part.size()), arguments.path)
                         : read.error();
    const std::size_t got = *read;
    if (got == 0) return {Errc::kIo, arguments.path + ": the read returned fewer bytes than the window has"};
    MDFS_TRY(sink->write(part.first(got)));
    progress.add(got);
    at += got;
  }
  MDFS_TRY(sink->finish());
  progress.finish();
  if (to_file) print_out("{}\n", array_line(arguments.output, open.array, bytes));
  return {};
}

struct CutArguments {
  ReadArguments read;
  std::string origin, u, v, size, at;
  std::optional<std::uint64_t> level;
  bool near = false;
};

Status cut_command(const CutArguments& cut) {
  ReadArguments read = cut.read;
  read.spec = fmt::format("cut,{},{},{},{}", cut.origin, cut.u, cut.v, cut.size);
  if (cut.near) read.spec += ",near";
  if (cut.level) read.spec += fmt::format(",l{}", *cut.level);
  if (!cut.at.empty()) read.spec += "," + cut.at;
  return read_command(read);
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
  const imagefile::ArrayInfo& wanted = open.array;
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
  return {Errc::kTooBig,
          fmt::format("{}: window {}, {}: more than this mount writes at once; mount with max_window={}, or with a "
                      "larger cache, which limits the number of extents",
                      arguments.path, arguments.spec, format_size(bytes), bytes)};
}

// Part after part to a descriptor that is bound to the window: the last one applies all of them, and what ends before
// changes nothing.
Status write_command(const WriteArguments& arguments) {
  MDFS_TRY_ASSIGN(const OpenWindow open, open_window(arguments.path, arguments.spec, O_RDWR));
  if (open.level > 0 || !open.is_box)
    return {Errc::kInvalidArgument,
            fmt::format("{}: window {}: cuts, padded windows and levels are only read", arguments.path, open.spec)};
  const std::uint64_t bytes = open.bytes;
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

// In the box around a cut.
std::uint64_t extents_around(const OpenWindow& open) {
  const auto around = geometry::window_around(open.geometry, *open.cut);
  if (!around) return 0;
  return geometry::piece_count(geometry::byte_geometry(open.geometry), geometry::byte_box(open.geometry, *around));
}

void print_json(const ExplainArguments& arguments, const OpenWindow& open, const mdfs_ioc_plan& plan) {
  const imagefile::ArrayInfo& array = open.array;
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["window"] = open.spec;
  json["axes"] = array.axes;
  json["shape"] = array.lengths;
  json["bytes"] = open.bytes;
  json["extents"] = plan.extents;
  json["holes"] = plan.holes;
  json["cached"] = plan.cached;
  json["largest_request_bytes"] = plan.largest_request_bytes;
  json["disks"] = nlohmann::ordered_json::array();
  for (std::uint32_t i = 0; i < plan.disk_count; ++i)
    json["disks"].push_back(
        {{"bytes", plan.disks[i].bytes}, {"requests", plan.disks[i].requests}, {"runs", plan.disks[i].runs}});
  if (open.cut) json["extents_around"] = extents_around(open);
  if (arguments.rate || arguments.iops) json["floor_ms"] = floor_ms(arguments, plan);
  print_out("{}\n", dump_json(json));
}

void print_text(const ExplainArguments& arguments, const OpenWindow& open, const mdfs_ioc_plan& plan) {
  const imagefile::ArrayInfo& array = open.array;
  print_out("window {}: shape {} ({}), {} bytes\n", open.spec, format_shape(array.lengths), array.axes, open.bytes);
  if (open.cut)
    print_out("  a cut: {} extents lie in the box around it, and requests are counted for each extent\n",
              extents_around(open));
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

Result<mdfs_ioc_plan> plan_window(const std::string& path, const OpenWindow& open, const mdfs_ioc_window& window) {
  mdfs_ioc_plan plan{};
  const int result = mdfs_plan(open.image.get(), &window, &plan);
  if (result < 0) return library_error(result, path);
  if (plan.disk_count > MDFS_IOC_MAX_DISKS) return Error{Errc::kCorrupt, path + ": the daemon's answer is invalid"};
  return plan;
}

// The sum over the extents that the cut meets. Requests of neighbours may be merged when they are read.
Result<mdfs_ioc_plan> plan_cut(const std::string& path, const OpenWindow& open) {
  if (open.bytes > views::kMaxCutBytes)
    return Error{Errc::kTooBig, fmt::format("{}: window {}: a cut has at most {} of samples", path, open.spec,
                                            format_size(views::kMaxCutBytes))};
  mdfs_ioc_plan sum{};
  for (const auto& piece : geometry::cut_pieces(open.geometry, *open.cut, geometry::whole(open.cut->cut))) {
    MDFS_TRY_ASSIGN(
        const mdfs_ioc_plan plan,
        plan_window(path, open, client::from_window(open.geometry, geometry::LevelWindow{open.level, piece.window})));
    sum.extents += plan.extents;
    sum.holes += plan.holes;
    sum.cached += plan.cached;
    sum.disk_count = std::max(sum.disk_count, plan.disk_count);
    sum.largest_request_bytes = plan.largest_request_bytes;
    for (std::uint32_t i = 0; i < plan.disk_count; ++i) {
      sum.disks[i].bytes += plan.disks[i].bytes;
      sum.disks[i].requests += plan.disks[i].requests;
      sum.disks[i].runs += plan.disks[i].runs;
    }
  }
  return sum;
}

Status explain_command(const ExplainArguments& arguments) {
  MDFS_TRY_ASSIGN(const OpenWindow open, open_window(arguments.path, arguments.spec, O_RDONLY));
  mdfs_ioc_plan plan{};
  if (open.cut) {
    MDFS_TRY_ASSIGN(plan, plan_cut(arguments.path, open));
  } else {
    MDFS_TRY_ASSIGN(plan, plan_window(arguments.path, open, open.ioc));
  }
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

  const auto cut = std::make_shared<CutArguments>();
  command = noun->add_subcommand("cut", "Read an oblique plane of a volume");
  command->add_option("--origin", cut->origin, "Where the first sample lies, in samples")
      ->type_name("X,Y,Z")
      ->required();
  command->add_option("-u,--u", cut->u, "The step from a column to the next")->type_name("X,Y,Z")->required();
  command->add_option("-v,--v", cut->v, "The step from a row to the next")->type_name("X,Y,Z")->required();
  command->add_option("--size", cut->size, "Columns and rows")->type_name("W,H")->required();
  command->add_flag("--near", cut->near, "Take the nearest sample, such as a label, instead of interpolating");
  command->add_option("--level", cut->level, "Resolution level; all numbers are in samples of this level")
      ->type_name("N");
  command->add_option("--at", cut->at, "One index along each axis other than x, y and z, and a channel")
      ->type_name("t3,c1");
  command
      ->add_option("-o,--output", cut->read.output, "Output file, as of read (default: raw samples to standard output)")
      ->type_name("FILE");
  command->add_flag("--force", cut->read.force, "Replace an existing file");
  command->add_option("PATH", cut->read.path, "Image on the mounted volume")->required();
  command->callback([cut, &action] { action = [cut] { return with_lost_disks(cut_command(*cut), cut->read.path); }; });

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
