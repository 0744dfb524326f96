// What a measurement prints.
// SPDX-License-Identifier: Apache-2.0
#include "meter/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "meter/ramp.h"
#include "meter/transfers.h"
#include "support/command.h"
#include "support/transfers_json.h"

namespace mdfs::tools {
namespace {

using meter::clients_text;
using meter::Distribution;
using meter::kAllKinds;
using meter::Kind;
using meter::Transfers;
using Json = nlohmann::ordered_json;

constexpr const char* kNothing = "-";

std::string rate_text(double bytes_per_s) {
  return format_size(static_cast<std::uint64_t>(std::max(0.0, bytes_per_s))) + "/s";
}
std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}
std::string plural_of(Kind kind) { return meter::title_of(kind) + "s"; }

// Rows of cells: the first column to the left, the others to the right.
std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string place_text(const Measurement& wanted, const MeasuredPlace& place) {
  std::string text = printable(place.path);
  if (!place.filesystem.empty()) text += fmt::format(" ({})", place.filesystem);
  text += place.is_file ? fmt::format(": one file of {}\n", format_size(place.bytes))
                        : fmt::format(": {} file{} of {}{}, {} in all\n", place.files.files,
                                      place.files.files == 1 ? "" : "s", format_size(place.files.file_bytes),
                                      wanted.profile.shared ? "" : " a client", format_size(place.bytes));
  if (place.fits_memory && wanted.profile.writes < 1 && !wanted.direct)
    text += "The files fit into memory: reads may come from a cache. A larger --size, or --direct, avoids that.\n";
  return text;
}

std::string late_text(const meter::Tally& tally) {
  return tally.due == 0 ? kNothing : fmt::format("{} of {}", tally.late, tally.due);
}

// All kinds of one step.
std::string step_text(const meter::Step& step) {
  std::string text = fmt::format("{}, {}: {} in all\n", clients_text(step.clients), time_text(step.measured_s),
                                 rate_text(step.rate()));
  std::vector<std::vector<std::string>> rows = {
      {"", "transfers", "rate of one", "latency: mean", "p99", "max", "time: p50", "p99", "max"}};
  for (const Kind kind : kAllKinds) {
    const Transfers& sums = step.tally.transfers.of(kind);
    if (sums.count == 0) continue;
    const Distribution& totals = step.tally.totals[static_cast<std::size_t>(kind)];
    const Distribution& latencies = step.tally.latencies[static_cast<std::size_t>(kind)];
    rows.push_back({plural_of(kind), std::to_string(sums.count), rate_text(sums.rate()),
                    time_text(sums.mean_latency_s()), time_text(latencies.percentile_s(0.99)),
                    time_text(sums.most_latency_s), time_text(totals.percentile_s(0.5)),
                    time_text(totals.percentile_s(0.99)), time_text(totals.most_s())});
  }
  text += table_text(rows);
  if (step.tally.due > 0) text += fmt::format("late: {}\n", late_text(step.tally));
  return text;
}

// Both kinds of one direction together.
Transfers both(const meter::MeterReading& reading, Kind one, Kind other) {
  Transfers sums = reading.of(one);
  sums.add(reading.of(other));
  return sums;
}

std::string ramp_text(const MeasuredPlace& place) {
  std::vector<std::vector<std::string>> rows = {
      {"clients", "in all", "rate of one: read", "write", "latency: read", "write", "time: p99", "late", "limits"}};
  for (const MeasuredStep& one : place.steps) {
    const meter::Tally& tally = one.step.tally;
    const Transfers read = both(tally.transfers, Kind::kSequentialRead, Kind::kRandomRead);
    const Transfers write = both(tally.transfers, Kind::kSequentialWrite, Kind::kRandomWrite);
    const auto rate = [](const Transfers& sums) { return sums.count > 0 ? rate_text(sums.rate()) : kNothing; };
    const auto latency = [](const Transfers& sums) {
      return sums.count > 0 ? time_text(sums.mean_latency_s()) : kNothing;
    };
    rows.push_back({std::to_string(one.step.clients), rate_text(one.step.rate()), rate(read), rate(write),
                    latency(read), latency(write), time_text(tally.all_totals().percentile_s(0.99)), late_text(tally),
                    one.broken.empty() ? "hold" : one.broken});
  }
  if (place.held == 0) return table_text(rows) + "One client breaks a limit of the profile.\n";
  return table_text(rows) + fmt::format("The limits of the profile hold for up to {}.\n", clients_text(place.held));
}

// A quantity of both places at the same number of clients.
struct Compared {
  std::string name;   // in JSON
  std::string title;  // in the table
  double first = 0;
  double second = 0;
  bool is_rate = false;
};

std::vector<Compared> compare_steps(const meter::Step& first, const meter::Step& second) {
  std::vector<Compared> all = {{"bytes_per_s", "rate in all", first.rate(), second.rate(), true}};
  for (const Kind kind : kAllKinds) {
    const auto index = static_cast<std::size_t>(kind);
    const Transfers &one = first.tally.transfers.of(kind), &other = second.tally.transfers.of(kind);
    if (one.count == 0 || other.count == 0) continue;
    const Distribution &times = first.tally.totals[index], &others = second.tally.totals[index];
    const std::string name = meter::name_of(kind), title = plural_of(kind);
    all.push_back({name + "_bytes_per_s", title + ", rate of one", one.rate(), other.rate(), true});
    all.push_back({name + "_mean_latency_s", title + ", latency: mean", one.mean_latency_s(), other.mean_latency_s()});
    all.push_back({name + "_p50_s", title + ", time: p50", times.percentile_s(0.5), others.percentile_s(0.5)});
    all.push_back({name + "_p99_s", title + ", time: p99", times.percentile_s(0.99), others.percentile_s(0.99)});
  }
  return all;
}

// Calls `use` for each number of clients that both places have measured.
template <typename Use>
void for_common_steps(std::span<const MeasuredPlace> places, const Use& use) {
  if (places.size() != 2) return;
  for (const MeasuredStep& first : places[0].steps)
    for (const MeasuredStep& second : places[1].steps)
      if (first.step.clients == second.step.clients) use(first.step, second.step);
}

std::string ratio_text(double first, double second) {
  return first > 0 ? fmt::format("{:.3g}", second / first) : kNothing;
}

// A line for each number of clients.
std::string ramp_comparison_text(std::span<const MeasuredPlace> places) {
  const std::string first_path = printable(places[0].path), second_path = printable(places[1].path);
  std::vector<std::vector<std::string>> rows = {
      {"clients", "in all: " + first_path, second_path, "ratio", "time: p99 " + first_path, second_path, "ratio"}};
  for_common_steps(places, [&](const meter::Step& first, const meter::Step& second) {
    const double first_s = first.tally.all_totals().percentile_s(0.99);
    const double second_s = second.tally.all_totals().percentile_s(0.99);
    rows.push_back({std::to_string(first.clients), rate_text(first.rate()), rate_text(second.rate()),
                    ratio_text(first.rate(), second.rate()), time_text(first_s), time_text(second_s),
                    ratio_text(first_s, second_s)});
  });
  return "\n" + table_text(rows);
}

std::string comparison_text(const Measurement& wanted, std::span<const MeasuredPlace> places) {
  if (places.size() == 2 && wanted.ramp) return ramp_comparison_text(places);
  std::string text;
  for_common_steps(places, [&](const meter::Step& first, const meter::Step& second) {
    std::vector<std::vector<std::string>> rows = {
        {clients_text(first.clients), printable(places[0].path), printable(places[1].path), "ratio"}};
    for (const Compared& one : compare_steps(first, second)) {
      const auto show = [&](double value) { return one.is_rate ? rate_text(value) : time_text(value); };
      rows.push_back({one.title, show(one.first), show(one.second), ratio_text(one.first, one.second)});
    }
    text += "\n" + table_text(rows);
  });
  return text;
}

Json json_of(const Distribution& times) {
  return {{"min", times.least_s()},
          {"p50", times.percentile_s(0.5)},
          {"p90", times.percentile_s(0.9)},
          {"p95", times.percentile_s(0.95)},
          {"p99", times.percentile_s(0.99)},
          {"p999", times.percentile_s(0.999)},
          {"max", times.most_s()}};
}

Json json_of(const MeasuredStep& one) {
  const meter::Step& step = one.step;
  Json json = {{"clients", step.clients},     {"measured_s", step.measured_s}, {"bytes", step.tally.bytes()},
               {"bytes_per_s", step.rate()},  {"due", step.tally.due},         {"late", step.tally.late},
               {"holds", one.broken.empty()}, {"broken", one.broken}};
  for (const Kind kind : kAllKinds) {
    const auto index = static_cast<std::size_t>(kind);
    Json& transfers = json["transfers"][meter::name_of(kind)] = transfers_json(step.tally.transfers.of(kind));
    transfers["latency_s"] = json_of(step.tally.latencies[index]);
    transfers["time_s"] = json_of(step.tally.totals[index]);
  }
  return json;
}

Json json_of(const meter::Profile& profile) {
  const auto optional = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"name", profile.name},
          {"files", profile.files},
          {"file_bytes", profile.file_bytes},
          {"shared", profile.shared},
          {"begin", name_of(profile.begin)},
          {"open", name_of(profile.open)},
          {"sync", name_of(profile.sync)},
          {"order", name_of(profile.order)},
          {"stride_bytes", profile.stride_bytes},
          {"transfer_bytes", {profile.transfer_bytes.low, profile.transfer_bytes.high}},
          {"block_bytes", {profile.block_bytes.low, profile.block_bytes.high}},
          {"writes", profile.writes},
          {"random", profile.random},
          {"think_s", {profile.think_s.low, profile.think_s.high}},
          {"rate", optional(profile.rate)},
          {"deadline_s", profile.deadline_s},
          {"until",
           {{"late", optional(profile.limits.late)},
            {"p99_s", optional(profile.limits.p99_s)},
            {"gain", optional(profile.limits.gain)}}}};
}

}  // namespace

