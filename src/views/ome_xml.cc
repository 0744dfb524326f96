// SPDX-License-Identifier: Apache-2.0
#include "views/ome_xml.h"

#include <fmt/format.h>

#include <cctype>

#include "geometry/units.h"
#include "views/type_names.h"

namespace mdfs::views {
namespace {

using geometry::Geometry;

constexpr unsigned kMostChannels = 1024;  // that are named one by one
constexpr double kMicrometresPerCentimetre = 1e4;

// Samples along an axis: x, y, z, c or t. Interleaved channels are steps along c.
std::uint64_t length_of(const Geometry& image, char axis) {
  const std::size_t place = image.axes.find(axis);
  return (place == std::string::npos ? 1 : image.shape[place]) * (axis == 'c' ? image.channels : 1);
}

// In micrometres or seconds; 0 = unknown.
double spacing_of(const Geometry& image, char axis) {
  const std::size_t place = image.axes.find(axis);
  if (place == std::string::npos || image.spacing[place] <= 0) return 0;
  const geometry::Unit* const unit = geometry::find_unit(image.unit[place]);
  const bool is_time = axis == 't';
  if (unit == nullptr || (unit->kind == geometry::UnitKind::kTime) != is_time) return 0;
  return image.spacing[place] * unit->size * (is_time ? 1 : kMicrometresPerCentimetre);
}

// Are the axes those of pages and planes that OME-XML knows?
bool has_axes(const Geometry& image) {
  return image.rank >= 2 && image.axes.ends_with("yx") &&
         image.axes.substr(0, image.rank - 2).find_first_not_of("zct") == std::string::npos;
}

// The order of planes: the fastest axis first, then those that the image lacks.
std::string plane_order(const Geometry& image) {
  std::string order = "XY";
  for (unsigned axis = image.rank - 2; axis-- > 0;)
    order += static_cast<char>(std::toupper(static_cast<unsigned char>(image.axes[axis])));
  for (const char axis : {'Z', 'C', 'T'})
    if (order.find(axis) == std::string::npos) order += axis;
  return order;
}

// The value in `name="value"` of an element; empty if there is none.
std::string_view attribute(std::string_view element, std::string_view name) {
  const std::string wanted = fmt::format(" {}=\"", name);
  const std::size_t at = element.find(wanted);
  if (at == std::string_view::npos) return {};
  const std::string_view value = element.substr(at + wanted.size());
  return value.substr(0, value.find('"'));
}

// Without the axes that have one step, whose place says nothing.
std::string order_of_long_axes(const Geometry& image, std::string_view order) {
  std::string result(order);
  std::erase_if(result, [&](char letter) {
    return length_of(image, static_cast<char>(std::tolower(static_cast<unsigned char>(letter)))) == 1;
  });
  return result;
}

}  // namespace

std::string ome_xml(const Geometry& image) {
  if (!has_axes(image) || names_of(image.type).ome.empty()) return {};
  std::string pixels = fmt::format(R"(<Pixels ID="Pixels:0" DimensionOrder="{}" Type="{}" BigEndian="false")",
                                   plane_order(image), names_of(image.type).ome);
  for (const char axis : {'x', 'y', 'z', 'c', 't'}) {
    const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(axis)));
    pixels += fmt::format(R"( Size{}="{}")", letter, length_of(image, axis));
    const double spacing = spacing_of(image, axis);
    if (spacing > 0 && axis == 't') pixels += fmt::format(R"( TimeIncrement="{:.12g}")", spacing);
    if (spacing > 0 && geometry::is_space_axis(axis))
      pixels += fmt::format(R"( PhysicalSize{}="{:.12g}")", letter, spacing);
  }
  std::string channels;
  const std::uint64_t count = length_of(image, 'c') / image.channels;
  for (std::uint64_t i = 0; i < count && count <= kMostChannels; ++i)
    channels += fmt::format(R"(<Channel ID="Channel:0:{}" SamplesPerPixel="{}"/>)", i, image.channels);
  return fmt::format(
      R"(<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" )"
      R"(xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" )"
      R"(xsi:schemaLocation="http://www.openmicroscopy.org/Schemas/OME/2016-06 )"
      R"(http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd">)"
      R"(<Image ID="Image:0">{}>{}<TiffData/></Pixels></Image></OME>)",
      pixels, channels);
}

bool is_ome_xml_of(std::string_view text, const Geometry& image) {
  const std::size_t begin = text.find("<Pixels ");
  if (!has_axes(image) || begin == std::string_view::npos || text.find("<OME") == std::string_view::npos) return false;
  const std::string_view element = text.substr(begin, text.find('>', begin) - begin);
  if (text.find("<Pixels ", begin + 1) != std::string_view::npos || text.find("FileName=") != std::string_view::npos)
    return false;
  for (const char axis : {'x', 'y', 'z', 'c', 't'}) {
    const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(axis)));
    if (attribute(element, fmt::format("Size{}", letter)) != std::to_string(length_of(image, axis))) return false;
  }
  return order_of_long_axes(image, attribute(element, "DimensionOrder")) ==
         order_of_long_axes(image, plane_order(image));
}

}  // namespace mdfs::views
