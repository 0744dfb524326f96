// Windows of images and of their levels that are read in parts.
// SPDX-License-Identifier: Apache-2.0
#include "volume/level_job.h"
#include "volume/level_use.h"

namespace mdfs::volume {
namespace {

class VersionOfVolume final : public PinnedWindow {
 public:
  // `ino`: of the version. `level`: holds its object, if that is a level of the image.
  VersionOfVolume(VolumeImpl& volume, Ino ino, Ino image, std::shared_ptr<engine::WindowVersion> version,
                  std::optional<LevelUse> level)
      : volume_(volume), ino_(ino), image_(image), level_(std::move(level)), version_(std::move(version)) {}
  Status read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) override {
    return volume_.read_pinned(ino_, image_, *version_, [&](engine::Engine& engine) {
      return engine.read_version(*version_, offset, into, stop);
    });
  }
  Status read_parts(std::span<const geometry::Window> parts, MutableBytes into, const engine::Stop& stop) override {
    return volume_.read_pinned(ino_, image_, *version_, [&](engine::Engine& engine) {
      return engine.read_version_parts(*version_, parts, into, stop);
    });
  }

 private:
  VolumeImpl& volume_;
  const Ino ino_, image_;
  const std::optional<LevelUse> level_;
  const std::shared_ptr<engine::WindowVersion> version_;
};

}  // namespace

Result<std::unique_ptr<PinnedWindow>> VolumeImpl::pin_window(Ino ino, const geometry::Window& window) {
  const Pin pin = table_.pin(ino);
  std::unique_ptr<PinnedWindow> pinned;
  const Status status = with_window(*pin, window, [&](engine::OpenObject& object, const geometry::Geometry&) -> Status {
    MDFS_TRY_ASSIGN(std::shared_ptr<engine::WindowVersion> version, engine_->pin_window(object, window));
    pinned = std::make_unique<VersionOfVolume>(*this, ino, ino, std::move(version), std::nullopt);
    return {};
  });
  MDFS_TRY(status);
  return pinned;
}

Result<std::unique_ptr<PinnedWindow>> VolumeImpl::pin_level(Ino ino, unsigned level, const geometry::Window& window,
                                                            unsigned most_attempts, const engine::Stop& stop) {
  std::unique_ptr<PinnedWindow> pinned;
  MDFS_TRY_ASSIGN(const bool found, attempt_level(ino, {level, window, 0, std::nullopt}, most_attempts, stop,
                                                  [&](LevelJob& job) { return pin_level_once(job, pinned); }));
  if (!found) pinned.reset();
  return pinned;
}

// All of the window is read once: what cannot be read is built again, as for read_level(). If no writer has begun under
// the window until the version is pinned, that has what was read.
Result<VolumeImpl::LevelState> VolumeImpl::pin_level_once(LevelJob& job, std::unique_ptr<PinnedWindow>& pinned) {
  {
    MDFS_TRY_ASSIGN(const std::optional<LevelUse> level, use_level(job, job.level));
    if (level) engine_->start_window(**level, job.window);
  }
  const auto pin = [&](LevelUse level) -> Status {
    MDFS_TRY_ASSIGN(std::shared_ptr<engine::WindowVersion> version, engine_->pin_window(*level, job.window));
    level.only_hold();
    pinned = std::make_unique<VersionOfVolume>(*this, job.set->objects[job.level - 1], job.image.ino,
                                               std::move(version), std::move(level));
    return {};
  };
  return read_level_once(
      job, [](std::uint64_t, ConstBytes) { return Status(); }, pin);
}

Status VolumeImpl::read_pinned(Ino ino, Ino image, const engine::WindowVersion& version,
                               const std::function<Status(engine::Engine& engine)>& read) {
  const Reading reading(readers_);
  const Pin pin = table_.pin(ino);
  {
    const std::shared_lock shrink(pin->shrink_mutex);
    MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
    if (!engine_->is_of(version, *use)) return {Errc::kStaleDisk, "the image has become another one"};
    MDFS_TRY(read(*engine_));
  }
  if (keeps_atime()) open_objects_.was_read(*table_.pin(image));
  return {};
}

}  // namespace mdfs::volume
