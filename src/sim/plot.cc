// Drawing axes, ticks, series and a legend.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "sim/statistics.h"

namespace mdfs::sim {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 460;
constexpr double kLeft = 76;
constexpr double kRight = 24;
constexpr double kTop = 44;
constexpr double kBottom = 60;
constexpr double kLegendLine = 17;
constexpr int kTicks = 6;
constexpr double kRounding = 1e-9;  // of numbers of ticks
constexpr std::size_t kBins = 60;
constexpr std::size_t kMaxCurvePoints = 400;
constexpr std::array kPalette = {"#0b5fa5", "#c8442b", "#2f7d32", "#7b4fa3",
                                 "#b37a00", "#00838f", "#5d4037", "#616161"};

// 1, 2 or 5 times a power of ten.
double nice_step(double span) {
  const double rough = span / kTicks;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) return factor * power;
  return 10 * power;
}

class Canvas {
 public:
  explicit Canvas(const Figure& figure) : figure_(figure) {
    double x_low = 0;
    double x_high = 0;
    double y_high = 0;
    bool any = false;
    for (const Series& series : figure.series)
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
        x_low = any ? std::min(x_low, series.x[i]) : series.x[i];
        x_high = any ? std::max(x_high, series.x[i]) : series.x[i];
        y_high = std::max(y_high, series.y[i]);
        any = true;
      }
    if (!figure.x_names.empty()) {
      x_low_ = -0.5;
      x_high_ = static_cast<double>(figure.x_names.size()) - 0.5;
    } else {
      // Zero belongs to the axis unless the data lie far from it.
      x_low_ = x_low > 0.5 * x_high ? x_low : std::min(0.0, x_low);
      x_high_ = figure.x_max.value_or(x_high);
      if (!(x_high_ > x_low_)) x_high_ = x_low_ + 1;
      x_step_ = nice_step(x_high_ - x_low_);
      x_low_ = std::floor(x_low_ / x_step_ + kRounding) * x_step_;
      if (!figure.x_max) x_high_ = std::ceil(x_high_ / x_step_ - kRounding) * x_step_;
    }
    y_high_ = figure.y_max.value_or(y_high);
    if (!(y_high_ > 0)) y_high_ = 1;
    y_step_ = nice_step(y_high_);
    if (!figure.y_max) y_high_ = std::ceil(y_high_ / y_step_ - kRounding) * y_step_;
  }

  std::string draw() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"white\"/>\n<clipPath id=\"area\"><rect x=\"{2}\" y=\"{3}\" width=\"{4}\" height=\"{5}\"/></clipPath>\n",
        kWidth, kHeight, kLeft, kTop, kWidth - kLeft - kRight, kHeight - kTop - kBottom);
    axes();
    out_ += "<g clip-path=\"url(#area)\">\n";
    unsigned next = 0;
    for (const Series& series : figure_.series) {
      const unsigned colour = series.colour.value_or(next++) % static_cast<unsigned>(kPalette.size());
      curve(series, kPalette[colour]);
      if (!series.name.empty()) legend_.push_back({series.name, kPalette[colour], series.style});
    }
    out_ += "</g>\n";
    legend();
    return out_ + "</svg>\n";
  }

 private:
  struct Entry {
    std::string name;
    std::string colour;
    Series::Style style;
  };

  double px(double x) const { return kLeft + (x - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight); }
  double py(double y) const { return kHeight - kBottom - y / y_high_ * (kHeight - kTop - kBottom); }

  void text(double x, double y, const std::string& anchor, const std::string& words, const std::string& more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, more,
                        xml_text(words));
  }
  void line(double x1, double y1, double x2, double y2, const std::string& style) {
    out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
  }

  void axes() {
    const double bottom = kHeight - kBottom;
    for (int i = 0; i * y_step_ <= y_high_ * 1.0001; ++i) {
      const double y = py(i * y_step_);
      line(kLeft, y, kWidth - kRight, y, "stroke=\"#dddddd\"");
      text(kLeft - 8, y + 4, "end", fmt::format("{:.6g}", i * y_step_));
    }
    if (!figure_.x_names.empty()) {
      for (std::size_t i = 0; i < figure_.x_names.size(); ++i)
        text(px(static_cast<double>(i)), bottom + 18, "middle", figure_.x_names[i]);
    } else {
      for (double x = std::ceil(x_low_ / x_step_ - 1e-9) * x_step_; x <= x_high_ + x_step_ * 1e-6; x += x_step_) {
        line(px(x), bottom, px(x), bottom + 5, "stroke=\"black\"");
        text(px(x), bottom + 20, "middle", fmt::format("{:.6g}", std::fabs(x) < x_step_ * 1e-6 ? 0 : x));
      }
    }
    line(kLeft, bottom, kWidth - kRight, bottom, "stroke=\"black\"");
    line(kLeft, kTop, kLeft, bottom, "stroke=\"black\"");
    text(kWidth / 2, 24, "middle", figure_.title, "font-size=\"15\" font-weight=\"bold\"");
    text((kLeft + kWidth - kRight) / 2, kHeight - 16, "middle", figure_.x_label);
    const double middle = (kTop + bottom) / 2;
    text(20, middle, "middle", figure_.y_label, fmt::format("transform=\"rotate(-90 20 {:.1f})\"", middle));
  }

  void curve(const Series& series, const std::string& colour) {
    MDFS_CHECK(series.x.size() == series.y.size());
    MDFS_CHECK(series.half_width.empty() || series.half_width.size() == series.x.size());
    if (series.style == Series::Style::kBars) {
      bars(series, colour);
      return;
    }
    std::string points;
    double first = 0;
    double last = 0;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
      if (points.empty()) first = px(series.x[i]);
      last = px(series.x[i]);
      points += fmt::format("{:.1f},{:.1f} ", last, py(series.y[i]));
      if (series.style == Series::Style::kPoints)
        out_ +=
            fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", last, py(series.y[i]), colour);
      if (!series.half_width.empty() && std::isfinite(series.half_width[i])) {
        const double low = py(std::max(series.y[i] - series.half_width[i], 0.0));
        line(last, low, last, py(series.y[i] + series.half_width[i]), fmt::format("stroke=\"{}\"", colour));
      }
    }
    if (points.empty() || series.style == Series::Style::kPoints) return;
    if (series.style == Series::Style::kArea) {
      const double bottom = kHeight - kBottom;
      out_ += fmt::format("<polygon points=\"{:.1f},{:.1f} {}{:.1f},{:.1f}\" fill=\"{}\" fill-opacity=\"0.25\"/>\n",
                          first, bottom, points, last, bottom, colour);
      return;
    }
    out_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points, colour,
                        series.style == Series::Style::kDashed ? " stroke-dasharray=\"6 4\"" : "");
  }

  void bars(const Series& series, const std::string& colour) {
    const double width = std::max((px(1) - px(0)) * 0.7, 1.0);
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.y[i])) continue;
      const double top = py(series.y[i]);
      out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                          px(series.x[i]) - width / 2, top, width, kHeight - kBottom - top, colour);
    }
  }

  void legend() {
    double y = kTop + 16;
    for (const Entry& entry : legend_) {
      const double x = kLeft + 16;
      if (entry.style == Series::Style::kPoints) {
        out_ +=
            fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", x + 12, y - 4, entry.colour);
      } else if (entry.style == Series::Style::kArea || entry.style == Series::Style::kBars) {
        out_ += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"24\" height=\"9\" fill=\"{}\" fill-opacity=\"0.4\"/>\n", x, y - 9,
            entry.colour);
      } else {
        line(x, y - 4, x + 24, y - 4,
             fmt::format("stroke=\"{}\" stroke-width=\"2\"{}", entry.colour,
                         entry.style == Series::Style::kDashed ? " stroke-dasharray=\"6 4\"" : ""));
      }
      text(x + 32, y, "start", entry.name, "stroke=\"white\" stroke-width=\"4\" paint-order=\"stroke\"");
      y += kLegendLine;
    }
  }

  const Figure& figure_;
  double x_low_ = 0;
  double x_high_ = 1;
  double x_step_ = 1;
  double y_high_ = 1;
  double y_step_ = 1;
  std::string out_;
  std::vector<Entry> legend_;
};

}  // namespace

