// The grammar of the IIIF Image API.
// SPDX-License-Identifier: Apache-2.0
#include "views/iiif_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "base/text.h"
#include "geometry/level.h"
#include "views/level_source.h"

namespace mdfs::views {
namespace {

using Region = std::array<std::uint64_t, 4>;
constexpr std::string_view kQuality = "default", kUpright = "0", kFull = "full", kSquare = "square", kMax = "max";

Error no_request(std::string_view name) { return {Errc::kNotFound, std::string(name)}; }

// Numbers between commas; an empty part is nothing.
std::optional<std::vector<std::optional<std::uint64_t>>> numbers_of(std::string_view text) {
  std::vector<std::optional<std::uint64_t>> numbers;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    numbers.push_back(parse_index(text.substr(0, comma)));
    if (comma > 0 && !numbers.back()) return {};
    if (comma == text.size()) return numbers;
    text.remove_prefix(comma + 1);
  }
}

// Regions are cut at the edge of the image.
std::optional<Region> parse_region(const ZoomPicture& picture, std::string_view text) {
  const std::uint64_t width = picture.width(), height = picture.height();
  if (text == kFull) return Region{0, 0, width, height};
  if (text == kSquare) {
    const std::uint64_t side = std::min(width, height);
    return Region{(width - side) / 2, (height - side) / 2, side, side};
  }
  const auto numbers = numbers_of(text);
  if (!numbers || numbers->size() != 4 || std::count(numbers->begin(), numbers->end(), std::nullopt) > 0) return {};
  Region region{*(*numbers)[0], *(*numbers)[1], *(*numbers)[2], *(*numbers)[3]};
  if (region[0] >= width || region[1] >= height || region[2] == 0 || region[3] == 0) return {};
  region[2] = std::min(region[2], width - region[0]);
  region[3] = std::min(region[3], height - region[1]);
  return region;
}

// Whether [start, start + length) is made of whole samples of the level.
bool is_whole(std::uint64_t start, std::uint64_t length, std::uint64_t size, unsigned level) {
  const std::uint64_t mask = (std::uint64_t{1} << level) - 1;
  return (start & mask) == 0 && (((start + length) & mask) == 0 || start + length == size);
}
std::uint64_t scaled(std::uint64_t length, unsigned level) { return ceil_div(length, std::uint64_t{1} << level); }

WindowName region_window(const ZoomPicture& picture, const Region& region, unsigned level) {
  const auto& [x, y, width, height] = region;
  geometry::Window window;
  const unsigned rank = picture.image.rank;
  window.start[rank - 1] = x >> level;
  window.start[rank - 2] = y >> level;
  window.length[rank - 1] = scaled(width, level);
  window.length[rank - 2] = scaled(height, level);
  return zoom_window(picture, level, window);
}
bool has_picture(const ZoomPicture& picture, const Region& region, unsigned level) {
  return is_in_bounds(picture.image, picture.stored_levels, region_window(picture, region, level));
}

std::optional<unsigned> parse_size(const ZoomPicture& picture, const Region& region, std::string_view text) {
  if (text == kMax) return 0;
  const auto numbers = numbers_of(text);
  if (!numbers || numbers->size() != 2) return {};
  const auto width = (*numbers)[0], height = (*numbers)[1];
  if (!width && !height) return {};
  for (unsigned level = 0; level <= picture.top; ++level)
    if (is_whole(region[0], region[2], picture.width(), level) &&
        is_whole(region[1], region[3], picture.height(), level) && (!width || *width == scaled(region[2], level)) &&
        (!height || *height == scaled(region[3], level)) && has_picture(picture, region, level))
      return level;
  return {};
}

}  // namespace

std::string to_key(const IiifName& name) {
  return fmt::format("{}/{}/{}", static_cast<unsigned>(name.kind), fmt::join(name.region, ","), name.level);
}

Result<IiifName> iiif_entry(const ZoomPicture& picture, const IiifName& directory, std::string_view name) {
  IiifName entry = directory;
  switch (directory.kind) {
    case IiifKind::kService: {
      entry.kind = IiifKind::kInfo;
      if (name == kIiifInfoName) return entry;
      entry.kind = IiifKind::kRegion;
      const auto region = parse_region(picture, name);
      if (!region) return no_request(name);
      entry.region = *region;
      return entry;
    }
    case IiifKind::kRegion: {
      entry.kind = IiifKind::kSize;
      const auto level = parse_size(picture, directory.region, name);
      if (!level) return no_request(name);
      entry.level = *level;
      return entry;
    }
    case IiifKind::kSize:
      entry.kind = IiifKind::kRotation;
      if (name != kUpright) return no_request(name);
      return entry;
    case IiifKind::kRotation:
    case IiifKind::kInfo:
      break;
  }
  return Error{Errc::kNotDirectory, std::string(name)};
}

Result<WindowName> iiif_picture(const ZoomPicture& picture, const IiifName& directory, std::string_view name) {
  if (name != iiif_picture_name(picture) || directory.level > picture.top) return no_request(name);
  const auto& [x, y, width, height] = directory.region;
  if (x + width > picture.width() || y + height > picture.height()) return no_request(name);
  WindowName window = region_window(picture, directory.region, directory.level);
  if (!is_in_bounds(picture.image, picture.stored_levels, window)) return no_request(name);
  return window;
}

std::string iiif_picture_name(const ZoomPicture& picture) {
  return fmt::format("{}.{}", kQuality, suffix(picture.format));
}

std::string iiif_info(const ZoomPicture& picture, std::string_view id) {
  auto scales = nlohmann::ordered_json::array(), sizes = nlohmann::ordered_json::array();
  for (unsigned level = 0; level <= picture.top; ++level) {
    if (level <= picture.coarsest) scales.push_back(std::uint64_t{1} << level);
    const std::uint64_t width = scaled(picture.width(), level), height = scaled(picture.height(), level);
    // Pictures of a whole level, up to those that a page shows at once.
    constexpr std::uint64_t kLargestSize = 2048;
    if (std::max(width, height) <= kLargestSize &&
        has_picture(picture, {0, 0, picture.width(), picture.height()}, level))
      sizes.push_back({{"width", width}, {"height", height}});
  }
  const std::string_view format = suffix(picture.format);
  nlohmann::ordered_json json{{"@context", "http://iiif.io/api/image/3/context.json"},
                              {"id", id},
                              {"type", "ImageService3"},
                              {"protocol", "http://iiif.io/api/image"},
                              {"profile", "level0"},
                              {"width", picture.width()},
                              {"height", picture.height()},
                              {"sizes", sizes}};
  json["tiles"] = {{{"width", kZoomTileSide}, {"height", kZoomTileSide}, {"scaleFactors", scales}}};
  json["preferredFormats"] = {format};
  if (format != "jpg") json["extraFormats"] = {format};
  json["extraFeatures"] = {"regionByPx", "regionSquare"};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace mdfs::views
