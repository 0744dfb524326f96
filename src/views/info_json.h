// info.json: describes an image for programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "volume/volume.h"

namespace mdfs::views {

inline constexpr int kInfoVersion = 1;

// One object, keys in a fixed order, ending in a newline. Fields: mdfs-image(5) / README.
std::string info_json(const volume::ImageInfo& info);

}  // namespace mdfs::views
