// SPDX-License-Identifier: Apache-2.0
#include "imagefile/stack_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "geometry/units.h"

namespace mdfs::imagefile {
namespace {

struct Stack {
  std::string program;
  std::uint64_t slices = 1, frames = 1, channels = 1;
  std::uint64_t images = 0;         // that the description names
  std::uint64_t several = 1;        // images of one description that have nothing to do with each other
  std::vector<std::uint64_t> axes;  // of the pages, slowest first
  std::string axes_text;            // "4 frames of 3 slices of 2 channels"
  double x = 0, y = 0, z = 0, t = 0;
  std::string x_unit, y_unit, z_unit, t_unit;
};

// How these files spell units, and what geometry/units.h calls them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kSpellings = {{
    {"um", "um"},
    {"micron", "um"},
    {"microns", "um"},
    {"\u00b5m", "um"},
    {"\u03bcm", "um"},
    {"\\u00B5m", "um"},
    {"&#181;m", "um"},
    {"\xb5m", "um"},
    {"nm", "nm"},
    {"mm", "mm"},
    {"cm", "cm"},
    {"m", "m"},
    {"inch", "in"},
    {"in", "in"},
    {"s", "s"},
    {"sec", "s"},
    {"ms", "ms"},
}};

// Null: the spelling is not known.
const geometry::Unit* find_spelled_unit(std::string_view written) {
  for (const auto& [spelling, symbol] : kSpellings)
    if (spelling == written) return geometry::find_unit(symbol);
  return nullptr;
}

template <typename Number>
Number to_number(std::string_view text, Number otherwise) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : otherwise;
}

// The value of `key=value` on a line of its own.
std::string_view line_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == '=') {
      std::string_view value = line.substr(key.size() + 1);
      while (value.ends_with('\r') || value.ends_with(' ')) value.remove_suffix(1);
      return value;
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

Stack imagej_stack(std::string_view text) {
  Stack stack;
  const auto count = [&](std::string_view key) {
    return std::max<std::uint64_t>(1, to_number<std::uint64_t>(line_value(text, key), 1));
  };
  stack.program = "ImageJ";
  stack.images = count("images");
  stack.slices = count("slices");
  stack.frames = count("frames");
  stack.channels = count("channels");
  stack.x_unit = stack.y_unit = stack.z_unit = line_value(text, "unit");
  stack.z = to_number(line_value(text, "spacing"), 0.0);
  stack.t = to_number(line_value(text, "finterval"), 0.0);
  stack.t_unit = "s";
  return stack;
}

// The value of an attribute of an XML element.
std::string_view attribute(std::string_view element, std::string_view name) {
  for (std::size_t at = element.find(name); at != std::string_view::npos; at = element.find(name, at + 1)) {
    const std::size_t equals = at + name.size();
    const bool begins = at > 0 && (element[at - 1] == ' ' || element[at - 1] == '\n' || element[at - 1] == '\t');
    if (!begins || equals + 1 >= element.size() || element[equals] != '=') continue;
    const char quote = element[equals + 1];
    const std::size_t end = element.find(quote, equals + 2);
    if ((quote == '"' || quote == '\'') && end != std::string_view::npos)
      return element.substr(equals + 2, end - equals - 2);
  }
  return {};
}

// The next element Pixels, of any namespace; `at` moves behind it.
std::string_view next_pixels(std::string_view text, std::size_t& at) {
  for (at = text.find("Pixels", at); at != std::string_view::npos; at = text.find("Pixels", at)) {
    const std::size_t begin = at;
    at += 6;
    const std::size_t end = text.find('>', begin);
    const std::size_t open = text.rfind('<', begin);
    if (open == std::string_view::npos || end == std::string_view::npos || at >= text.size()) continue;
    const std::string_view prefix = text.substr(open + 1, begin - open - 1);
    const bool named = prefix.empty() || (prefix.ends_with(':') && prefix.find_first_of(" \"/=") == prefix.npos);
    if (named && std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos)
      return text.substr(begin, end - begin);
  }
  return {};
}

Stack ome_stack(std::string_view text, std::uint64_t samples) {
  Stack stack;
  std::size_t at = 0;
  const std::string_view pixels = next_pixels(text, at);
  if (pixels.empty()) return stack;
  const auto count = [&](std::string_view name) {
    return std::max<std::uint64_t>(1, to_number<std::uint64_t>(attribute(pixels, name), 1));
  };
  const auto unit = [&](std::string_view name, std::string_view otherwise) {
    const std::string_view value = attribute(pixels, name);
    return std::string(value.empty() ? otherwise : value);
  };
  stack.program = "OME";
  stack.slices = count("SizeZ");
  stack.frames = count("SizeT");
  stack.channels = std::max<std::uint64_t>(1, count("SizeC") / samples);  // a page of RGB holds three
  stack.x = to_number(attribute(pixels, "PhysicalSizeX"), 0.0);
  stack.y = to_number(attribute(pixels, "PhysicalSizeY"), 0.0);
  stack.z = to_number(attribute(pixels, "PhysicalSizeZ"), 0.0);
  stack.t = to_number(attribute(pixels, "TimeIncrement"), 0.0);
  stack.x_unit = unit("PhysicalSizeXUnit", "um");
  stack.y_unit = unit("PhysicalSizeYUnit", "um");
  stack.z_unit = unit("PhysicalSizeZUnit", "um");
  stack.t_unit = unit("TimeIncrementUnit", "s");
  while (at != std::string_view::npos && !next_pixels(text, at).empty()) ++stack.several;
  return stack;
}

// None: beyond 64 bits.
std::optional<std::uint64_t> product_of(std::span<const std::uint64_t> lengths) {
  std::optional<std::uint64_t> product = 1;
  for (const std::uint64_t length : lengths) product = product ? checked_mul(*product, length) : std::nullopt;
  return product;
}

void set_axes(Stack& stack) {
  stack.axes = {stack.frames, stack.slices, stack.channels};
  stack.axes_text = fmt::format("{} frames of {} slices of {} channels", stack.frames, stack.slices, stack.channels);
}

// What the Python library tifffile writes: {"shape": [5, 40, 33]}, the array of all pages. The slowest axes are those
// of the pages; the others make a page. No program: the text is another one, or no such axes are left over.
Stack shaped_stack(std::string_view text, std::uint64_t page_samples) {
  Stack stack;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("shape") || !json["shape"].is_array()) return stack;
  std::vector<std::uint64_t> shape;
  for (const auto& length : json["shape"]) {
    if (!length.is_number_unsigned() || length.get<std::uint64_t>() == 0) return stack;
    shape.push_back(length.get<std::uint64_t>());
  }
  std::uint64_t within = 1;
  std::size_t left = shape.size();
  while (left > 0 && within < page_samples) {
    const auto product = checked_mul(within, shape[--left]);
    if (!product) return stack;
    within = *product;
  }
  shape.resize(left);
  const auto images = product_of(shape);
  if (within != page_samples || !images || *images == 1) return stack;
  stack.program = "tifffile";
  stack.images = *images;
  stack.axes = std::move(shape);
  stack.axes_text = fmt::format("an array of {} pages", fmt::join(stack.axes, "x"));
  return stack;
}

