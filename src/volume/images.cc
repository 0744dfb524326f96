// Images: files with a geometry, and their windows.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "format/geometry_item.h"
#include "volume/level_items.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// The plain bytes from the first to the last of a window; the window has been checked.
ByteRange plain_bytes(const geometry::Geometry& geometry, const geometry::Window& window) {
  std::uint64_t stride = geometry.sample_bytes();
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  for (unsigned axis = geometry.rank; axis-- > 0;) {
    first += window.start[axis] * stride;
    last += (window.start[axis] + window.length[axis] - 1) * stride;
    stride *= geometry.shape[axis];
  }
  return {first, last + geometry.sample_bytes() - first};
}

}  // namespace

// Before the transaction that makes the image.
void VolumeImpl::note_rank(const geometry::Geometry& geometry) {
  constexpr unsigned kFirstFormatRank = 3;
  if (geometry.rank > kFirstFormatRank) store_->add_features_incompat(MDFS_INCOMPAT_RANK5);
}

Status VolumeImpl::make_image(Ino ino, const ImageOptions& options) {
  MDFS_TRY(check_writable());
  MDFS_TRY(geometry::check(options.geometry));
  MDFS_TRY_ASSIGN(const geometry::Placement placement, placements_.for_image(options));
  note_rank(options.geometry);
  MDFS_TRY(clear_leftovers(ino));  // or the image had them
  const Pin pin = table_.pin(ino);
  const std::lock_guard extend(pin->extend_mutex);
  const std::lock_guard shrink(pin->shrink_mutex);
  const Status status =
      open_objects_.change_alone(*pin, OpenObjects::Reopened::kAnotherKind, [&](std::uint64_t size_bytes) -> Status {
        if (size_bytes != 0) return Error{Errc::kInvalidArgument, "only an empty file can be made an image"};
        return change(store::Purpose::kNormal, [&](Change& change) -> Status {
          MDFS_TRY_ASSIGN(format::Inode inode, read_inode(change.transaction, ino));
          if (inode.is_image()) return Error{Errc::kInvalidArgument, "the file is an image already"};
          MDFS_TRY_ASSIGN(inode.placement, placements_.find_or_make(change.transaction, placement));
          change.transaction.put(geometry_key(ino), format::encode(options.geometry));
          change.transaction.erase({ino, MDFS_KIND_INLINE, 0});
          inode.base = options.disks ? 0 : inode.base % placement.slots();  // the file has had its turn of the rotor
          inode.flags = MDFS_INODE_IMAGE;
          inode.size = options.geometry.size_bytes();
          inode.data_generation = change.transaction.generation();
          inode.mtime_ns = inode.ctime_ns = change.now_ns;
          put_inode(change.transaction, ino, inode);
          return {};
        });
      });
  MDFS_TRY(status);
  open_objects_.data_changed(*pin);
  return {};
}

Result<ImageInfo> VolumeImpl::image_info(Ino ino) {
  const Pin pin = table_.pin(ino);
  const ObjectUse use = open_objects_.use_if_open(*pin);
  MDFS_TRY_ASSIGN(const format::Inode item, read_inode(*store_, ino));
  if (!item.is_image()) return Error{Errc::kNotImage, "inode " + std::to_string(ino)};
  const Attributes attributes = compose(ino, &*pin, use, item);
  ImageInfo info;
  MDFS_TRY_ASSIGN(info.geometry, read_geometry(*store_, ino));
  info.geometry.shape[0] = ceil_div(attributes.size_bytes, info.geometry.slab_bytes());
  info.size_bytes = attributes.size_bytes;
  info.stored_bytes = item.stored_bytes;  // what is not yet written back does not count
  info.data_generation = attributes.data_generation;
  info.base = item.base;
  if ((store_->features_ro_compat() & MDFS_RO_COMPAT_LEVELS) != 0) {
    MDFS_TRY_ASSIGN(const auto levels, read_level_items(*store_, ino));
    info.levels = std::min(static_cast<unsigned>(levels.size()), geometry::level_count(info.geometry));
  }
  MDFS_TRY_ASSIGN(const auto placement, placements_.get(item.placement));
  info.placement = *placement;
  return info;
}

// With the shape that the size says.
Result<geometry::Geometry> VolumeImpl::current_geometry(Ino ino, const ObjectUse& use) const {
  if (!use.geometry()) return Error{Errc::kNotImage, "inode " + std::to_string(ino)};
  geometry::Geometry geometry = *use.geometry();
  geometry.shape[0] = ceil_div(engine_->size_bytes(*use), geometry.slab_bytes());
  return geometry;
}

Result<geometry::Geometry> VolumeImpl::image_geometry(Ino ino) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  return current_geometry(ino, use);
}

Result<bool> VolumeImpl::is_written(Ino ino, const geometry::Coord& extent) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, current_geometry(ino, use));
  if (!geometry::in_grid(geometry.rank, geometry.grid(), extent)) return false;
  return engine_->is_written(*use, extent);
}

Result<std::vector<std::uint64_t>> VolumeImpl::written_in_row(Ino ino, const geometry::Coord& from, std::size_t most,
                                                              const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, current_geometry(ino, use));
  if (!geometry::in_grid(geometry.rank, geometry.grid(), from)) return std::vector<std::uint64_t>{};
  return engine_->written_in_row(*use, from, most, stop);
}

