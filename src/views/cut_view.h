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
// the extents that the tile meets are read from all disks at once: at most kCutPieceBytes, or the extents of one
// sample. A cut through a level reads the window of the level around it.
class CutView final : public View {
 public:
  static constexpr std::uint64_t kCutPieceBytes = 32u << 20;

  // Takes as long as to read the extents. `name` has a cut, and a format that is not rendered (abort). The bytes count
  // against `owner`, the opening user, in the pool. kTooBig: over kMaxCutBytes, or a limit of the mount or of
  // LevelView; kNoSpace: the pool is used up; else errors of reading, and those of view_window().
  static Result<std::shared_ptr<View>> open(volume::Volume& volume, volume::Ino image,
                                            const geometry::Geometry& geometry, const WindowName& name,
                                            StagingPool& pool, std::uint32_t owner, const engine::Stop& stop = {});

  std::uint64_t size_bytes() const override { return file_.size_bytes(); }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop = {}) override;

 private:
  CutView(ViewFile file, std::unique_ptr<Staging> bytes) : file_(std::move(file)), bytes_(std::move(bytes)) {}

  const ViewFile file_;
  const std::unique_ptr<const Staging> bytes_;  // without the header
};

}  // namespace mdfs::views
