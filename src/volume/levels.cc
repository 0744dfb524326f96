// Stored levels of images: their number, and what a writer does to them.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/checked.h"
#include "format/geometry_item.h"
#include "volume/level_items.h"
#include "volume/level_use.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {

// ---- writers

Result<VolumeImpl::LevelWrite> VolumeImpl::begin_write(Inode& inode, const ObjectUse& use,
                                                       const geometry::SampleBox& box) {
  if (!use.levels()) return LevelWrite();
  queue_levels(inode);
  geometry::Geometry geometry = *use.geometry();
  auto writing = std::make_unique<LevelGuard::Write>(inode.level_guard, geometry.rank, box);
  geometry::SampleBox above = box;
  for (const Ino object : use.levels()->objects) {
    above = geometry::box_above(geometry, above);
    geometry = geometry::geometry_above(std::move(geometry));
    MDFS_TRY_ASSIGN(const LevelUse level, LevelUse::begin(table_, open_objects_, object));
    const auto [first, last] = geometry::extents_of(geometry, above);
    MDFS_TRY(with_room([&, box = engine::GridBox{first, last}] { return engine_->drop_extents(*level, box, {}); }));
  }
  return writing;
}

Result<VolumeImpl::LevelWrite> VolumeImpl::begin_write_bytes(Inode& inode, const ObjectUse& use, std::uint64_t offset,
                                                             std::uint64_t length) {
  if (!use.levels() || length == 0) return LevelWrite();
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, current_geometry(inode.ino, use));
  geometry::SampleBox box =
      geometry::box_of_bytes(geometry.rank, geometry.shape, geometry.sample_bytes(), offset, length);
  if (offset + length > engine_->size_bytes(*use)) {  // the last samples so far have other neighbours, too
    box.first = {};
    box.first[0] =
        std::min(offset / geometry.slab_bytes(), geometry.shape[0] - std::min<std::uint64_t>(geometry.shape[0], 1));
    for (unsigned axis = 1; axis < geometry.rank; ++axis) box.last[axis] = geometry.shape[axis];
  }
  return begin_write(inode, use, box);
}

Result<VolumeImpl::LevelWrite> VolumeImpl::begin_resize(Inode& inode, const ObjectUse& use, std::uint64_t size_bytes) {
  if (!use.levels()) return LevelWrite();
  const geometry::Geometry& geometry = *use.geometry();
  const std::uint64_t now_bytes = engine_->size_bytes(*use);
  const std::uint64_t least = std::min(now_bytes, size_bytes), most = std::max(now_bytes, size_bytes);
  geometry::SampleBox box;
  box.first[0] = least == 0 ? 0 : (least - 1) / geometry.slab_bytes();
  box.last[0] = ceil_div(most, geometry.slab_bytes());
  for (unsigned axis = 1; axis < geometry.rank; ++axis) box.last[axis] = geometry.shape[axis];
  return begin_write(inode, use, box);
}

// ---- their number

Status VolumeImpl::set_levels(Ino ino, unsigned count, geometry::Reduction reduction) {
  MDFS_TRY(check_writable());
  const Pin pin = table_.pin(ino);
  std::vector<Ino> gone;
  Status status;
  {
    const std::lock_guard extend(pin->extend_mutex);
    const std::lock_guard shrink(pin->shrink_mutex);
    geometry::SampleBox all;
    all.last.fill(UINT64_MAX);
    const LevelGuard::Write writing(pin->level_guard, geometry::kMaxRank, all);
    if (count > 0) store_->add_features_ro_compat(MDFS_RO_COMPAT_LEVELS);
    status = open_objects_.change_alone(*pin, OpenObjects::Reopened::kTheSame, [&](std::uint64_t size_bytes) {
      return change(store::Purpose::kNormal, [&](Change& change) {
        gone.clear();
        return put_levels(change, ino, size_bytes, count, reduction, gone);
      });
    });
  }
  if (!status.ok()) return status;
  if (count > 0) queue_levels(*pin);
  for (const Ino object : gone) {
    const Pin level = table_.pin(object);
    level->unlinked = true;  // frees it when the pin, or its last reader, is released
  }
  return {};
}

