// Parsing shapes, orders of axes and spacings.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/shape_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "geometry/default_extent.h"

namespace mdfs::geometry {
namespace {

constexpr unsigned kMinGuessedChannels = 2;
constexpr unsigned kMaxGuessedChannels = 4;

Error malformed(std::string where) { return {Errc::kInvalidArgument, std::move(where)}; }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> items;
  for (;;) {
    const std::size_t at = text.find(separator);
    items.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return items;
    text.remove_prefix(at + 1);
  }
}

}  // namespace

Result<Lengths> parse_shape(std::string_view text) {
  Lengths result;
  for (const std::string_view item : split(text, 'x')) {
    if (result.rank == kMaxRank) return malformed(fmt::format("\"{}\" has more than {} axes", text, kMaxRank));
    std::uint64_t& length = result.length[result.rank++];
    const auto [end, failure] = std::from_chars(item.data(), item.data() + item.size(), length);
    if (failure == std::errc::result_out_of_range)
      return Error{Errc::kOverflow, fmt::format("the number {} in \"{}\" is too large", item, text)};
    if (failure != std::errc{} || end != item.data() + item.size())
      return malformed(fmt::format("\"{}\" is not a shape, such as 2048x3072, slowest axis first", text));
  }
  return result;
}

std::string shape_text(unsigned rank, const Coord& lengths) {
  std::string text;
  for (unsigned axis = 0; axis < rank; ++axis) text += fmt::format("{}{}", axis == 0 ? "" : "x", lengths[axis]);
  return text;
}

Result<AxesOrder> parse_axes(std::string_view text) {
  AxesOrder order;
  for (unsigned i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == 'c' && i > 0 && i + 1 == text.size() && order.axes.find('c') == std::string::npos) {
      order.channel_axis = i;
      continue;
    }
    if (!is_axis_letter(letter))
      return malformed(fmt::format("\"{}\": axes must be lower-case letters such as zyx, tyx, tczyx or yxc", text));
    if (order.axes.find(letter) != std::string::npos)
      return malformed(fmt::format("axis {} is named twice in \"{}\"", letter, text));
    order.axes += letter;
  }
  if (order.axes.empty() || order.axes.size() > kMaxRank)
    return malformed(fmt::format("\"{}\": an image has one to {} axes besides channels", text, kMaxRank));
  return order;
}

Result<AxesOrder> guess_axes(std::span<const std::uint64_t> dimensions) {
  AxesOrder order;
  std::size_t rank = dimensions.size();
  if (rank >= 3 && dimensions.back() >= kMinGuessedChannels && dimensions.back() <= kMaxGuessedChannels)
    order.channel_axis = static_cast<unsigned>(--rank);
  if (rank < 1 || rank > kMaxRank)
    return malformed(
        fmt::format("an array of {} axes: an image has one to {}, and channels", dimensions.size(), kMaxRank));
  order.axes = default_axes(static_cast<unsigned>(rank), false, order.channel_axis.has_value());
  return order;
}

Result<Spacing> parse_spacing(std::string_view text, unsigned rank) {
  const std::vector<std::string_view> items = split(text, ',');
  if (items.size() != rank)
    return malformed(fmt::format("the spacing \"{}\" has {} numbers for {} axes", text, items.size(), rank));
  Spacing spacing;
  for (unsigned axis = rank; axis > 0; --axis) {
    const unsigned i = axis - 1;
    const std::string_view item = items[i];
    const auto [end, failure] = std::from_chars(item.data(), item.data() + item.size(), spacing.distance[i]);
    if (failure != std::errc{} || !std::isfinite(spacing.distance[i]) || spacing.distance[i] <= 0)
      return malformed(fmt::format("\"{}\" in the spacing \"{}\" must be a positive number", item, text));
    spacing.unit[i] = item.substr(static_cast<std::size_t>(end - item.data()));
    if (spacing.unit[i].size() > kMaxUnitBytes)
      return malformed(fmt::format("the unit \"{}\" has more than {} bytes", spacing.unit[i], kMaxUnitBytes));
    if (spacing.unit[i].empty() && axis < rank) spacing.unit[i] = spacing.unit[i + 1];
  }
  return spacing;
}

}  // namespace mdfs::geometry
