// Frames of extents, of images and of their levels.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "geometry/level.h"
#include "volume/level_use.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

class FrameOfVolume final : public PinnedFrame {
 public:
  FrameOfVolume(VolumeImpl& volume, Ino ino, std::shared_ptr<engine::StoredFrame> frame)
      : volume_(volume), ino_(ino), frame_(std::move(frame)) {}
  std::uint64_t size_bytes() const override { return volume_.engine().size_bytes(*frame_); }
  Status read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) override {
    return volume_.read_frame(ino_, *frame_, offset, into, stop);
  }

 private:
  VolumeImpl& volume_;
  const Ino ino_;
  const std::shared_ptr<engine::StoredFrame> frame_;
};

}  // namespace

Result<std::unique_ptr<PinnedFrame>> VolumeImpl::pin_frame(Ino ino, unsigned level, const geometry::Coord& extent,
                                                           const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  if (!use.geometry()) return Error{Errc::kNotImage, fmt::format("inode {}", ino)};
  MDFS_TRY_ASSIGN(geometry::Geometry geometry, current_geometry(ino, use));
  for (unsigned n = 0; n < level; ++n) geometry = geometry::geometry_above(std::move(geometry));
  std::unique_ptr<PinnedFrame> none;
  if (!geometry::in_grid(geometry.rank, geometry.grid(), extent)) return none;
  std::shared_ptr<engine::StoredFrame> frame;
  if (level == 0) {
    MDFS_TRY_ASSIGN(frame, engine_->stored_frame(*use, extent, stop));
  } else {
    if (!use.levels() || level > use.levels()->objects.size()) return none;
    MDFS_TRY_ASSIGN(const LevelUse of_level, LevelUse::begin(table_, open_objects_, use.levels()->objects[level - 1]));
    MDFS_TRY_ASSIGN(frame, engine_->stored_frame(*of_level, extent, stop));
  }
  if (!frame) return none;
  return std::unique_ptr<PinnedFrame>(std::make_unique<FrameOfVolume>(*this, ino, std::move(frame)));
}

Status VolumeImpl::read_frame(Ino ino, engine::StoredFrame& frame, std::uint64_t offset, MutableBytes into,
                              const engine::Stop& stop) {
  const Reading reading(readers_);
  const Pin pin = table_.pin(ino);
  MDFS_TRY(engine_->read_frame(frame, offset, into, stop));
  if (keeps_atime()) open_objects_.was_read(*pin);
  return {};
}

}  // namespace mdfs::volume
