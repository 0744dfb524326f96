// Views of windows of resolution levels, which are computed when they are opened.
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

// At a stored level that writers change, before it is computed instead.
inline constexpr unsigned kStoredAttempts = 3;

// Bytes of a window of a stored level, of one state of the image. kReadOnly: they have not been built, and cannot be
// stored now, or writers changed what they are made of in each of the attempts.
Status read_stored_level(volume::Volume& volume, volume::Ino image, unsigned level, const geometry::Window& window,
                         std::uint64_t offset, MutableBytes into, unsigned attempts, const engine::Stop& stop);

// A window of a level of one version of the image, which later writes do not change. Each level is the reduction of the
// level below (geometry/reduce.h). What a stored level lacks is built; then its version is pinned: after many writes a
// part that is not the first one is kStaleDisk. The samples of levels that are not stored, or cannot be, or change all
// the time, are made from the coarsest stored level below, or from the image, and staged. A window of a stored level
// that is larger than staged windows may be is not kept: each read then sees one state of the image, and the next read
// perhaps another one.
//
// Takes as long as to build or to make the samples. `name` is that of a level and of a format that is not rendered
// (abort). The bytes count against `owner`, the opening user, in the pool. kTooBig: over a limit of level_source.h or
// that of the mount; kNoSpace: the pool is used up; else errors of reading, and those of view_window().
Result<std::shared_ptr<View>> open_level(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                                         const WindowName& name, StagingPool& pool, std::uint32_t owner,
                                         const engine::Stop& stop = {});

// All bytes of a window of a level at once: one state of the image. `name`, `owner` and errors as open_level().
Status read_level_window(volume::Volume& volume, volume::Ino image, const geometry::Geometry& geometry,
                         const WindowName& name, StagingPool& pool, std::uint32_t owner, MutableBytes into,
                         const engine::Stop& stop);

}  // namespace mdfs::views
