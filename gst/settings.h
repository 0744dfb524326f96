// The properties of mdfssrc that name a movie, and what is allowed in them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frame_times.h"

namespace mdfs::gst {

inline constexpr int kDefaultLookahead = 8;  // frames
inline constexpr int kMaxLookahead = 256;
inline constexpr std::uint64_t kMaxLookaheadBytes = 1u << 30;

struct Settings {
  std::string location;
  std::string window;  // empty: the whole image
  int level = 0;
  FrameRate fps{0, 1};  // 0/1: of the image
  int lookahead = kDefaultLookahead;
  bool reserve = false;  // the disks' time for the rate
  bool coarser = false;  // with `reserve`: frames that are short of time come from a coarser level
};

// The property that is not allowed, its value, and what is allowed; empty if all are allowed. The window is left to
// mdfs_parse_window().
std::string complaint_about(const Settings& settings);
// The rate that the user has set. Of allowed settings.
std::optional<FrameRate> chosen_rate(const Settings& settings);
// The specification for mdfs_parse_window(): that of the window, with an item for the level.
std::string window_spec(const Settings& settings);
// How many frames of so many bytes are read ahead: `lookahead`, or as many as kMaxLookaheadBytes hold, at least 1.
std::uint64_t frames_ahead(const Settings& settings, std::uint64_t frame_bytes);

}  // namespace mdfs::gst
