// The panels of a wall: a TOML file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace mdfs::film {

inline constexpr unsigned kMaxPanels = 64;
inline constexpr unsigned kMaxMovieLevel = 62;

struct WallPanel {
  std::string name;  // letters, digits, - and _
  std::string window;
  unsigned level = 0;
  std::string sink;   // a part of a pipeline that ends it; empty: a window on the screen
  bool start = true;  // here; otherwise a user starts it, on another machine
};

struct WallLayout {
  std::string host;  // where the panels find the clock and the controller
  int port = 0;      // of both, in UDP and TCP
  std::string fps;   // empty: of the image
  std::vector<WallPanel> panels;
};

// Errors (kInvalidArgument) name the file, the line, the field, and what is allowed.
Result<WallLayout> parse_wall_layout(std::string_view text, const std::string& where);
Result<WallLayout> read_wall_layout(const std::string& path);
// The panel of this name; kNotFound.
Result<WallPanel> panel_of(const WallLayout& layout, const std::string& name);

}  // namespace mdfs::film
