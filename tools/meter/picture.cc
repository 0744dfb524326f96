// Series of a measurement.
// SPDX-License-Identifier: Apache-2.0
#include "meter/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "meter/distribution.h"
#include "meter/ramp.h"
#include "meter/transfers.h"

namespace mdfs::tools {
namespace {

constexpr double kMiB = 1024 * 1024;
constexpr double kShownShare = 0.99;  // of the slowest kind, which decides how far the axis of times reaches
constexpr double kBeyond = 1.2;       // of that time

using Style = sim::Series::Style;

std::string series_name(std::span<const MeasuredPlace> places, const MeasuredPlace& place, const std::string& what) {
  return places.size() > 1 ? fmt::format("{}: {}", place.path, what) : what;
}

sim::Series series_of(std::string name, Style style, unsigned colour) {
  sim::Series series;
  series.name = std::move(name);
  series.style = style;
  series.colour = colour;
  return series;
}

void add_ramp(sim::Figure& figure, std::span<const MeasuredPlace> places) {
  figure.x_label = "clients";
  figure.y_label = "MiB/s";
  unsigned colour = 0;
  for (const MeasuredPlace& place : places) {
    sim::Series all = series_of(series_name(places, place, "in all"), Style::kLine, colour);
    sim::Series one = series_of(series_name(places, place, "of one client"), Style::kDashed, colour);
    for (const MeasuredStep& measured : place.steps) {
      const double clients = measured.step.clients;
      for (sim::Series* series : {&all, &one}) series->x.push_back(clients);
      all.y.push_back(measured.step.rate() / kMiB);
      one.y.push_back(measured.step.rate() / clients / kMiB);
    }
    figure.series.push_back(std::move(all));
    figure.series.push_back(std::move(one));
    ++colour;
  }
}

sim::Series cumulative(const meter::Distribution& times, std::string name, Style style, unsigned colour) {
  sim::Series series = series_of(std::move(name), style, colour);
  series.x.push_back(times.least_s() * 1e3);
  series.y.push_back(0);
  double passed = 0;
  for (const meter::Distribution::Bin& bin : times.bins()) {
    passed += static_cast<double>(bin.count);
    series.x.push_back(std::min(bin.high_s, times.most_s()) * 1e3);
    series.y.push_back(100 * passed / static_cast<double>(times.count()));
  }
  return series;
}

void add_times(sim::Figure& figure, std::span<const MeasuredPlace> places) {
  figure.x_label = "time of a transfer, ms";
  figure.y_label = "transfers, %";
  figure.y_max = 100;
  double most_ms = 0;
  for (const MeasuredPlace& place : places)
    for (const MeasuredStep& one : place.steps)
      for (const meter::Kind kind : meter::kAllKinds) {
        const meter::Distribution& times = one.step.tally.totals[static_cast<std::size_t>(kind)];
        if (times.count() == 0) continue;
        const Style style = &place == &places.front() ? Style::kLine : Style::kDashed;
        figure.series.push_back(
            cumulative(times, series_name(places, place, meter::title_of(kind)), style, static_cast<unsigned>(kind)));
        most_ms = std::max(most_ms, std::min(times.percentile_s(kShownShare) * kBeyond, times.most_s()) * 1e3);
      }
  if (most_ms > 0) figure.x_max = most_ms;
}

}  // namespace

sim::Figure meter_figure(const Measurement& wanted, std::span<const MeasuredPlace> places) {
  sim::Figure figure;
  figure.title = fmt::format("mdfs meter: {}", wanted.profile.name);
  if (wanted.ramp) {
    add_ramp(figure, places);
  } else {
    figure.title += ", " + meter::clients_text(wanted.clients);
    add_times(figure, places);
  }
  return figure;
}

}  // namespace mdfs::tools
