// mdfs stream open, list, close.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "commands.h"
#include "convert.h"
#include "geometry/level.h"
#include "geometry/window_spec.h"
#include "mounted.h"
#include "support/command.h"
#include "support/file.h"
#include "support/interruption.h"
#include "support/json_output.h"
#include "support/ranges.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

using nlohmann::ordered_json;

constexpr double kNsPerMs = 1e6;
constexpr std::int64_t kMostStep = 1'000'000'000;

struct CloseStream {
  void operator()(mdfs_stream* stream) const { mdfs_stream_close(stream); }
};
using Stream = std::unique_ptr<mdfs_stream, CloseStream>;

struct OpenArguments {
  std::string path, window, axis, output;
  double rate = 0;
  std::int64_t step = 1;
  std::uint64_t frames = 0;  // 0: to the end
  unsigned lookahead = 0;
  bool drop = false, coarser = false, unchecked = false, json = false;
};

std::vector<double> by_disk(const double* shares, std::size_t disks) {
  return {shares, shares + std::min<std::size_t>(disks, MDFS_IOC_MAX_DISKS)};
}

ordered_json stream_json(const mdfs_ioc_stream& stream, std::size_t disks) {
  ordered_json json;
  json["id"] = stream.id;
  json["inode"] = stream.inode;
  json["pid"] = stream.pid;
  json["uid"] = stream.uid;
  json["rate"] = stream.rate;
  json["step"] = stream.step;
  json["axis"] = stream.axis;
  json["level"] = stream.window.level;
  json["start"] = std::vector<std::uint64_t>(stream.window.start, stream.window.start + stream.window.rank);
  json["length"] = std::vector<std::uint64_t>(stream.window.length, stream.window.length + stream.window.rank);
  json["frame_bytes"] = stream.window.bytes;
  json["frame"] = stream.frame;
  json["frames"] = stream.frames;
  json["lookahead"] = stream.lookahead;
  json["drop"] = (stream.flags & MDFS_STREAM_DROP) != 0;
  json["coarser"] = (stream.flags & MDFS_STREAM_COARSER) != 0;
  json["unchecked"] = (stream.flags & MDFS_STREAM_UNCHECKED) != 0;
  json["paused"] = (stream.flags & MDFS_STREAM_PAUSED) != 0;
  json["ended"] = (stream.flags & MDFS_STREAM_ENDED) != 0;
  json["in_time"] = stream.in_time;
  json["late"] = stream.late;
  json["dropped"] = stream.dropped;
  json["failed"] = stream.failed;
  json["from_coarser_level"] = stream.coarser;
  json["latest_ms"] = static_cast<double>(stream.latest_ns) / kNsPerMs;
  json["reserved_load"] = by_disk(stream.reserved_load, disks);
  json["used_load"] = by_disk(stream.used_load, disks);
  return json;
}

double busiest_share(const double* shares) { return *std::max_element(shares, shares + MDFS_IOC_MAX_DISKS); }

std::string counts_text(const mdfs_ioc_stream& stream) {
  std::string text = fmt::format("{} frames in time, {} late, {} dropped, {} failed", stream.in_time, stream.late,
                                 stream.dropped, stream.failed);
  if (stream.coarser > 0) text += fmt::format("; {} from a coarser level", stream.coarser);
  if (stream.late > 0)
    text += fmt::format("; the latest {:.1f} ms behind its deadline", static_cast<double>(stream.latest_ns) / kNsPerMs);
  return text;
}

std::string stream_text(const mdfs_ioc_stream& stream) {
  return fmt::format(
      "stream {}: inode {}, process {}: {:.6g} frames per second of {}, frame {} of {}{}: {}; busiest "
      "disk {:.0f} % reserved, {:.0f} % used",
      stream.id, stream.inode, stream.pid, stream.rate, format_size(stream.window.bytes), stream.frame, stream.frames,
      (stream.flags & MDFS_STREAM_PAUSED) != 0  ? ", paused"
      : (stream.flags & MDFS_STREAM_ENDED) != 0 ? ", at its end"
                                                : "",
      counts_text(stream), 100 * busiest_share(stream.reserved_load), 100 * busiest_share(stream.used_load));
}

// ---- open

