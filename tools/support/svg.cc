// Writing SVG.
// SPDX-License-Identifier: Apache-2.0
#include "support/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace mdfs::tools {
namespace {

struct Colour {
  int red, green, blue;
};

// Okabe and Ito, Color Universal Design, 2008; the last is their black, lightened so that it can be shaded.
constexpr std::array<Colour, kDistinctColours> kColours = {{{0xE6, 0x9F, 0x00},
                                                            {0x56, 0xB4, 0xE9},
                                                            {0x00, 0x9E, 0x73},
                                                            {0xF0, 0xE4, 0x42},
                                                            {0x00, 0x72, 0xB2},
                                                            {0xD5, 0x5E, 0x00},
                                                            {0xCC, 0x79, 0xA7},
                                                            {0x50, 0x50, 0x50}}};
constexpr Colour kWhite{255, 255, 255};
constexpr Colour kBlack{0, 0, 0};
constexpr Colour kDarkBlue{0x08, 0x30, 0x6B};
// By turn through the colours: towards white (above 0) or black.
constexpr std::array kTurns = {0.0, 0.45, -0.35, 0.7, -0.6, 0.25, -0.15, 0.85};

Colour mixed(Colour from, Colour to, double share) {
  const auto mix = [share](int a, int b) { return static_cast<int>(std::lround(a + (b - a) * share)); };
  return {mix(from.red, to.red), mix(from.green, to.green), mix(from.blue, to.blue)};
}

std::string hex(Colour colour) { return fmt::format("#{:02X}{:02X}{:02X}", colour.red, colour.green, colour.blue); }

}  // namespace

Svg::Svg(double width, std::string_view title) : width_(width), title_(xml_text(title)) {}

void Svg::rect(double x, double y, double width, double height, std::string_view fill, std::string_view data) {
  body_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"{}{}/>\n", x, y,
                       width, height, fill, data.empty() ? "" : " ", data);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view stroke, std::string_view data) {
  body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}{}/>\n", x1, y1,
                       x2, y2, stroke, data.empty() ? "" : " ", data);
}

void Svg::circle(double x, double y, double radius, std::string_view fill) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" fill=\"{}\"/>\n", x, y, radius, fill);
}

void Svg::element(std::string_view xml) { body_ += fmt::format("{}\n", xml); }

void Svg::text(double x, double y, std::string_view words, Anchor anchor, std::string_view fill, double size,
               std::string_view data) {
  constexpr std::array<std::string_view, 3> kAnchors = {"start", "middle", "end"};
  body_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\" font-size=\"{:g}\"{}{}>{}</text>\n", x, y,
      kAnchors[static_cast<std::size_t>(anchor)], fill, size, data.empty() ? "" : " ", data, xml_text(words));
}

std::string Svg::finish(double height) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
             "{1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>{2}</title>\n<rect width=\"100%\" "
             "height=\"100%\" fill=\"white\"/>\n",
             width_, height, title_) +
         body_ + "</svg>\n";
}

std::string disk_colour(unsigned disk) {
  const double turn = kTurns[disk / kDistinctColours % kTurns.size()];
  return hex(mixed(kColours[disk % kDistinctColours], turn > 0 ? kWhite : kBlack, std::abs(turn)));
}

std::string_view ink_on(std::string_view colour) {
  unsigned red = 0;
  unsigned green = 0;
  unsigned blue = 0;
  if (std::sscanf(std::string(colour).c_str(), "#%2x%2x%2x", &red, &green, &blue) != 3) return "#000000";
  constexpr double kMiddle = 140;
  return 0.299 * red + 0.587 * green + 0.114 * blue > kMiddle ? "#000000" : "#FFFFFF";
}

std::string shade(double share) { return hex(mixed(kWhite, kDarkBlue, std::clamp(share, 0.0, 1.0))); }

}  // namespace mdfs::tools