bool is_distance(double value) { return value > 1e-12 && value < 1e12; }

void set_distances(const TiffFile& tiff, Stack& stack) {
  // ImageJ counts samples in its unit, and calls it none for TIFF.
  if (stack.program != "ImageJ" || tiff.resolution_unit != 1) return;
  if (is_distance(tiff.x_resolution)) stack.x = 1 / tiff.x_resolution;
  if (is_distance(tiff.y_resolution)) stack.y = 1 / tiff.y_resolution;
}

double per_cm(double distance, const std::string& written) {
  const geometry::Unit* const unit = find_spelled_unit(written);
  const bool length = unit != nullptr && unit->kind == geometry::UnitKind::kLength;
  return length && is_distance(distance) ? 1 / (distance * unit->size) : 0;
}

PageFacts facts_of(const Stack& stack, std::uint64_t pages) {
  PageFacts facts;
  facts.pages = pages;
  facts.rows_per_cm = per_cm(stack.y, stack.y_unit);
  facts.columns_per_cm = per_cm(stack.x, stack.x_unit);
  if (facts.rows_per_cm == 0 || facts.columns_per_cm == 0) facts.rows_per_cm = facts.columns_per_cm = 0;
  const bool over_time = stack.frames > 1;
  const double distance = over_time ? stack.t : stack.z;
  const geometry::Unit* const unit = find_spelled_unit(over_time ? stack.t_unit : stack.z_unit);
  const geometry::UnitKind wanted = over_time ? geometry::UnitKind::kTime : geometry::UnitKind::kLength;
  if (over_time) facts.axis = 't';
  if (unit == nullptr || unit->kind != wanted || !is_distance(distance)) return facts;
  facts.spacing = distance;
  facts.unit = unit->symbol;
  return facts;
}

}  // namespace

Result<PageFacts> judge_stack(const TiffFile& tiff, bool flatten, bool one_page, const std::string& name) {
  const std::string_view text = tiff.description;
  Stack stack;
  if (text.starts_with("ImageJ=")) stack = imagej_stack(text);
  if (text.find("<OME") != text.npos || text.find(":OME") != text.npos) stack = ome_stack(text, tiff.samples);
  set_axes(stack);
  if (text.starts_with("{")) stack = shaped_stack(text, tiff.page_samples);
  PageFacts plain;
  plain.pages = tiff.pages;
  plain.flatten = flatten;
  if (stack.program.empty()) return plain;
  set_distances(tiff, stack);
  PageFacts facts = facts_of(stack, tiff.pages);
  facts.flatten = flatten;
  if (one_page) return facts;
  if (stack.images > tiff.pages)
    return Error{Errc::kNotSupported, fmt::format("{}: {} says that it has {} images, but it has directories of {} "
                                                  "pages only; save the file again, or select a page with --page",
                                                  name, stack.program, stack.images, tiff.pages)};
  if (flatten) {
    plain.rows_per_cm = facts.rows_per_cm;
    plain.columns_per_cm = facts.columns_per_cm;
    return plain;
  }
  const char* const remedy =
      "save each as a file, select a page with --page, or take all pages as axis z with --flatten";
  if (stack.several > 1)
    return Error{Errc::kNotSupported,
                 fmt::format("{}: {} images in one {} file; {}", name, stack.several, stack.program, remedy)};
  const auto long_axes = std::count_if(stack.axes.begin(), stack.axes.end(), [](auto length) { return length > 1; });
  if (long_axes > 1 || stack.channels > 1 || (long_axes == 1 && product_of(stack.axes) != tiff.pages))
    return Error{Errc::kNotSupported, fmt::format("{}: its {} pages are {} ({}), and pages become one axis; {}", name,
                                                  tiff.pages, stack.axes_text, stack.program, remedy)};
  return facts;
}

}  // namespace mdfs::imagefile
