// Stored resolution levels of an image on a mounted volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "geometry/geometry.h"
#include "mdfs/ioctl.h"

namespace CLI {
class App;
}

namespace mdfs::tools {

// "auto", "none" or a number; kUsage names the option.
Result<std::uint32_t> parse_level_count(const std::string& option, const std::string& text);

// --levels and --reduce of a new image.
struct LevelOptions {
  std::optional<std::string> levels, reduce;
  void add_to(CLI::App& command);
  // kUsage, before anything is made.
  Status check() const;
  // kUsage: the image has fewer levels.
  Status check_for(const geometry::Geometry& image, const std::string& name) const;
  // Nothing without the options. `descriptor_path` leads to the image, which errors call `name`.
  Status apply(const std::string& descriptor_path, const std::string& name) const;
};

Result<mdfs_ioc_levels> image_levels(const std::string& path);
// A line for each level.
std::string levels_text(const geometry::Geometry& image, const mdfs_ioc_levels& levels);
nlohmann::ordered_json levels_json(const geometry::Geometry& image, const mdfs_ioc_levels& levels);

}  // namespace mdfs::tools