Status VolumeImpl::put_levels(Change& change, Ino ino, std::uint64_t size_bytes, unsigned count,
                              geometry::Reduction reduction, std::vector<Ino>& gone) {
  store::Transaction& transaction = change.transaction;
  MDFS_TRY_ASSIGN(format::Inode inode, read_inode(transaction, ino));
  if (!inode.is_image()) return Error{Errc::kNotImage, fmt::format("inode {}", ino)};
  if (inode.links == 0) return Error{Errc::kNotFound, "the image has been removed"};
  MDFS_TRY_ASSIGN(geometry::Geometry geometry, read_geometry(transaction, ino));
  geometry.shape[0] = ceil_div(size_bytes, geometry.slab_bytes());
  const unsigned most = std::min<unsigned>(geometry::level_count(geometry), MDFS_MAX_LEVELS);
  if (count > most) return Error{Errc::kOutOfRange, fmt::format("{} levels: the image has at most {}", count, most)};
  const Result<std::vector<format::LevelItem>> found = read_level_items(transaction, ino);
  const bool stays = found.ok() && !found->empty() && found->front().reduction == reduction;
  const std::size_t kept = stays ? std::min<std::size_t>(found->size(), count) : 0;
  MDFS_TRY(drop_levels(transaction, ino, kept, gone));
  MDFS_TRY_ASSIGN(const auto placement, placements_.get(inode.placement));
  for (unsigned n = 1; n <= count; ++n) {
    const geometry::HalvedAxes halved = geometry::halved_axes(geometry);
    geometry = geometry::geometry_above(std::move(geometry));
    if (n <= kept) continue;
    MDFS_TRY(geometry::check(geometry));
    const Ino object = transaction.new_object();
    transaction.count_objects(1);
    format::Inode level;
    level.mode = S_IFREG;
    level.links = 1;
    level.flags = MDFS_INODE_IMAGE | MDFS_INODE_LEVEL;
    level.size = geometry.size_bytes();
    level.atime_ns = level.mtime_ns = level.ctime_ns = level.btime_ns = change.now_ns;
    level.data_generation = transaction.generation();
    level.placement = inode.placement;
    level.base = placements_.next_base(*placement);
    transaction.put(geometry_key(object), format::encode(geometry));
    put_inode(transaction, object, level);
    transaction.put(level_key(ino, n), format::encode(format::LevelItem{object, reduction, halved, {}}));
  }
  inode.ctime_ns = change.now_ns;
  put_inode(transaction, ino, inode);
  return {};
}

Result<std::pair<unsigned, geometry::Reduction>> VolumeImpl::stored_levels(Ino ino) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  if (!use.geometry()) return Error{Errc::kNotImage, fmt::format("inode {}", ino)};
  if (!use.levels()) return std::pair(0u, geometry::Reduction::kMean);
  if (!pin->levels_built) queue_levels(*pin);
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, current_geometry(ino, use));
  return std::pair(std::min(static_cast<unsigned>(use.levels()->objects.size()), geometry::level_count(geometry)),
                   use.levels()->reduction);
}

// Works with the levels of an image. If others have been set meanwhile, their objects may be gone: works again then.
template <typename Work>
auto VolumeImpl::with_levels(Inode& inode, const Work& work)
    -> std::invoke_result_t<Work, const std::shared_ptr<const LevelSet>&, geometry::Geometry> {
  for (;;) {
    std::shared_ptr<const LevelSet> set;
    geometry::Geometry geometry;
    {
      MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(inode));
      MDFS_TRY_ASSIGN(geometry, current_geometry(inode.ino, use));
      set = use.levels();
    }
    auto result = work(set, std::move(geometry));
    if (result.ok() || result.error().code != Errc::kNotFound) return result;
    MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(inode));
    if (use.levels() == set) return result;
  }
}

Result<engine::WindowPlan> VolumeImpl::plan_level(Ino ino, unsigned level, const geometry::Window& window,
                                                  const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  return with_levels(
      *pin, [&](const std::shared_ptr<const LevelSet>& set, const geometry::Geometry&) -> Result<engine::WindowPlan> {
        if (!set || level == 0 || level > set->objects.size())
          return Error{Errc::kOutOfRange, fmt::format("level {} is not stored", level)};
        MDFS_TRY_ASSIGN(const LevelUse use, LevelUse::begin(table_, open_objects_, set->objects[level - 1]));
        return engine_->plan(*use, window, stop);
      });
}

Result<LevelsInfo> VolumeImpl::levels_info(Ino ino, const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  return with_levels(
      *pin, [&](const std::shared_ptr<const LevelSet>& set, geometry::Geometry geometry) -> Result<LevelsInfo> {
        LevelsInfo info;
        if (!set) return info;
        info.reduction = set->reduction;
        for (const Ino object : set->objects) {
          geometry = geometry::geometry_above(std::move(geometry));
          MDFS_TRY_ASSIGN(const LevelUse level, LevelUse::begin(table_, open_objects_, object));
          MDFS_TRY_ASSIGN(const format::Inode item, read_inode(*store_, object));
          LevelsInfo::Level& row = info.levels.emplace_back();
          const geometry::Coord grid = geometry.grid();
          row.extents = geometry::extent_count(geometry.rank, grid);
          row.stored_bytes = item.stored_bytes;
          row.ino = object;
          MDFS_TRY_ASSIGN(row.built, engine_->count_stored(*level, stop));
        }
        return info;
      });
}

}  // namespace mdfs::volume
