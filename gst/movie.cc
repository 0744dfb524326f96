// Movies in windows.
// SPDX-License-Identifier: Apache-2.0
#include "movie.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace mdfs::gst {
namespace {

std::string name_of(const mdfs_ioc_geometry& geometry, unsigned axis) { return {geometry.axes[axis]}; }

// t, or else the first axis.
unsigned frame_axis(const mdfs_ioc_geometry& geometry) {
  const std::string_view names(geometry.axes, geometry.rank);
  const std::size_t found = names.find('t');
  return found == std::string_view::npos ? 0 : static_cast<unsigned>(found);
}

// The axes of a frame, rows first: those that the window does not fix at one position. Where the window fixes more, the
// fastest of the fixed ones join. More than two if the window fixes too few.
std::vector<unsigned> picture_axes(const mdfs_ioc_window& window, unsigned frames) {
  std::vector<unsigned> chosen;
  for (unsigned axis = 0; axis < window.rank; ++axis)
    if (axis != frames && window.length[axis] > 1) chosen.push_back(axis);
  for (unsigned axis = window.rank; axis-- > 0 && chosen.size() < 2;)
    if (axis != frames && window.length[axis] == 1) chosen.push_back(axis);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string too_many_axes(const mdfs_ioc_geometry& geometry, const std::vector<unsigned>& axes, unsigned frames) {
  std::string names;
  for (const unsigned axis : axes) names += (names.empty() ? "" : ", ") + name_of(geometry, axis);
  return "a frame has two axes, and the window leaves " + names + " beside " + name_of(geometry, frames) +
         ", which counts the frames: fix the others, for example window=" + name_of(geometry, axes.front()) + "0";
}

std::string no_format(const mdfs_ioc_geometry& geometry, std::uint32_t channels) {
  return std::to_string(channels) + (channels == 1 ? " channel of " : " channels of ") +
         std::string(type_name(geometry.type)) +
         " cannot be shown: allowed are 1, 3 or 4 channels of u8 or u16, and of other types with a display range (mdfs "
         "image display --range auto); one channel is window=c0";
}

}  // namespace

std::optional<Movie> describe(const mdfs_ioc_geometry& geometry, const mdfs_ioc_window& window, bool has_display_range,
                              const std::optional<FrameRate>& rate, std::string& why) {
  Movie movie;
  if (geometry.rank < 3 || window.rank != geometry.rank) {
    why = "an image of " + std::to_string(geometry.rank) +
          " axes is no movie: one axis counts the frames, two more are the rows and columns";
    return std::nullopt;
  }
  movie.axis = frame_axis(geometry);
  const std::vector<unsigned> axes = picture_axes(window, movie.axis);
  if (axes.size() != 2) {
    why = too_many_axes(geometry, axes, movie.axis);
    return std::nullopt;
  }
  movie.rows = axes[0];
  movie.columns = axes[1];
  movie.frames = window.length[movie.axis];
  const std::uint32_t channels = window.channel < 0 ? geometry.channels : 1;
  const auto pixels = choose_format(geometry.type, channels, has_display_range);
  if (!pixels) {
    why = no_format(geometry, channels);
    return std::nullopt;
  }
  movie.pixels = *pixels;
  const std::uint64_t width = window.length[movie.columns], height = window.length[movie.rows];
  if (width > kMaxSide || height > kMaxSide ||
      width * height * std::max(pixels->bytes, pixels->stored_bytes) > kMaxFrameBytes) {
    why = "a frame of " + std::to_string(width) + "x" + std::to_string(height) +
          " pixels is too large: it has at most 1 GiB, and sides of at most 16777216; play a part of it, or a level";
    return std::nullopt;
  }
  movie.width = static_cast<std::uint32_t>(width);
  movie.height = static_cast<std::uint32_t>(height);
  const std::string_view unit(geometry.unit[movie.axis]);
  movie.rate = rate ? *rate : rate_of_spacing(geometry.spacing[movie.axis], unit).value_or(FrameRate{});
  if (begin_of(movie.frames, movie.rate) == kEndOfTime) {
    why = std::to_string(movie.frames) + " frames last longer than 292 years: set a higher fps";
    return std::nullopt;
  }
  return movie;
}

mdfs_ioc_window window_of_frame(const mdfs_ioc_window& all, const Movie& movie, std::uint64_t frame) {
  mdfs_ioc_window window = all;
  window.start[movie.axis] += frame;
  window.length[movie.axis] = 1;
  window.bytes = 0;
  return window;
}

}  // namespace mdfs::gst
