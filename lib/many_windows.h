// Many windows of an open image in one call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "mdfs/mdfs.h"

namespace mdfs::client {

// mdfs_read_windows().
int read_many(mdfs_image* image, std::span<mdfs_window_read> reads);

}  // namespace mdfs::client