// Without one, time; without time, the slowest axis.
Result<unsigned> axis_of(const geometry::Geometry& image, const std::string& name) {
  if (name.empty()) {
    const std::size_t time = image.axes.find('t');
    return time == std::string::npos ? 0u : static_cast<unsigned>(time);
  }
  const std::size_t found = name.size() == 1 ? image.axes.find(name) : std::string::npos;
  if (found == std::string::npos)
    return Error{Errc::kUsage, fmt::format("--axis {}: the image has the axes {}", name, image.axes)};
  return static_cast<unsigned>(found);
}

// Items of a window begin with the letters of their axes.
bool names_axis(const std::string& window, char axis) {
  return window.starts_with(axis) || window.find(fmt::format(",{}", axis)) != std::string::npos;
}

Result<mdfs_ioc_stream> request_of(mdfs_image& image, const OpenArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry info, image_info(image, arguments.path));
  MDFS_TRY_ASSIGN(const geometry::Geometry whole, client::to_geometry(info));
  mdfs_ioc_stream request{};
  MDFS_TRY_ASSIGN(request.axis, axis_of(whole, arguments.axis));
  const auto parsed = geometry::parse_level_window(whole, arguments.window.empty() ? "all" : arguments.window);
  if (!parsed.ok()) return Error{parsed.error().code, "--window " + parsed.error().where};
  geometry::LevelWindow window = *parsed;
  if (!window.padding.is_empty()) return Error{Errc::kUsage, "--window " + arguments.window + ": clip is not taken"};
  // An axis that is not named means a frame of one sample: from the first on, or backwards from the last.
  const geometry::Geometry level = geometry::level_geometry(whole, window.level);
  if (!names_axis(arguments.window, whole.axes[request.axis])) {
    window.window.start[request.axis] = arguments.step < 0 ? level.shape[request.axis] - 1 : 0;
    window.window.length[request.axis] = 1;
  }
  const std::uint64_t length = window.window.length[request.axis];
  if (window.window.start[request.axis] % length != 0)
    return Error{Errc::kUsage, fmt::format("--window {}: along axis {} it must begin at a multiple of its length, {}",
                                           arguments.window, whole.axes[request.axis], length)};
  request.window = client::from_window(whole, window);
  request.flags = (arguments.drop ? MDFS_STREAM_DROP : 0u) | (arguments.unchecked ? MDFS_STREAM_UNCHECKED : 0u) |
                  (arguments.coarser ? MDFS_STREAM_COARSER : 0u);
  request.step = arguments.step;
  request.rate = arguments.rate;
  request.lookahead = arguments.lookahead;
  return request;
}

// Not the image itself, which would be lost.
Result<File> open_output(const std::string& output, const std::string& image) {
  if (output == "-") return File::standard_output();
  MDFS_TRY_ASSIGN(File file, File::open(output, O_WRONLY | O_CREAT));
  struct stat of_output {
  }, of_image{};
  if (::fstat(file.fd(), &of_output) != 0) return from_errno(errno, output);
  if (::stat(image.c_str(), &of_image) != 0) return from_errno(errno, image);
  if (of_output.st_dev == of_image.st_dev && of_output.st_ino == of_image.st_ino)
    return Error{Errc::kUsage, "--output " + output + ": is the image itself"};
  if (S_ISREG(of_output.st_mode) && ::ftruncate(file.fd(), 0) != 0) return from_errno(errno, output);
  return file;
}

std::chrono::steady_clock::time_point time_of(std::int64_t monotonic_ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(monotonic_ns));
}

void count(const mdfs_ioc_frame& frame, bool failed, std::uint32_t own_level, mdfs_ioc_stream& state) {
  state.dropped += frame.dropped;
  if (failed) {
    ++state.failed;
    return;
  }
  ++(frame.ready_ns <= frame.deadline_ns ? state.in_time : state.late);
  if (frame.level != own_level) ++state.coarser;
  state.latest_ns = std::max(state.latest_ns, frame.ready_ns - frame.deadline_ns);
}

// The state of a stream that is open: what is there no more is an error.
Status look(mdfs_stream& stream, const std::string& path, mdfs_ioc_stream& state) {
  mdfs_ioc_stream now{};
  now.action = MDFS_IOC_STREAM_SHOW;
  if (const int result = mdfs_stream_change(&stream, &now); result != 0)
    return result == -ENODATA ? Status(Error{Errc::kCancelled, path + ": the stream was closed"})
                              : Status(library_error(result, path));
  state = now;
  return {};
}

