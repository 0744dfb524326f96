// Drawing axes, ticks, series and a legend.
// SPDX-License-Identifier: Apache-2.0
#include "support/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "support/svg.h"

namespace mdfs::tools {
namespace {

using sim::Figure;
using sim::Series;

constexpr double kWidth = 760;
constexpr double kHeight = 460;
constexpr double kLeft = 76;
constexpr double kRight = 24;
constexpr double kTop = 44;
constexpr double kBottom = 60;
constexpr double kLegendLine = 17;
constexpr double kTextSize = 13;
constexpr double kPointRadius = 3.5;
constexpr const char* kDashes = " stroke-dasharray=\"6 4\"";
constexpr int kTicks = 6;
constexpr double kRounding = 1e-9;   // of numbers of ticks
constexpr double kLeastSpan = 1e-4;  // of an axis, as a share of its numbers, which have six digits
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
  explicit Canvas(const Figure& figure) : figure_(figure), svg_(kWidth, figure.title) {
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
      // Zero belongs to the axis unless the data lie far from it. It also does where they differ by less than the ticks
      // can tell, such as by rounding.
      const bool apart = x_high - x_low > kLeastSpan * std::fabs(x_high);
      x_low_ = x_low > 0.5 * x_high && apart ? x_low : std::min(0.0, x_low);
      x_high_ = figure.x_max.value_or(apart ? x_high : std::max(0.0, x_high));
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
    const std::string area = fmt::format(R"(x="{}" y="{}" width="{}" height="{}")", kLeft, kTop,
                                         kWidth - kLeft - kRight, kHeight - kTop - kBottom);
    svg_.element(fmt::format(R"(<clipPath id="area"><rect {}/></clipPath>)", area));
    axes();
    svg_.element("<g clip-path=\"url(#area)\">");
    unsigned next = 0;
    for (const Series& series : figure_.series) {
      const unsigned colour = series.colour.value_or(next++) % static_cast<unsigned>(kPalette.size());
      curve(series, kPalette[colour]);
      if (!series.name.empty()) legend_.push_back({series.name, kPalette[colour], series.style});
    }
    svg_.element("</g>");
    legend();
    return svg_.finish(kHeight);
  }

 private:
  struct Entry {
    std::string name;
    std::string colour;
    Series::Style style;
  };

  double px(double x) const { return kLeft + (x - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight); }
  double py(double y) const { return kHeight - kBottom - y / y_high_ * (kHeight - kTop - kBottom); }

  using Anchor = Svg::Anchor;
  void text(double x, double y, Anchor anchor, const std::string& words, std::string_view more = {}) {
    svg_.text(x, y, words, anchor, "black", kTextSize, more);
  }

  void axes() {
    const double bottom = kHeight - kBottom;
    for (int i = 0; i * y_step_ <= y_high_ * 1.0001; ++i) {
      const double y = py(i * y_step_);
      svg_.line(kLeft, y, kWidth - kRight, y, "#dddddd");
      text(kLeft - 8, y + 4, Anchor::kEnd, fmt::format("{:.6g}", i * y_step_));
    }
    if (!figure_.x_names.empty()) {
      for (std::size_t i = 0; i < figure_.x_names.size(); ++i)
        text(px(static_cast<double>(i)), bottom + 18, Anchor::kMiddle, figure_.x_names[i]);
    } else {
      const double first = std::ceil(x_low_ / x_step_ - 1e-9) * x_step_;
      for (int i = 0; first + i * x_step_ <= x_high_ + x_step_ * 1e-6; ++i) {
        const double x = first + i * x_step_;
        svg_.line(px(x), bottom, px(x), bottom + 5, "black");
        text(px(x), bottom + 20, Anchor::kMiddle, fmt::format("{:.6g}", std::fabs(x) < x_step_ * 1e-6 ? 0 : x));
      }
    }
    svg_.line(kLeft, bottom, kWidth - kRight, bottom, "black");
    svg_.line(kLeft, kTop, kLeft, bottom, "black");
    svg_.text(kWidth / 2, 24, figure_.title, Anchor::kMiddle, "black", 15, R"(font-weight="bold")");
    text((kLeft + kWidth - kRight) / 2, kHeight - 16, Anchor::kMiddle, figure_.x_label);
    const double middle = (kTop + bottom) / 2;
    text(20, middle, Anchor::kMiddle, figure_.y_label, fmt::format(R"x(transform="rotate(-90 20 {:.1f})")x", middle));
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
      if (series.style == Series::Style::kPoints) svg_.circle(last, py(series.y[i]), kPointRadius, colour);
      if (!series.half_width.empty() && std::isfinite(series.half_width[i])) {
        const double low = py(std::max(series.y[i] - series.half_width[i], 0.0));
        svg_.line(last, low, last, py(series.y[i] + series.half_width[i]), colour);
      }
    }
    if (points.empty() || series.style == Series::Style::kPoints) return;
    if (series.style == Series::Style::kArea) {
      const double bottom = kHeight - kBottom;
      svg_.element(fmt::format(R"(<polygon points="{:.1f},{:.1f} {}{:.1f},{:.1f}" fill="{}" fill-opacity="0.25"/>)",
                               first, bottom, points, last, bottom, colour));
      return;
    }
    svg_.element(fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="2"{}/>)", points, colour,
                             series.style == Series::Style::kDashed ? kDashes : ""));
  }

  void bars(const Series& series, const std::string& colour) {
    const double width = std::max((px(1) - px(0)) * 0.7, 1.0);
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.y[i])) continue;
      const double top = py(series.y[i]);
      svg_.rect(px(series.x[i]) - width / 2, top, width, kHeight - kBottom - top, colour);
    }
  }

  void legend() {
    double y = kTop + 16;
    for (const Entry& entry : legend_) {
      const double x = kLeft + 16;
      if (entry.style == Series::Style::kPoints) {
        svg_.circle(x + 12, y - 4, kPointRadius, entry.colour);
      } else if (entry.style == Series::Style::kArea || entry.style == Series::Style::kBars) {
        svg_.rect(x, y - 9, 24, 9, entry.colour, R"(fill-opacity="0.4")");
      } else {
        svg_.line(x, y - 4, x + 24, y - 4, entry.colour,
                  fmt::format(R"(stroke-width="2"{})", entry.style == Series::Style::kDashed ? kDashes : ""));
      }
      text(x + 32, y, Anchor::kStart, entry.name, R"(stroke="white" stroke-width="4" paint-order="stroke")");
      y += kLegendLine;
    }
  }

  const Figure& figure_;
  double x_low_ = 0;
  double x_high_ = 1;
  double x_step_ = 1;
  double y_high_ = 1;
  double y_step_ = 1;
  Svg svg_;
  std::vector<Entry> legend_;
};

}  // namespace

std::string to_svg(const Figure& figure) { return Canvas(figure).draw(); }

}  // namespace mdfs::tools