std::string meter_text(const Measurement& wanted, std::span<const MeasuredPlace> places) {
  std::string text = printable(wanted.profile.name);
  if (!wanted.profile.description.empty()) text += ": " + printable(wanted.profile.description);
  text += "\n";
  for (const MeasuredPlace& place : places) {
    text += "\n" + place_text(wanted, place);
    if (wanted.ramp) {
      text += ramp_text(place);
    } else {
      for (const MeasuredStep& one : place.steps) text += step_text(one.step);
    }
  }
  return text + comparison_text(wanted, places);
}

Json meter_json(const Measurement& wanted, std::span<const MeasuredPlace> places) {
  Json json;
  json["output_version"] = kOutputVersion;
  json["profile"] = json_of(wanted.profile);
  json["ramp"] = wanted.ramp;
  json["duration_s"] = wanted.duration_s;
  json["rounds"] = wanted.rounds;
  json["seed"] = wanted.seed;
  json["direct"] = wanted.direct;
  json["drop_caches"] = wanted.drop_caches;
  json["places"] = Json::array();
  for (const MeasuredPlace& place : places) {
    Json one = {
        {"path", place.path},         {"filesystem", place.filesystem.empty() ? Json(nullptr) : Json(place.filesystem)},
        {"files", place.files.files}, {"file_bytes", place.files.file_bytes},
        {"bytes", place.bytes},       {"fits_memory", place.fits_memory},
        {"steps", Json::array()},     {"most_clients_held", place.held}};
    for (const MeasuredStep& step : place.steps) one["steps"].push_back(json_of(step));
    json["places"].push_back(std::move(one));
  }
  if (places.size() == 2) json["comparison"] = Json::array();
  for_common_steps(places, [&](const meter::Step& first, const meter::Step& second) {
    Json compared = {{"clients", first.clients}};
    for (const Compared& one : compare_steps(first, second))
      compared[one.name] = {{"first", one.first},
                            {"second", one.second},
                            {"ratio", one.first > 0 ? Json(one.second / one.first) : Json(nullptr)}};
    json["comparison"].push_back(std::move(compared));
  });
  return json;
}

}  // namespace mdfs::tools
