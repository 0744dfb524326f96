// Parsing and spelling cuts.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/cut_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "geometry/level.h"
#include "geometry/window_spec.h"

namespace mdfs::geometry {
namespace {

constexpr std::string_view kCut = "cut", kNear = "near";
constexpr std::size_t kCutNumbers = 9;  // of the origin and the two vectors
constexpr std::size_t kMostDigits = 17;

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
Error bad_cut(std::string where) { return {Errc::kInvalidArgument, std::move(where)}; }

Result<double> decimal(std::string_view item) {
  const std::string_view digits = item.substr(item.starts_with('-') ? 1 : 0);
  const auto is_decimal = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::string_view whole = digits.substr(0, point);
  const std::string_view rest = point == digits.size() ? "" : digits.substr(point + 1);
  if (whole.empty() || (point < digits.size() && rest.empty()) ||
      !std::all_of(whole.begin(), whole.end(), is_decimal) || !std::all_of(rest.begin(), rest.end(), is_decimal))
    return bad_cut(fmt::format("\"{}\" is not a decimal number, such as -12.5", item));
  std::string significant(whole);
  significant += rest;
  significant.erase(0, std::min(significant.find_first_not_of('0'), significant.size()));
  significant.erase(significant.find_last_not_of('0') + 1);
  if (significant.size() > kMostDigits)
    return bad_cut(fmt::format("\"{}\" has more than {} digits that count", item, kMostDigits));
  double number = 0;
  const auto [end, failure] = std::from_chars(item.data(), item.data() + item.size(), number, std::chars_format::fixed);
  // Digits that are smaller than any f64 are zero.
  if (failure == std::errc::result_out_of_range && whole.find_first_not_of('0') == std::string_view::npos) return 0.0;
  if (failure != std::errc{} || end != item.data() + item.size())
    return Error{Errc::kOverflow, fmt::format("the number \"{}\" is too large", item)};
  return number + 0.0;  // -0 is 0
}

Result<std::uint64_t> side(std::string_view item) {
  const auto number = parse_index(item);
  if (!number) return bad_cut(fmt::format("\"{}\": the width and the height are numbers of samples", item));
  return *number;
}

std::string spelled(double number) {
  std::array<char, 400> text{};  // more than the digits of any f64
  const auto [end, failure] = std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  return failure == std::errc{} ? std::string(text.data(), end) : std::string();
}

std::vector<std::string_view> items_of(std::string_view spec) {
  std::vector<std::string_view> items;
  while (true) {
    const std::size_t comma = std::min(spec.find(','), spec.size());
    items.push_back(spec.substr(0, comma));
    if (comma == spec.size()) return items;
    spec.remove_prefix(comma + 1);
  }
}

}  // namespace

bool is_cut(std::string_view spec) { return spec.substr(0, spec.find(',')) == kCut; }

Result<LevelCut> parse_cut(const Geometry& image, std::string_view spec) {
  if (spec.size() > kMaxSpecBytes) return bad_cut(fmt::format("a cut must have at most {} characters", kMaxSpecBytes));
  const std::vector<std::string_view> items = items_of(spec);
  if (items[0] != kCut) return bad_cut("a cut begins with \"cut\"");
  constexpr std::size_t kLeast = 1 + kCutNumbers + 2;
  if (items.size() < kLeast)
    return bad_cut(
        fmt::format("{} items follow \"cut\": the origin x,y,z, the steps x,y,z of a column and of a row, the "
                    "width and the height are {}",
                    items.size() - 1, kLeast - 1));
  LevelCut result;
  Cut& cut = result.plane.cut;
  std::array<double, kCutNumbers> numbers{};
  for (std::size_t i = 0; i < kCutNumbers; ++i) {
    MDFS_TRY_ASSIGN(numbers[i], decimal(items[1 + i]));
  }
  std::copy_n(numbers.begin(), 3, cut.origin.begin());
  std::copy_n(numbers.begin() + 3, 3, cut.u.begin());
  std::copy_n(numbers.begin() + 6, 3, cut.v.begin());
  MDFS_TRY_ASSIGN(cut.width, side(items[kLeast - 2]));
  MDFS_TRY_ASSIGN(cut.height, side(items[kLeast - 1]));
  // What is left is a window of single indices.
  std::string rest;
  for (std::size_t i = kLeast; i < items.size(); ++i) {
    if (items[i] == kNear) {
      if (cut.nearest) return bad_cut("near is given twice");
      cut.nearest = true;
      continue;
    }
    if (items[i].empty() || !is_letter(items[i][0]) ||
        items[i].find_first_not_of("0123456789", 1) != std::string_view::npos)
      return bad_cut(
          fmt::format("\"{}\": near, a level, an index along another axis or a channel may follow a cut", items[i]));
    rest += fmt::format("{}{}", rest.empty() ? "" : ",", items[i]);
  }
  LevelWindow window{0, whole(image)};
  if (!rest.empty()) {
    MDFS_TRY_ASSIGN(window, parse_level_window(image, rest));
  }
  result.level = window.level;
  result.plane.window.channel = window.window.channel;
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    const bool is_space = is_space_axis(image.axes[axis]);
    if (is_space && window.window.single[axis])
      return bad_cut(fmt::format("a cut has no index along axis {}", image.axes[axis]));
    if (!is_space && !window.window.single[axis])
      return bad_cut(
          fmt::format("a cut needs an index along axis {}, such as {}0", image.axes[axis], image.axes[axis]));
    if (is_space) continue;
    result.plane.window.start[axis] = window.window.start[axis];
    result.plane.window.length[axis] = 1;
    result.plane.window.single[axis] = true;
  }
  MDFS_TRY(check(level_geometry(image, result.level), result.plane));
  return result;
}

std::string to_spec(const Geometry& image, const LevelCut& level_cut) {
  const Cut& cut = level_cut.plane.cut;
  std::string spec(kCut);
  for (const auto* numbers : {&cut.origin, &cut.u, &cut.v})
    for (const double number : *numbers) spec += fmt::format(",{}", spelled(number));
  spec += fmt::format(",{},{}", cut.width, cut.height);
  if (cut.nearest) spec += fmt::format(",{}", kNear);
  if (level_cut.level > 0) spec += fmt::format(",l{}", level_cut.level);
  for (unsigned axis = 0; axis < image.rank; ++axis)
    if (!is_space_axis(image.axes[axis]))
      spec += fmt::format(",{}{}", image.axes[axis], level_cut.plane.window.start[axis]);
  if (level_cut.plane.window.channel) spec += fmt::format(",c{}", *level_cut.plane.window.channel);
  return spec;
}

}  // namespace mdfs::geometry
