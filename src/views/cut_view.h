// Views of oblique cuts, which are computed when they are opened.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "views/staging.h"
#include "views/view.h"
#include "views/view_file.h"
#include "volume/volume.h"

namespace mdfs::views {

// A larger cut, or one through a level whose surrounding window is larger, is kTooBig: it would keep other users
// waiting for long.
inline constexpr std::uint64_t kMaxCutBytes = 256u << 20;

// The samples of a cut in one version of the image, which later writes do not change. Tile after tile, the samples of
// the extents that the tile meets are read from all disks at once: at most 32 MiB, or the extents of one sample. A cut
// through a level reads the window of the level around it.
//
// Takes as long as to read the extents. `name` has a cut, and a format that is not rendered (abort). The bytes count
// against `owner`, the opening user, in the pool. kTooBig: over kMaxCutBytes, or a limit of the mount or of
// open_level(); kNoSpace: the pool is used up; else errors of reading, and those of view_window().
Result<std::shared_ptr<View>> open_cut(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                                       const WindowName& name, StagingPool& pool, std::uint32_t owner,
                                       const engine::Stop& stop = {});

}  // namespace mdfs::views
