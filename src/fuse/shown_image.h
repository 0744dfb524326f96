// An image with the range in which pictures show it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "views/display.h"
#include "volume/volume.h"

namespace mdfs::fuse {

// As it is now. A text of the attribute that is no range counts as absent.
Result<views::ShownImage> shown_image(volume::Volume& volume, volume::Ino ino);

}  // namespace mdfs::fuse
