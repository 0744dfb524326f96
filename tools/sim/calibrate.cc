// mdfs-sim calibrate: times reads or writes of a real disk or file, past the page cache, and writes a machine file.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/environment.h"
#include "commands.h"
#include "device/open.h"
#include "model/quantity.h"
#include "model/random.h"
#include "options.h"
#include "report.h"
#include "sim/calibration.h"
#include "support/file.h"
#include "support/pending_file.h"
#include "support/progress.h"
#include "support/ranges.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr std::uint64_t kLargestRead = 64u << 20;
constexpr unsigned kWarmUpReads = 4;
constexpr double kLongestBatchS = 60;
constexpr double kScattered = 0.3;        // half of the 95 % interval over the mean
constexpr std::size_t kRoomForReads = 8;  // the disk is at least so many times as large as the largest read

struct CalibrateOptions : SimOptions {
  std::string target;
  std::vector<std::string> sizes = {"4K", "16K", "64K", "128K", "256K", "512K", "1M", "2M"};
  unsigned reads = 40;
  std::string batch = "0 s";
  bool write = false;
  unsigned disks = 1;
  std::string name = "calibrated";
  std::string output;
};

Result<std::vector<std::uint64_t>> read_sizes(const CalibrateOptions& options) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : options.sizes) {
    MDFS_TRY_ASSIGN(const std::uint64_t bytes, parse_size(text, "--sizes"));
    if (bytes == 0 || bytes % kBufferAlignment != 0 || bytes > kLargestRead)
      return Error{Errc::kUsage, fmt::format("--sizes {}: must be a multiple of {} bytes, at most {}", text,
                                             kBufferAlignment, format_size(kLargestRead))};
    sizes.push_back(bytes);
  }
  return sizes;
}

Error no_direct(const std::string& path) {
  return {Errc::kNotSupported, path + ": its filesystem has no O_DIRECT, which bypasses the page cache"};
}

Result<File> open_direct(const std::string& path, bool write) {
  auto file = File::open(path, (write ? O_RDWR | O_DSYNC : O_RDONLY) | O_DIRECT);
  if (!file.ok() && file.error().code == Errc::kInvalidArgument) return no_direct(path);
  struct stat found {};
  if (file.ok() && write && fstat(file->fd(), &found) == 0 && S_ISREG(found.st_mode) &&
      flock(file->fd(), LOCK_EX | LOCK_NB) != 0)
    return Error{Errc::kBusy, path + ": is in use"};
  return file;
}

// Times transfers at random places of a disk or file. A write puts back the bytes that were there.
class Stopwatch {
 public:
  static Result<Stopwatch> open(const std::string& path, bool write, std::uint64_t largest, std::uint64_t seed) {
    Stopwatch made(seed, write, largest);
    // What is written back must not change meanwhile: it is held as a mount holds its disks.
    if (write) {
      MDFS_TRY_ASSIGN(made.held_, device::open_disk_descriptor(path, device::OpenMode::kReadWrite));
    }
    MDFS_TRY_ASSIGN(made.file_, open_direct(path, write));
    const off_t end = lseek(made.file_.fd(), 0, SEEK_END);
    if (end < 0) return from_errno(errno, path);
    made.size_ = static_cast<std::uint64_t>(end);
    if (made.size_ < largest * kRoomForReads)
      return Error{Errc::kInvalidArgument,
                   fmt::format("{} holds {}; at least {} are needed for transfers of {} at random places", path,
                               format_size(made.size_), format_size(largest * kRoomForReads), format_size(largest))};
    return made;
  }

  std::uint64_t size() const { return size_; }

  Result<sim::TimedRead> once(std::uint64_t bytes) {
    const std::uint64_t at = random_.below((size_ - bytes) / kBufferAlignment + 1) * kBufferAlignment;
    const MutableBytes room = buffer_.bytes().first(bytes);
    const std::uint64_t head = std::exchange(head_, at + bytes);
    if (write_) MDFS_TRY(read(at, room));
    const std::int64_t begun = clock_.monotonic_ns();
    if (write_) {
      MDFS_TRY(file_.write_at(at, room));
    } else {
      MDFS_TRY(read(at, room));
    }
    return sim::TimedRead{.bytes = static_cast<double>(bytes),
                          .seconds = static_cast<double>(clock_.monotonic_ns() - begun) * 1e-9,
                          .distance_bytes = static_cast<double>(std::max(at, head) - std::min(at, head))};
  }

  // One, or the mean of one after another for at least this long.
  Result<sim::TimedRead> batch(std::uint64_t bytes, double batch_s) {
    MDFS_TRY_ASSIGN(sim::TimedRead result, once(bytes));
    double count = 1;
    while (result.seconds < batch_s) {
      MDFS_TRY_ASSIGN(const sim::TimedRead next, once(bytes));
      result.seconds += next.seconds;
      ++count;
    }
    result.seconds /= count;
    return result;
  }

  model::Random& random() { return random_; }

