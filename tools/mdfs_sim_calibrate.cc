// mdfs-sim calibrate: times reads of a real disk or file, past the page cache, and writes a machine file.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/aligned_buffer.h"
#include "base/environment.h"
#include "mdfs_sim.h"
#include "mdfs_sim_options.h"
#include "mdfs_sim_report.h"
#include "model/random.h"
#include "sim/calibration.h"
#include "support/file.h"
#include "support/progress.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr std::uint64_t kLargestRead = 64u << 20;
constexpr unsigned kWarmUpReads = 4;
constexpr std::size_t kRoomForReads = 8;  // the disk is at least so many times as large as the largest read

struct CalibrateOptions : SimOptions {
  std::string target;
  std::vector<std::string> sizes = {"4K", "16K", "64K", "128K", "256K", "512K", "1M", "2M"};
  unsigned reads = 40;
  unsigned disks = 1;
  std::string name = "calibrated";
  std::string output;
};

Result<std::vector<std::uint64_t>> read_sizes(const CalibrateOptions& options) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : options.sizes) {
    MDFS_TRY_ASSIGN(const std::uint64_t bytes, parse_size(text, "a size"));
    if (bytes == 0 || bytes % kBufferAlignment != 0 || bytes > kLargestRead)
      return Error{Errc::kUsage, fmt::format("{}: a read is a multiple of {} bytes up to {}", text, kBufferAlignment,
                                             format_size(kLargestRead))};
    sizes.push_back(bytes);
  }
  return sizes;
}

Result<File> open_direct(const std::string& path) {
  auto file = File::open(path, O_RDONLY | O_DIRECT);
  if (!file.ok() && file.error().code == Errc::kInvalidArgument)
    return Error{Errc::kNotSupported,
                 fmt::format("{}: its filesystem has no O_DIRECT, and the page cache is no disk", path)};
  return file;
}

// All sizes interleaved in random order, at random places; the first reads only wake the disk.
Result<std::vector<sim::TimedRead>> time_reads(const CalibrateOptions& options,
                                               const std::vector<std::uint64_t>& sizes) {
  MDFS_TRY_ASSIGN(File file, open_direct(options.target));
  const off_t end = lseek(file.fd(), 0, SEEK_END);
  if (end < 0) return from_errno(errno, options.target);
  const auto size = static_cast<std::uint64_t>(end);
  const std::uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  if (size < largest * kRoomForReads)
    return Error{Errc::kInvalidArgument,
                 fmt::format("{} holds {}; at least {} are needed for random reads of {}", options.target,
                             format_size(size), format_size(largest * kRoomForReads), format_size(largest))};
  model::Random random(options.seed);
  std::vector<std::uint64_t> order;
  for (unsigned i = 0; i < options.reads; ++i) order.insert(order.end(), sizes.begin(), sizes.end());
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  AlignedBuffer buffer(largest);
  SystemEnvironment clock;
  std::uint64_t total = 0;
  for (const std::uint64_t bytes : order) total += bytes;
  Progress progress("reading", total);
  std::vector<sim::TimedRead> reads;
  for (std::size_t i = 0; i < order.size() + kWarmUpReads; ++i) {
    const bool warm_up = i < kWarmUpReads;
    const std::uint64_t bytes = warm_up ? sizes.front() : order[i - kWarmUpReads];
    const std::uint64_t at = random.below((size - bytes) / kBufferAlignment + 1) * kBufferAlignment;
    const std::int64_t begun = clock.monotonic_ns();
    MDFS_TRY_ASSIGN(const std::size_t got, file.read_at(at, buffer.bytes().first(bytes)));
    const std::int64_t done = clock.monotonic_ns();
    if (got != bytes) return Error{Errc::kIo, fmt::format("{}: a short read at {}", options.target, at)};
    if (warm_up) continue;
    reads.push_back({static_cast<double>(bytes), static_cast<double>(done - begun) * 1e-9});
    progress.add(bytes);
  }
  progress.finish();
  return reads;
}

void report_rows(const sim::Calibration& calibration, Report& report) {
  report.columns({"bytes", "reads", "mean_s", "half_width_95_s", "fitted_s", "residual_%"});
  for (const sim::Calibration::Row& row : calibration.rows) {
    report.row({fmt::format("{:.0f}", row.bytes), std::to_string(row.reads), number_text(row.mean_s),
                number_text(row.half_width_s), number_text(row.fitted_s), number_text(row.relative_residual * 100)});
    report.json()["rows"].push_back({{"bytes", row.bytes},
                                     {"reads", row.reads},
                                     {"mean_s", row.mean_s},
                                     {"half_width_95", row.half_width_s},
                                     {"fitted_s", row.fitted_s},
                                     {"relative_residual", row.relative_residual}});
  }
}

Status run_calibrate(const CalibrateOptions& options) {
  MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> sizes, read_sizes(options));
  MDFS_TRY_ASSIGN(const std::vector<sim::TimedRead> reads, time_reads(options, sizes));
  MDFS_TRY_ASSIGN(const sim::Calibration calibration, sim::calibrate(reads));
  const Status verdict = sim::judge(calibration);
  Report report(options, "calibrate", nullptr);
  report.parameter("target", options.target);
  report.parameter("reads_of_each_size", options.reads);
  auto& json = report.json();
  json["latency_s"] = calibration.latency_s;
  json["throughput_bytes_per_s"] = calibration.bytes_per_s;
  json["r_squared"] = calibration.r_squared;
  json["accepted"] = verdict.ok();
  report.line(fmt::format("{}: latency {}, throughput {}, R^2 {:.4f}", options.target, time_text(calibration.latency_s),
                          rate_text(calibration.bytes_per_s), calibration.r_squared));
  report_rows(calibration, report);
  report.print();
  MDFS_TRY(verdict);
  if (options.output.empty()) return {};
  const std::string text = sim::machine_text(calibration, options.name, options.target, options.disks);
  MDFS_TRY_ASSIGN([[maybe_unused]] const model::Machine machine, model::parse_machine(text, options.output));
  MDFS_TRY_ASSIGN(File file, File::open(options.output, O_WRONLY | O_CREAT | O_TRUNC));
  MDFS_TRY(file.write(as_bytes(text)));
  return file.close();
}

}  // namespace

void add_calibrate_command(SimProgram& program) {
  auto options = std::make_shared<CalibrateOptions>();
  auto* command =
      program.app.add_subcommand("calibrate", "Measure a disk or file (it is only read) and write a machine");
  command->add_option("target", options->target, "Block device or file")->required();
  command->add_option("--sizes", options->sizes, "Sizes of reads")->delimiter(',');
  command->add_option("--reads", options->reads, "Reads of each size")
      ->check(CLI::Range(2U, 100000U))
      ->capture_default_str();
  command->add_option("--disks", options->disks, "Disks of the machine that is written")
      ->check(CLI::Range(1U, model::kMaxDisks))
      ->capture_default_str();
  command->add_option("--name", options->name, "Name of the machine")->capture_default_str();
  command->add_option("-o,--output", options->output, "Machine file to write");
  add_output_options(*command, *options, false);
  command->callback([&program, options] { program.action = [options] { return run_calibrate(*options); }; });
}

}  // namespace mdfs::tools
