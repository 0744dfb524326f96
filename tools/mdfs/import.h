// mdfs image import: an image file becomes an image of the volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "image_options.h"
#include "levels.h"

namespace mdfs::tools {

struct ImportArguments {
  std::string source, path;
  std::string frames, shape, type;
  std::optional<unsigned> channels, page;
  ImageOptions image;
  LevelOptions levels;
  bool flatten = false, force = false, json = false, quiet = false;
};

// The image appears under its name only when it is complete and on the disks.
Status import_image(const ImportArguments& arguments);

}  // namespace mdfs::tools