 private:
  Stopwatch(std::uint64_t seed, bool write, std::uint64_t largest) : random_(seed), write_(write), buffer_(largest) {}
  Status read(std::uint64_t at, MutableBytes room) {
    MDFS_TRY_ASSIGN(const std::size_t got, file_.read_at(at, room));
    if (got != room.size())
      return Error{Errc::kIo, fmt::format("{}: read {} of {} bytes at byte {}", file_.name(), got, room.size(), at)};
    return {};
  }

  model::Random random_;
  const bool write_;
  AlignedBuffer buffer_;
  device::UniqueFd held_;
  File file_;
  std::uint64_t size_ = 0;
  std::uint64_t head_ = 0;  // where the last transfer ended
  SystemEnvironment clock_;
};

// All sizes interleaved in random order; the first transfers only wake the disk.
Result<sim::Calibration> time_transfers(const CalibrateOptions& options, const std::vector<std::uint64_t>& sizes) {
  MDFS_TRY_ASSIGN(const double batch_s, named("--batch", model::parse_time_s(options.batch)));
  if (batch_s > kLongestBatchS)
    return Error{Errc::kUsage, fmt::format("--batch {}: at most {} s", options.batch, kLongestBatchS)};
  MDFS_TRY_ASSIGN(Stopwatch watch, Stopwatch::open(options.target, options.write,
                                                   *std::max_element(sizes.begin(), sizes.end()), options.seed));
  std::vector<std::uint64_t> order;
  for (unsigned i = 0; i < options.reads; ++i) order.insert(order.end(), sizes.begin(), sizes.end());
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[watch.random().below(i)]);
  for (unsigned i = 0; i < kWarmUpReads; ++i) {
    MDFS_TRY_ASSIGN([[maybe_unused]] const sim::TimedRead read, watch.once(sizes[0]));
  }
  std::uint64_t total = 0;
  for (const std::uint64_t bytes : order) total += bytes;
  Progress progress(options.write ? "writing" : "reading", total);
  std::vector<sim::TimedRead> reads;
  for (const std::uint64_t bytes : order) {
    MDFS_TRY_ASSIGN(const sim::TimedRead read, watch.batch(bytes, batch_s));
    reads.push_back(read);
    progress.add(bytes);
  }
  progress.finish();
  return sim::calibrate(reads, static_cast<double>(watch.size()), batch_s > 0);
}

nlohmann::ordered_json latency_json(const sim::LatencyDistribution& latency) {
  using Kind = sim::LatencyDistribution::Kind;
  nlohmann::ordered_json json = {{"kind", sim::kind_text(latency.kind)}};
  switch (latency.kind) {
    case Kind::kConstant:
      json["constant_s"] = latency.low_s;
      break;
    case Kind::kUniform:
      json["low_s"] = latency.low_s;
      json["high_s"] = latency.high_s;
      break;
    case Kind::kExponential:
      json["constant_s"] = latency.low_s;
      json["mean_s"] = latency.high_s;
      break;
    case Kind::kHead:
      json["track_s"] = latency.low_s;
      json["stroke_s"] = latency.high_s;
      json["rotation_s"] = latency.rotation_s;
      json["capacity_bytes"] = latency.capacity_bytes;
      break;
  }
  return json;
}

std::string latency_text(const sim::LatencyDistribution& latency) {
  using Kind = sim::LatencyDistribution::Kind;
  switch (latency.kind) {
    case Kind::kConstant:
      return fmt::format("constant, {}", time_text(latency.low_s));
    case Kind::kUniform:
      return fmt::format("uniform, {} to {}", time_text(latency.low_s), time_text(latency.high_s));
    case Kind::kExponential:
      return fmt::format("{} and exponential with a mean of {}", time_text(latency.low_s), time_text(latency.high_s));
    case Kind::kHead:
      return fmt::format("head, seeks of {} to {}, rotation of {}", time_text(latency.low_s), time_text(latency.high_s),
                         time_text(latency.rotation_s));
  }
  return {};
}

void report_latency(const sim::Calibration& calibration, Report& report) {
  const char* const reads = calibration.means_only ? "batches" : "reads";
  const sim::HeldOut& held_out = calibration.held_out;
  const bool fits = sim::describes(held_out);
  auto& json = report.json();
  json["latency"] = latency_json(calibration.model.latency);
  json["held_out"] = {{"reads", held_out.reads},
                      {"mean_error", held_out.mean_error},
                      {"median_error", held_out.median_error},
                      {"p95_error", held_out.p95_error},
                      {"largest_error", sim::kLargestQuantileError}};
  json["distribution_fits"] = fits;
  std::string distances;
  for (const sim::FittedModel& one : calibration.candidates) {
    json["candidates"].push_back({{"latency", latency_json(one.model.latency)},
                                  {"throughput_bytes_per_s", 1 / one.model.seconds_per_byte},
                                  {"distance", one.held_out.distance},
                                  {"score", one.score()},
                                  {"median_error", one.held_out.median_error},
                                  {"p95_error", one.held_out.p95_error}});
    distances += fmt::format("{}{} {:.1f} %", distances.empty() ? "" : ", ", sim::kind_text(one.model.latency.kind),
                             one.held_out.distance * 100);
  }
  report.line("latency: " + latency_text(calibration.model.latency));
  if (held_out.reads == 0) return report.line("too few reads to hold some out: the fit is not judged");
  report.line(fmt::format("{} held-out {}: mean {:+.1f} %, median {:+.1f} %, p95 {:+.1f} % off the fit", held_out.reads,
                          reads, held_out.mean_error * 100, held_out.median_error * 100, held_out.p95_error * 100));
  report.line("mean distance from the quantiles: " + distances);
  if (!fits)
    report.line(
        fmt::format("no distribution of a machine file is within {:.0f} % at the median and at p95: windows of "
                    "this machine are predicted wrongly",
                    sim::kLargestQuantileError * 100));
  if (calibration.means_only) report.line("a batch hides how single reads differ: only a constant is fitted");
}