// Takes frames at their deadlines, and passes them on, until the end or a signal. `state` is that of the stream at the
// end, or what was counted here if it was closed before.
Status show_frames(mdfs_stream& stream, const OpenArguments& arguments, std::optional<File>& output,
                   mdfs_ioc_stream& state) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(state.window.bytes));
  bool failing = false;
  for (std::uint64_t shown = 0; arguments.frames == 0 || shown < arguments.frames; ++shown) {
    mdfs_ioc_frame frame{};
    const ssize_t bytes = mdfs_stream_next(&stream, buffer.data(), buffer.size(), &frame);
    if (bytes == 0 || Interruption::asked()) break;
    if (bytes == -ENODATA || bytes == -EINTR) return {Errc::kCancelled, arguments.path + ": the stream was closed"};
    if (bytes == -EBUSY) return {Errc::kBusy, arguments.path + ": the stream is paused"};
    const Error error = bytes < 0 ? library_error(bytes, arguments.path) : Error{};
    count(frame, bytes < 0, state.window.level, state);
    if (bytes < 0) {
      mdfs_ioc_stream now{};
      if (!look(stream, arguments.path, now).ok()) return error;  // the mount is gone
      // Of many one after another the first; all are counted.
      if (!std::exchange(failing, true)) (void)tools::report("mdfs", error);
      continue;
    }
    failing = false;
    if (!wait_until(time_of(frame.deadline_ns), Interruption::asked())) break;
    if (output) MDFS_TRY(output->write({buffer.data(), static_cast<std::size_t>(bytes)}));
  }
  MDFS_TRY(look(stream, arguments.path, state));
  if (output) MDFS_TRY(output->close());
  if (state.failed == 0) return {};
  return {Errc::kCorrupt, fmt::format("{}: {} frames could not be read", arguments.path, state.failed)};
}

Status open_command(const OpenArguments& arguments) {
  MDFS_TRY_ASSIGN(const Image image, open_image(arguments.path, O_RDONLY));
  MDFS_TRY_ASSIGN(mdfs_ioc_stream request, request_of(*image, arguments));
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  const Interruption interruption;
  mdfs_stream* opened = nullptr;
  if (const int result = mdfs_stream_open(image.get(), &request, &opened); result != 0)
    return library_error(result, arguments.path);
  const Stream stream(opened);
  std::optional<File> output;
  if (!arguments.output.empty()) {
    MDFS_TRY_ASSIGN(output, open_output(arguments.output, arguments.path));
  }
  if (!arguments.json)
    print_err("stream {}: {:.6g} frames per second of {}, {} ahead; the busiest disk is reserved to {:.0f} %\n",
              request.id, request.rate, format_size(request.window.bytes), request.lookahead, 100 * request.load);
  mdfs_ioc_stream state = request;
  const Status shown = show_frames(*stream, arguments, output, state);
  // Frames may go to standard output.
  if (arguments.json && arguments.output != "-") {
    ordered_json json = {{"output_version", kOutputVersion}};
    json.update(stream_json(state, volume.disk_count));
    print_out("{}\n", dump_json(json));
  } else {
    print_err("{}\n", counts_text(state));
  }
  return shown;
}

// ---- list and close

Result<std::optional<mdfs_ioc_stream>> ask(File& file, std::uint32_t action, std::uint64_t id) {
  mdfs_ioc_stream request{};
  request.struct_bytes = sizeof request;
  request.action = action;
  request.id = id;
  if (::ioctl(file.fd(), MDFS_IOC_STREAM, &request) == 0) return std::optional(request);
  if (errno == ENODATA) return std::optional<mdfs_ioc_stream>();
  if (errno == EOPNOTSUPP)
    return Error{Errc::kNotSupported, file.name() + ": the mount has no streams (-o streams=off)"};
  if (errno == EPERM)
    return Error{Errc::kNotPermitted, "another user's stream is closed by root or the owner of the mount"};
  if (errno == ENOTTY) return Error{Errc::kNotTty, file.name()};
  return from_errno(errno, file.name() + ": streams");
}

