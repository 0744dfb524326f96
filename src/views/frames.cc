// Frames and their names.
// SPDX-License-Identifier: Apache-2.0
#include "views/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace mdfs::views {
namespace {

WindowName frame_window(const geometry::Geometry& image, unsigned axis, std::uint64_t index, Format format) {
  WindowName name;
  name.window = geometry::in_volume(geometry::whole(geometry::plane_geometry(image, axis)), {axis, index});
  name.format = format;
  return name;
}

std::string spelled_frame(std::string_view image_name, std::uint64_t index, Format format) {
  return fmt::format("{}.{:04}.{}", image_name, index, suffix(format));
}

}  // namespace

Frames frames_of(const ShownImage& image) {
  Frames frames;
  const geometry::Geometry& geometry = image.geometry;
  if (geometry.rank != 3) return frames;
  const std::size_t time = geometry.axes.find('t');
  frames.axis = time == std::string::npos ? 0 : static_cast<unsigned>(time);
  frames.count = geometry.shape[frames.axis];
  if (geometry.shape[0] == 0) return frames;
  for (const Format format : {Format::kPng, Format::kDpx, Format::kExr})
    if (raster_of(image, frame_window(geometry, frames.axis, 0, format)).ok()) frames.formats.push_back(format);
  return frames;
}

std::string frame_name(const Frames& frames, std::string_view image_name, std::uint64_t number) {
  MDFS_CHECK(number < frames.names());
  return spelled_frame(image_name, number % frames.count, frames.formats[number / frames.count]);
}

Result<WindowName> parse_frame_name(const ShownImage& image, std::string_view image_name, std::string_view name) {
  const Frames frames = frames_of(image);
  const std::size_t first = image_name.size() + 1;
  if (name.size() > first) {
    std::uint64_t index = 0;
    const auto [end, failure] = std::from_chars(name.data() + first, name.data() + name.size(), index);
    for (const Format format : frames.formats)
      if (failure == std::errc{} && index < frames.count && name == spelled_frame(image_name, index, format))
        return frame_window(image.geometry, frames.axis, index, format);
  }
  return Error{Errc::kNotFound, std::string(name)};
}

}  // namespace mdfs::views
