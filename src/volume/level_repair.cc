// Extents of levels that cannot be read: they are forgotten, and built again from the image.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/log.h"
#include "engine/open_object.h"
#include "format/extents.h"
#include "volume/level_items.h"
#include "volume/level_job.h"
#include "volume/level_use.h"

namespace mdfs::volume {
namespace {

// Of the samples on the disks, not of the call.
bool is_unreadable(const Error& error) {
  return error.code == Errc::kCorrupt || error.code == Errc::kIo || error.code == Errc::kMissingDisk ||
         error.code == Errc::kNoDevice;
}

}  // namespace

Result<VolumeImpl::LevelState> VolumeImpl::forget_unreadable(LevelJob& job, unsigned level,
                                                             const geometry::SampleBox& box, const Error& error) {
  if (!is_unreadable(error)) return error;
  if (!stores_levels()) return LevelState::kCannotBeStored;
  const geometry::Geometry& geometry = job.levels[level];
  std::vector<geometry::Coord> unreadable;
  {
    MDFS_TRY_ASSIGN(const std::optional<LevelUse> use, use_level(job, level));
    if (!use) return LevelState::kCannotBeStored;
    ByteVector samples;
    MDFS_TRY(each_extent<LevelState>(geometry, box, [&](const geometry::Coord& extent) -> Result<LevelState> {
      const geometry::Window window = geometry::window_of_extent(geometry, extent);
      samples.resize(geometry::window_bytes(geometry, window));
      const Status read = engine_->read_window(**use, window, 0, samples, job.stop);
      if (!read.ok() && !is_unreadable(read.error())) return read.error();
      if (!read.ok()) unreadable.push_back(extent);
      return LevelState::kBuilt;
    }));
  }
  if (unreadable.empty()) return error;
  spdlog::error("level {} of inode {}: {}; {} of its extents are built again", level, job.image.ino, error.message(),
                unreadable.size());
  MDFS_TRY(forget_extents(job, level, unreadable));
  return LevelState::kChanged;
}

// Readers that have such an extent see it, or begin again.
Status VolumeImpl::forget_extents(LevelJob& job, unsigned level, const std::vector<geometry::Coord>& extents) {
  MDFS_TRY_ASSIGN(const LevelUse use, LevelUse::begin(table_, open_objects_, job.set->objects[level - 1]));
  const geometry::Geometry& geometry = job.levels[level];
  for (const geometry::Coord& extent : extents) {
    engine::GridBox box{extent, extent};
    for (unsigned axis = 0; axis < geometry.rank; ++axis) ++box.last[axis];
    const LevelGuard::Write forgetting(job.image.level_guard, geometry.rank,
                                       job.below(level, geometry::samples_of(geometry, {box.first, box.last})));
    MDFS_TRY(with_room([&] { return engine_->drop_extents(*use, box, {}); }));
  }
  return {};
}

Result<bool> VolumeImpl::forget_level_extents(Ino object, const std::vector<std::uint64_t>& numbers) {
  MDFS_TRY_ASSIGN(const std::optional<LevelName> name, name_of_level(object));
  if (!name) return false;
  const Pin pin = table_.pin(name->image);
  const engine::Stop never;
  LevelJob job{.image = *pin, .stop = never, .level = name->level};
  MDFS_TRY_ASSIGN(const bool found, look_up_levels(job));
  if (!found || job.set->objects.size() < name->level || job.set->objects[name->level - 1] != object) return false;
  std::vector<geometry::Coord> extents;
  {
    MDFS_TRY_ASSIGN(const LevelUse use, LevelUse::begin(table_, open_objects_, object));
    for (const std::uint64_t number : numbers)
      extents.push_back(
          (*use).extent_of({number / format::kMaxPlaces, static_cast<unsigned>(number % format::kMaxPlaces)}));
  }
  MDFS_TRY(forget_extents(job, name->level, extents));
  spdlog::warn("level {} of inode {}: {} extents cannot be read, and are built again", name->level, name->image,
               extents.size());
  queue_levels(*pin);
  return true;
}

// The name of a level is an item of its image, which only a look at all images finds. One is enough for all levels that
// were made before it.
Result<std::optional<VolumeImpl::LevelName>> VolumeImpl::name_of_level(Ino object) {
  if ((store_->features_ro_compat() & MDFS_RO_COMPAT_LEVELS) == 0) return std::optional<LevelName>();
  const std::lock_guard lock(level_names_mutex_);
  if (object >= level_names_end_) {
    for (Ino image = kRootIno;;) {
      MDFS_TRY_ASSIGN(const auto next, store_->scan({image, 0, 0}, format::kMaxKey, 1));
      if (next.empty()) break;
      image = next.front().key.object;
      MDFS_TRY_ASSIGN(const auto items, store_->scan(level_key(image, 0), level_key(image, UINT64_MAX), SIZE_MAX));
      for (const store::Item& item : items)
        if (const auto level = format::decode_level(item.value); level.ok())
          level_names_[level->object] = {image, static_cast<unsigned>(item.key.offset)};
      level_names_end_ = std::max(level_names_end_, image + 1);
      ++image;
    }
  }
  const auto name = level_names_.find(object);
  return name == level_names_.end() ? std::nullopt : std::optional(name->second);
}

}  // namespace mdfs::volume