Status list_command(const std::string& path, bool as_json) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(path));
  MDFS_TRY_ASSIGN(File file, File::open(path, O_RDONLY | O_NONBLOCK));
  ordered_json json = {{"output_version", kOutputVersion}, {"streams", ordered_json::array()}};
  std::uint64_t id = 1;
  for (;;) {
    MDFS_TRY_ASSIGN(const std::optional<mdfs_ioc_stream> stream, ask(file, MDFS_IOC_STREAM_LIST, id));
    if (!stream) break;
    if (as_json)
      json["streams"].push_back(stream_json(*stream, volume.disk_count));
    else
      print_out("{}\n", stream_text(*stream));
    id = stream->id + 1;
  }
  if (as_json)
    print_out("{}\n", dump_json(json));
  else if (id == 1)
    print_out("no stream is open\n");
  return {};
}

Status close_command(const std::string& path, std::uint64_t id) {
  MDFS_TRY_ASSIGN(File file, File::open(path, O_RDONLY | O_NONBLOCK));
  MDFS_TRY_ASSIGN(const std::optional<mdfs_ioc_stream> stream, ask(file, MDFS_IOC_STREAM_CLOSE, id));
  if (!stream) return {Errc::kNoData, fmt::format("stream {}: mdfs stream list shows those that are open", id)};
  print_out("closed {}\n", stream_text(*stream));
  return {};
}

}  // namespace

void add_stream_commands(CLI::App& app, Action& action) {
  CLI::App* noun = app.add_subcommand("stream", "Windows that advance at a reserved rate");
  noun->require_subcommand(1);

  const auto arguments = std::make_shared<OpenArguments>();
  CLI::App* open = noun->add_subcommand("open", "Reserve a rate, and take the frames at their deadlines");
  open->add_option("--rate", arguments->rate, "Frames per second")
      ->required()
      ->check(number_from(MDFS_STREAM_MIN_RATE, MDFS_STREAM_MAX_RATE));
  open->add_option("--axis", arguments->axis, "The axis along which frames follow (default: t, else the slowest)");
  open->add_option("--window", arguments->window,
                   "The first frame (default: the whole, one sample along the axis, from its beginning)");
  open->add_option("--step", arguments->step, "Frames from one to the next; below 0: backwards (default 1)")
      ->check(step_number(kMostStep));
  open->add_option("--lookahead", arguments->lookahead, "Frames that are read ahead (default: half a second)")
      ->check(whole_number(1, MDFS_STREAM_MAX_LOOKAHEAD));
  open->add_option("--frames", arguments->frames, "Stop after so many frames (default: at the end)")
      ->check(whole_number(1, UINT64_MAX));
  open->add_flag("--coarser", arguments->coarser,
                 "Make frames that are short of time, or cannot be read, from a coarser stored level");
  open->add_flag("--drop", arguments->drop, "Leave out frames whose time is over");
  open->add_flag("--unchecked", arguments->unchecked, "Accept the rate although the disks may have no time for it");
  open->add_option("--output,-o", arguments->output, "Write the bytes of the frames here; - is standard output");
  open->add_flag("--json", arguments->json, "Print JSON at the end");
  open->add_option("PATH", arguments->path, "An image")->required();
  open->callback([arguments, &action] { action = [arguments] { return open_command(*arguments); }; });

  const auto path = std::make_shared<std::string>();
  const auto as_json = std::make_shared<bool>(false);
  CLI::App* list = noun->add_subcommand("list", "Show the open streams");
  list->add_flag("--json", *as_json, "Print JSON");
  list->add_option("PATH", *path, "Mount point, or any file on the volume")->required();
  list->callback([path, as_json, &action] { action = [path, as_json] { return list_command(*path, *as_json); }; });

  const auto id = std::make_shared<std::uint64_t>(0);
  CLI::App* close = noun->add_subcommand("close", "Close a stream, which frees what it has reserved");
  close->add_option("PATH", *path, "Mount point, or any file on the volume")->required();
  close->add_option("ID", *id, "Its number, as mdfs stream list shows it")
      ->required()
      ->check(whole_number(1, UINT64_MAX));
  close->callback([path, id, &action] { action = [path, id] { return close_command(*path, *id); }; });
}

}  // namespace mdfs::tools
