// A drawing in SVG: rectangles, lines, circles, texts and the colours of disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace mdfs::tools {

// Of a page, in pixels.
inline constexpr double kPageWidth = 960;
inline constexpr double kPageMargin = 20;
inline constexpr double kLineHeight = 18;

// Elements in the order of their drawing; lengths in pixels. Text may be any bytes: invalid XML is replaced.
class Svg {
 public:
  Svg(double width, std::string_view title);

  // `data`: further attributes, as they are to stand in the element.
  void rect(double x, double y, double width, double height, std::string_view fill, std::string_view data = {});
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, std::string_view data = {});
  void circle(double x, double y, double radius, std::string_view fill);
  enum class Anchor { kStart, kMiddle, kEnd };
  void text(double x, double y, std::string_view words, Anchor anchor = Anchor::kStart,
            std::string_view fill = "#222222", double size = 12, std::string_view data = {});
  // As it stands, for what the methods above do not draw.
  void element(std::string_view xml);
  // Call once: returns the document, cut off at this height.
  std::string finish(double height);

 private:
  double width_;
  std::string title_;
  std::string body_;
};

// Colour of a disk by its number. The first eight are those of Okabe and Ito, for all kinds of colour vision; later
// ones are lighter and darker, so that pictures show numbers beside them.
inline constexpr unsigned kDistinctColours = 8;
std::string disk_colour(unsigned disk);
// Black or white, whichever has more contrast on this colour.
std::string_view ink_on(std::string_view colour);
// From white to dark blue, for shares 0..1.
std::string shade(double share);

}  // namespace mdfs::tools