std::string to_svg(const Figure& figure) { return Canvas(figure).draw(); }

void add_distribution(Figure& figure, const std::string& name, const std::vector<double>& samples_s, unsigned colour) {
  if (samples_s.empty()) return;
  std::vector<double> sorted(samples_s);
  std::sort(sorted.begin(), sorted.end());
  const Histogram bins = histogram(sorted, kBins);
  Series density{.name = "", .style = Series::Style::kArea, .x = {}, .y = {}, .half_width = {}, .colour = colour};
  const double most = static_cast<double>(*std::max_element(bins.counts.begin(), bins.counts.end()));
  const double width_ms = bins.width * 1e3;
  if (width_ms > 0)
    for (std::size_t i = 0; i < bins.counts.size(); ++i)
      for (const double edge : {0.0, 1.0}) {
        density.x.push_back(bins.low * 1e3 + (static_cast<double>(i) + edge) * width_ms);
        density.y.push_back(static_cast<double>(bins.counts[i]) / most);
      }
  Series cumulative{.name = name, .style = Series::Style::kLine, .x = {}, .y = {}, .half_width = {}, .colour = colour};
  const std::size_t points = std::min(kMaxCurvePoints, sorted.size());
  cumulative.x.push_back(sorted.front() * 1e3);
  cumulative.y.push_back(0);
  for (std::size_t i = 1; i <= points; ++i) {
    const std::size_t rank = i * sorted.size() / points;
    cumulative.x.push_back(sorted[rank - 1] * 1e3);
    cumulative.y.push_back(static_cast<double>(rank) / static_cast<double>(sorted.size()));
  }
  figure.series.push_back(std::move(density));
  figure.series.push_back(std::move(cumulative));
  figure.y_max = 1;
}

}  // namespace mdfs::sim
