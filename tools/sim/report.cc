// Printing reports.
// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "geometry/shape_text.h"
#include "mdfs/version.h"
#include "support/command.h"
#include "support/json_output.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

nlohmann::ordered_json parameters_of(const SimOptions& options, const sim::System& system) {
  const sim::Setup& setup = system.setup();
  return {{"machine", options.machine},
          {"disks", setup.disks},
          {"shape", geometry::shape_text(setup.image.rank, setup.image.shape)},
          {"extent", geometry::shape_text(setup.image.rank, setup.image.extent)},
          {"bytes_per_pixel", setup.image.sample_bytes()},
          {"row_offset", or_null(options.row_offset)},
          {"plane_offset", or_null(options.plane_offset)},
          {"placement", system.placement_text()},
          {"filled", setup.machine.layout.filled},
          {"compressed", or_null(setup.compressed_share)},
          {"copies", setup.copies},
          {"parity", setup.width > 1 ? 1 : 0},
          {"width", setup.width},
          {"lost_disk", or_null(setup.lost_disk)},
          {"cache_bytes", setup.cache_bytes},
          {"seeks", options.seeks}};
}

const std::string kUnknown = "-";  // in tables, such as the error bar of one run; nothing in CSV

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + '\n';
}

}  // namespace

nlohmann::ordered_json or_null(const std::optional<unsigned>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}
nlohmann::ordered_json or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::string number_text(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : ""; }

std::string time_text(double seconds) {
  const double size = std::fabs(seconds);
  if (size >= 1) return fmt::format("{:.4g} s", seconds);
  if (size >= 1e-3) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} us", seconds * 1e6);
}

std::string rate_text(double bytes_per_s) {
  if (bytes_per_s >= 1e9) return fmt::format("{:.4g} GB/s", bytes_per_s / 1e9);
  return fmt::format("{:.4g} MB/s", bytes_per_s / 1e6);
}

std::string interval_text(const sim::Interval& interval) {
  if (!std::isfinite(interval.half_width)) return time_text(interval.mean);
  return fmt::format("{} +- {} (95 %)", time_text(interval.mean), time_text(interval.half_width));
}

Report::Report(const SimOptions& options, std::string_view command, const sim::System* system)
    : options_(options), json_(std::make_unique<nlohmann::ordered_json>()) {
  auto& json = *json_;
  json["output_version"] = kOutputVersion;
  json["program"] = "mdfs-sim";
  json["version"] = MDFS_VERSION_STRING;
  json["command"] = command;
  json["seed"] = options.seed;
  if (system == nullptr) return;
  shared_parameters(*system);
  const model::Machine& machine = system->setup().machine;
  const auto& parameters = json["parameters"];
  line(fmt::format("{} ({}): {} disk{}, image {} of {}-byte pixels, extents {}", machine.name,
                   model::hash_text(machine), system->setup().disks, system->setup().disks == 1 ? "" : "s",
                   parameters["shape"].get<std::string>(), system->setup().image.sample_bytes(),
                   parameters["extent"].get<std::string>()));
}

Report::~Report() = default;

void Report::shared_parameters(const sim::System& system) {
  const model::Machine& machine = system.setup().machine;
  (*json_)["machine"] = {{"name", machine.name}, {"hash", model::hash_text(machine)}};
  (*json_)["parameters"] = parameters_of(options_, system);
}

void Report::parameter(std::string_view name, const nlohmann::ordered_json& value) {
  (*json_)["parameters"][std::string(name)] = value;
}

void Report::line(std::string text) { text_ += text + '\n'; }

void Report::resources(const std::vector<sim::ResourceUse>& use) {
  auto& json = *json_;
  line("resource      n   mean    max   queue (mean, max)");
  for (const sim::ResourceUse& resource : use) {
    nlohmann::ordered_json utilization = nlohmann::ordered_json::array();
    nlohmann::ordered_json queue = nlohmann::ordered_json::array();
    nlohmann::ordered_json served = nlohmann::ordered_json::array();
    double mean_queue = 0;
    std::uint64_t max_queue = 0;
    for (const sim::InstanceUse& one : resource.instances) {
      utilization.push_back(one.utilization);
      queue.push_back(one.mean_queue);
      served.push_back(one.served);
      mean_queue += one.mean_queue / static_cast<double>(resource.instances.size());
      max_queue = std::max(max_queue, one.max_queue);
    }
    json["utilization"][resource.name] = std::move(utilization);
    json["mean_queue"][resource.name] = std::move(queue);
    json["served"][resource.name] = std::move(served);
    json["max_queue"][resource.name] = max_queue;
    line(fmt::format("{:<12}{:>3} {:>5.1f}% {:>5.1f}%   {:.2f}, {}", resource.name, resource.instances.size(),
                     resource.mean_utilization() * 100, resource.max_utilization() * 100, mean_queue, max_queue));
  }
  json["bottleneck"] = sim::bottleneck(use);
  line(fmt::format("bottleneck: {}", sim::bottleneck(use)));
}

void Report::delays(const std::vector<double>& delays_s, const sim::Interval* interval) {
  const sim::Summary summary = sim::summarize(delays_s);
  auto& json = *json_;
  json["delay_s"] = {{"count", summary.count}, {"mean", summary.mean}, {"deviation", summary.deviation},
                     {"min", summary.min},     {"p50", summary.p50},   {"p95", summary.p95},
                     {"p99", summary.p99},     {"max", summary.max}};
  if (interval != nullptr && std::isfinite(interval->half_width))
    json["delay_s"]["half_width_95"] = interval->half_width;
  const sim::Histogram bins = sim::histogram(delays_s, kHistogramBins);
  json["histogram"] = {{"low_s", bins.low}, {"width_s", bins.width}, {"counts", bins.counts}};
  line(fmt::format("delay of {} windows: mean {}", summary.count,
                   interval != nullptr ? interval_text(*interval) : time_text(summary.mean)));
  line(fmt::format("  p50 {}  p95 {}  p99 {}  max {}", time_text(summary.p50), time_text(summary.p95),
                   time_text(summary.p99), time_text(summary.max)));
}

void Report::print() const {
  if (options_.json) {
    write_output(dump_json(*json_) + "\n");
    return;
  }
  std::string out = options_.csv ? "" : text_;
  if (options_.csv) {
    out += csv_line(columns_);
    for (const auto& row : rows_) out += csv_line(row);
  } else if (!columns_.empty()) {
    std::vector<std::size_t> width(columns_.size());
    const auto measure = [&](const std::vector<std::string>& cells) {
      for (std::size_t i = 0; i < cells.size(); ++i) width[i] = std::max(width[i], cells[i].size());
    };
    measure(columns_);
    for (const auto& row : rows_) measure(row);
    const auto show = [&](const std::vector<std::string>& cells) {
      for (std::size_t i = 0; i < cells.size(); ++i)
        out += fmt::format("{}{:>{}}", i == 0 ? "" : "  ", cells[i].empty() ? kUnknown : cells[i], width[i]);
      out += '\n';
    };
    show(columns_);
    for (const auto& row : rows_) show(row);
  }
  write_output(out);
}

}  // namespace mdfs::tools
