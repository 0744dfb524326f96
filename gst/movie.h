// A window of an image as a movie: the axis that counts its frames, the rows and columns of a frame, and its pixels.
// Pure.
//
// Lengths are in samples of the window's level, frame numbers count from the first step of the window on. Any thread
// may call any function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mdfs/ioctl.h>

#include <cstdint>
#include <optional>
#include <string>

#include "frame_times.h"
#include "pixels.h"

namespace mdfs::gst {

inline constexpr std::uint64_t kMaxFrameBytes = 1u << 30;
inline constexpr std::uint64_t kMaxSide = 1u << 24;  // of a frame, in samples

struct Movie {
  unsigned axis = 0;         // that counts the frames
  unsigned rows = 0;         // axis from one row of a frame to the next
  unsigned columns = 0;      // axis along a row
  std::uint64_t frames = 0;  // at least 1
  std::uint32_t width = 0, height = 0;
  PixelFormat pixels{};
  FrameRate rate{};
};

// The movie of a window that lies inside the image. geometry: of the window's level. rate: of the user; nothing: the
// spacing of the frames, if its unit is a time, else 24 frames a second. Nothing is returned if the window is no movie,
// and `why` says what is allowed.
std::optional<Movie> describe(const mdfs_ioc_geometry& geometry, const mdfs_ioc_window& window, bool has_display_range,
                              const std::optional<FrameRate>& rate, std::string& why);
// The window of one frame of the movie that describe() returned for the window `all`.
mdfs_ioc_window window_of_frame(const mdfs_ioc_window& all, const Movie& movie, std::uint64_t frame);

}  // namespace mdfs::gst