void report_rows(const sim::Calibration& calibration, Report& report) {
  report.columns({"bytes", "reads", "mean_s", "half_width_95_s", "fitted_s", "residual_%"});
  for (const sim::Calibration::Row& row : calibration.rows) {
    const sim::SizeMean& size = row.measured;
    report.row({fmt::format("{:.0f}", size.bytes), std::to_string(size.reads), number_text(size.mean_s),
                number_text(size.half_width_s), number_text(row.fitted_s), number_text(row.relative_residual * 100)});
    report.json()["rows"].push_back({{"bytes", size.bytes},
                                     {"reads", size.reads},
                                     {"mean_s", size.mean_s},
                                     {"half_width_95", size.half_width_s},
                                     {"fitted_s", row.fitted_s},
                                     {"relative_residual", row.relative_residual}});
  }
}

// What to do about a bad fit whose means are themselves uncertain.
Error refused(const sim::Calibration& calibration, const CalibrateOptions& options, const Error& verdict) {
  const bool scattered = std::any_of(calibration.rows.begin(), calibration.rows.end(), [](const auto& row) {
    return row.measured.half_width_s > kScattered * row.measured.mean_s;
  });
  if (!scattered) return verdict;
  return {verdict.code, fmt::format("{}; its times scatter widely: use a longer --batch than {} for a disk that hands "
                                    "out its rate in portions, or that is in use",
                                    verdict.where, options.batch)};
}

Status run_calibrate(const CalibrateOptions& options) {
  MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> sizes, read_sizes(options));
  MDFS_TRY_ASSIGN(const sim::Calibration calibration, time_transfers(options, sizes));
  const Status verdict = sim::judge(calibration);
  Report report(options, "calibrate", nullptr);
  report.parameter("target", options.target);
  report.parameter("sizes", sizes);
  report.parameter("reads", options.reads);
  report.parameter("batch", options.batch);
  report.parameter("write", options.write);
  report.parameter("disks", options.disks);
  report.parameter("name", options.name);
  auto& json = report.json();
  json["latency_s"] = calibration.latency_s;
  json["throughput_bytes_per_s"] = calibration.bytes_per_s;
  json["r_squared"] = calibration.r_squared;
  json["accepted"] = verdict.ok();
  report.line(fmt::format("{}: latency {}, throughput {}, R^2 {:.4f}", options.target, time_text(calibration.latency_s),
                          rate_text(calibration.bytes_per_s), calibration.r_squared));
  report_latency(calibration, report);
  report_rows(calibration, report);
  report.print();
  if (!verdict.ok()) return refused(calibration, options, verdict.error());
  if (options.output.empty()) return {};
  const std::string origin = (options.write ? "writes of " : "reads of ") + options.target;
  const std::string text = sim::machine_text(calibration, options.name, origin, options.disks);
  MDFS_TRY_ASSIGN([[maybe_unused]] const model::Machine machine, model::parse_machine(text, options.output));
  return write_text_file(options.output, text, true);
}

}  // namespace

void add_calibrate_command(SimProgram& program) {
  auto options = std::make_shared<CalibrateOptions>();
  auto* command = program.app.add_subcommand(
      "calibrate", "Measure a disk or file (read-only unless --write), and write a machine file");
  command->add_option("DISK", options->target, "Block device or file")->required();
  command->add_option("--sizes", options->sizes, "Comma-separated sizes of reads")->delimiter(',');
  command
      ->add_option("--batch", options->batch,
                   "For throttled disks: time for which reads of one size run back to back and count as one")
      ->capture_default_str();
  command->add_flag("--write", options->write,
                    "Time writes, each of which writes the old bytes again; nothing else may use the disk");
  command->add_option("--reads", options->reads, "Number of reads of each size, or of batches")
      ->check(whole_number(2, 100000U))
      ->capture_default_str();
  command->add_option("--disks", options->disks, "Number of such disks in the machine file")
      ->check(whole_number(1, model::kMaxDisks))
      ->capture_default_str();
  command->add_option("--name", options->name, "Name of the machine")->capture_default_str();
  command->add_option("-o,--output", options->output, "Machine file to write")->type_name("FILE");
  add_output_options(*command, *options, false);
  command->callback([&program, options] { program.action = [options] { return run_calibrate(*options); }; });
}

}  // namespace mdfs::tools