Result<LayoutPage> VolumeImpl::layout(Ino ino, const engine::LayoutCursor& from, std::size_t most,
                                      const engine::Stop& stop) {
  if (from.row >= engine::kMostRowsOfPage)
    return Error{Errc::kInvalidArgument, fmt::format("layout: row {} of a page, which has rows 0 to {}", from.row,
                                                     engine::kMostRowsOfPage - 1)};
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  if (!use.geometry()) return Error{Errc::kNotImage, "inode " + std::to_string(ino)};
  if (!opened_read_only_ && from == engine::LayoutCursor{}) {
    MDFS_TRY(engine_->write_back(*use));
    MDFS_TRY(store_->commit());
  }
  MDFS_TRY_ASSIGN(engine::LayoutRows found,
                  engine_->layout(*use, {.from = from, .most = most, .of = engine::LayoutOf::kPieces}, stop));
  return LayoutPage{std::move(found.rows), found.next, found.at_end, store_->block_size(), store_->disk_count()};
}

Result<std::uint64_t> VolumeImpl::consolidate(Ino ino, std::uint64_t most_bytes, bool all) {
  MDFS_TRY(check_writable());
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  if (!use.geometry()) return Error{Errc::kNotImage, "inode " + std::to_string(ino)};
  return engine_->consolidate(*use, most_bytes, all);
}

// Of what has been written back.
Status VolumeImpl::with_window(Inode& inode, const geometry::Window& window,
                               const std::function<Status(engine::OpenObject&, const geometry::Geometry&)>& work) {
  return with_window_use(
      inode, window, [&](const ObjectUse& use, const geometry::Geometry& geometry) { return work(*use, geometry); });
}

Status VolumeImpl::with_window_use(Inode& inode, const geometry::Window& window,
                                   const std::function<Status(const ObjectUse&, const geometry::Geometry&)>& work) {
  const std::shared_lock shrink(inode.shrink_mutex);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(inode));
  if (!use.geometry()) return Error{Errc::kNotImage, "inode " + std::to_string(inode.ino)};
  geometry::Geometry geometry = *use.geometry();
  geometry.shape[0] = ceil_div(engine_->size_bytes(*use), geometry.slab_bytes());
  MDFS_TRY(geometry::check(geometry, window));
  return work(use, geometry);
}

Status VolumeImpl::start_window(Ino ino, const geometry::Window& window) {
  const Pin pin = table_.pin(ino);
  return with_window(*pin, window, [&](engine::OpenObject& object, const geometry::Geometry&) -> Status {
    engine_->start_window(object, window);
    return {};
  });
}

Status VolumeImpl::read_window(Ino ino, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                               const engine::Stop& stop) {
  const Reading reading(readers_);
  const Pin pin = table_.pin(ino);
  MDFS_TRY(with_window(*pin, window, [&](engine::OpenObject& object, const geometry::Geometry& geometry) -> Status {
    if (!inside(offset, into.size(), geometry::window_bytes(geometry, window)))
      return Error{Errc::kInvalidArgument, "bytes outside the window"};
    return engine_->read_window(object, window, offset, into, stop);
  }));
  if (keeps_atime()) open_objects_.was_read(*pin);
  return {};
}

Result<bool> VolumeImpl::read_cached_window(Ino ino, const geometry::Window& window, MutableBytes into,
                                            const engine::ReadProgress& progress) {
  const Reading reading(readers_);
  const Pin pin = table_.pin(ino);
  bool cached = false;
  MDFS_TRY(with_window(*pin, window, [&](engine::OpenObject& object, const geometry::Geometry& geometry) -> Status {
    if (into.size() != geometry::window_bytes(geometry, window))
      return Error{Errc::kInvalidArgument, "not the bytes of the window"};
    cached = engine_->read_cached_window(object, window, into, progress);
    return {};
  }));
  if (cached && keeps_atime()) open_objects_.was_read(*pin);
  return cached;
}

Status VolumeImpl::write_window(Ino ino, const geometry::Window& window, const engine::WindowSource& from,
                                const engine::Stop& stop) {
  MDFS_TRY(check_writable());
  ByteRange changed;
  {
    const Pin pin = table_.pin(ino);
    bool beyond_end = false;
    const auto write = [&](const ObjectUse& use, const geometry::Geometry& geometry) -> Status {
      changed = plain_bytes(geometry, window);
      beyond_end = changed.offset + changed.length > engine_->size_bytes(*use);
      if (beyond_end) return {};
      MDFS_TRY_ASSIGN(const LevelWrite writing, begin_write(*pin, use, geometry::box_of(geometry, window)));
      return with_room([&] { return engine_->write_window(*use, window, from, stop); });
    };
    MDFS_TRY(with_window_use(*pin, window, write));
    if (beyond_end) {  // the file ended within the last slab: now it reaches as far as the window
      MDFS_TRY(resize(*pin, changed.offset + changed.length, true));
      MDFS_TRY(with_window_use(*pin, window, write));
      if (beyond_end) return Error{Errc::kBusy, "the image was truncated meanwhile"};
    }
    open_objects_.data_changed(*pin);
  }
  tell_listener(ino, changed.offset, changed.length);
  return {};
}

Result<engine::WindowPlan> VolumeImpl::plan_window(Ino ino, const geometry::Window& window, const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  engine::WindowPlan plan;
  const Status status = with_window(*pin, window, [&](engine::OpenObject& object, const geometry::Geometry&) -> Status {
    MDFS_TRY_ASSIGN(plan, engine_->plan(object, window, stop));
    return {};
  });
  MDFS_TRY(status);
  return plan;
}

}  // namespace mdfs::volume
