// The output of a command of mdfs-sim: text, a table as CSV, or one JSON object with every parameter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"
#include "sim/simulation.h"
#include "sim/statistics.h"

namespace mdfs::tools {

inline constexpr std::size_t kHistogramBins = 40;

// The value of an option; null: it was not given, and the machine decides.
nlohmann::ordered_json or_null(const std::optional<unsigned>& value);
nlohmann::ordered_json or_null(const std::optional<double>& value);

// Prints the result of a command, as text or as JSON. One thread.
class Report {
 public:
  // system: absent where a command has none, or many.
  Report(const SimOptions& options, std::string_view command, const sim::System* system);
  ~Report();

  nlohmann::ordered_json& json() { return *json_; }
  // The machine and the shared parameters, without the line for people that the constructor writes.
  void shared_parameters(const sim::System& system);
  // A parameter beyond the shared ones.
  void parameter(std::string_view name, const nlohmann::ordered_json& value);
  void line(std::string text);  // text form only
  // The table of the CSV form, shown in the text form too.
  void columns(std::vector<std::string> names) { columns_ = std::move(names); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Mean utilization of each resource into the JSON, and the bottleneck.
  void resources(const std::vector<sim::ResourceUse>& use);
  void delays(const std::vector<double>& delays_s, const sim::Interval* interval);

  void print() const;

 private:
  const SimOptions& options_;
  std::unique_ptr<nlohmann::ordered_json> json_;
  std::string text_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Seconds as text: "332.8 ms".
std::string time_text(double seconds);
// "3.02 MB/s": 1e6 bytes.
std::string rate_text(double bytes_per_s);
// Six significant digits; empty if the number is unknown (infinite), such as the error bar of one run.
std::string number_text(double value);
// "354.0 +- 2.1 ms"; without the error where it is not known.
std::string interval_text(const sim::Interval& interval);

}  // namespace mdfs::tools
