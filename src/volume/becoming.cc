// Files with bytes that become images. The bytes are stored again, as extents, and replace the cells in one
// transaction. The next mount frees the rest of either after a crash.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include "base/checked.h"
#include "base/log.h"
#include "format/geometry_item.h"
#include "volume/level_items.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

constexpr std::size_t kItemsAtOnce = 256;
constexpr std::size_t kBytesAtOnce = 64u << 20;

// True if an image has these samples already. Extents and codec are the way it is stored, and stay.
bool same_samples(const geometry::Geometry& a, const geometry::Geometry& b) {
  return a.rank == b.rank && a.shape == b.shape && a.channels == b.channels && a.type == b.type && a.axes == b.axes;
}

bool halves_alike(geometry::Geometry a, geometry::Geometry b, std::size_t levels) {
  for (; levels > 0; --levels) {
    if (geometry::halved_axes(a) != geometry::halved_axes(b)) return false;
    a = geometry::geometry_above(std::move(a));
    b = geometry::geometry_above(std::move(b));
  }
  return true;
}

// All that an image has stored goes over to another object.
void move_data_items(store::Transaction& transaction, const std::vector<store::Item>& items, Ino to) {
  for (const store::Item& item : items) {
    transaction.put({to, item.key.kind, item.key.offset}, item.value);
    transaction.erase(item.key);
  }
}

}  // namespace

Status VolumeImpl::become_image(Ino ino, const ImageOptions& options, const engine::Stop& stop) {
  MDFS_TRY(check_writable());
  MDFS_TRY(geometry::check(options.geometry));
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const Attributes now, attributes_of(*pin));
  if (!S_ISREG(now.mode)) return Error{Errc::kInvalidArgument, "only a regular file can be made an image"};
  if (now.is_image) return calibrate(*pin, options.geometry);
  if (now.size_bytes == 0) return make_image(ino, options);
  if (ceil_div(now.size_bytes, options.geometry.slab_bytes()) != options.geometry.shape[0])
    return Error{Errc::kInvalidArgument, "the file has " + std::to_string(now.size_bytes) +
                                             " bytes, an image of this geometry " +
                                             std::to_string(options.geometry.size_bytes())};
  {
    MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));  // so that its generation is known from here on
  }
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(pin->times_mutex);
    generation = pin->data_generation.value_or(0);
  }
  MDFS_TRY_ASSIGN(const format::Inode item, read_inode(*store_, ino));
  MDFS_TRY_ASSIGN(Pin made, make_unnamed_image(options, now.size_bytes, item));
  Status status = copy_all(*pin, *made, now.size_bytes, stop);
  if (status.ok()) status = open_objects_.write_back(*made, true);
  if (status.ok()) status = take_data(*pin, *made, generation);
  const Ino made_ino = made->ino;
  made = Pin();
  release_file(made_ino);  // frees its remaining data
  const Status freed = free_leftovers(ino);
  if (!freed.ok()) spdlog::error("inode {}: not freed until the next mount: {}", ino, freed.error().message());
  return status;
}

// The image it is already; spacing and units are taken over.
Status VolumeImpl::calibrate(Inode& inode, const geometry::Geometry& wanted) {
  const std::lock_guard extend(inode.extend_mutex);
  const std::lock_guard shrink(inode.shrink_mutex);
  return open_objects_.change_alone(inode, OpenObjects::Reopened::kTheSame, [&](std::uint64_t size_bytes) -> Status {
    return change(store::Purpose::kNormal, [&](Change& change) -> Status {
      MDFS_TRY_ASSIGN(geometry::Geometry geometry, read_geometry(change.transaction, inode.ino));
      geometry.shape[0] = ceil_div(size_bytes, geometry.slab_bytes());
      if (!same_samples(geometry, wanted))
        return Error{Errc::kExists, "the file is an image of another geometry already"};
      if (geometry.spacing == wanted.spacing && geometry.unit == wanted.unit) return {};
      if ((store_->features_ro_compat() & MDFS_RO_COMPAT_LEVELS) != 0) {
        MDFS_TRY_ASSIGN(const auto levels, read_level_items(change.transaction, inode.ino));
        if (!halves_alike(geometry, wanted, levels.size()))
          return Error{Errc::kExists, "levels of the image are stored, which this spacing would change"};
      }
      geometry.spacing = wanted.spacing;
      geometry.unit = wanted.unit;
      MDFS_TRY_ASSIGN(const auto old, change.transaction.get(geometry_key(inode.ino)));
      if (!old) return Error{Errc::kCorrupt, "an image without a geometry"};
      change.transaction.put(geometry_key(inode.ino), format::encode_over(geometry, *old));
      MDFS_TRY_ASSIGN(format::Inode item, read_inode(change.transaction, inode.ino));
      item.ctime_ns = change.now_ns;
      put_inode(change.transaction, inode.ino, item);
      return {};
    });
  });
}

// An orphan from the start, held open: it goes when it is released.
Result<Pin> VolumeImpl::make_unnamed_image(const ImageOptions& options, std::uint64_t size_bytes,
                                           const format::Inode& like) {
  MDFS_TRY_ASSIGN(const geometry::Placement placement, placements_.for_image(options));
  note_rank(options.geometry);
  Pin pin;
  const Status status = change(store::Purpose::kNormal, [&](Change& change) -> Status {
    const Ino ino = change.transaction.new_object();
    change.transaction.count_objects(1);
    format::Inode inode;
    inode.mode = S_IFREG | 0600;
    inode.flags = MDFS_INODE_IMAGE;
    inode.size = size_bytes;
    inode.protection = like.protection;
    inode.group_members = like.group_members;
    inode.atime_ns = inode.mtime_ns = inode.ctime_ns = inode.btime_ns = change.now_ns;
    inode.data_generation = change.transaction.generation();
    MDFS_TRY_ASSIGN(inode.placement, placements_.find_or_make(change.transaction, placement));
    inode.base = options.disks ? 0 : placements_.next_base(placement);
    change.transaction.put(geometry_key(ino), format::encode(options.geometry));
    change.transaction.put(orphan_key(ino), {});
    put_inode(change.transaction, ino, inode);
    pin = table_.pin(ino);
    return {};
  });
  MDFS_TRY(status);
  table_.add_open(*pin);
  pin->unlinked = true;
  return pin;
}

Status VolumeImpl::copy_all(Inode& from, Inode& to, std::uint64_t size_bytes, const engine::Stop& stop) {
  ByteVector buffer;
  for (std::uint64_t at = 0; at < size_bytes;) {
    if (stop && stop()) return Error{Errc::kCancelled, "the conversion was interrupted"};
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes - at, kBytesAtOnce));
    MDFS_TRY_ASSIGN(const std::size_t bytes, copy_piece(from, at, to, at, length, buffer, stop));
    if (bytes == 0) return Error{Errc::kBusy, "the file was truncated meanwhile"};
    at += bytes;
  }
  return {};
}

// From the transaction on that changes the inode the file is an image; before, it is what it was. In both states it is
// among the orphans, as it has data of the other kind.
Status VolumeImpl::take_data(Inode& inode, Inode& made, std::uint64_t generation) {
  MDFS_TRY(clear_leftovers(inode.ino));
  const std::lock_guard freeing(freeing_mutex_);  // keeps the reaper from freeing moved data as leftovers
  const std::lock_guard extend(inode.extend_mutex);
  const std::lock_guard shrink(inode.shrink_mutex);
  const auto swap = [&](std::uint64_t) -> Status {
    {
      const std::lock_guard lock(inode.times_mutex);
      if (inode.data_generation.value_or(0) != generation)
        return Error{Errc::kBusy, "the file has changed while it was being made an image"};
    }
    format::Key next{made.ino, MDFS_KIND_EXTENTS, 0};
    for (bool all = false; !all;) {
      format::Key after = next;
      const Status moved = change(store::Purpose::kNormal, [&](Change& change) -> Status {
        MDFS_TRY_ASSIGN(const auto items,
                        change.transaction.scan(next, {made.ino, UINT64_MAX, UINT64_MAX}, kItemsAtOnce));
        MDFS_TRY_ASSIGN(const auto geometry, change.transaction.get(geometry_key(made.ino)));
        if (!geometry) return Error{Errc::kCorrupt, "an image without a geometry"};
        MDFS_TRY_ASSIGN(const format::Inode item, read_inode(change.transaction, inode.ino));
        if (item.is_image()) return Error{Errc::kBusy, "the file has become an image meanwhile"};
        change.transaction.put(orphan_key(inode.ino), {});
        change.transaction.put(geometry_key(inode.ino), *geometry);
        all = items.size() < kItemsAtOnce;
        if (!items.empty()) after = items.back().key;
        move_data_items(change.transaction, items, inode.ino);
        return {};
      });
      MDFS_TRY(moved);
      next = after;
    }
    return change(store::Purpose::kNormal, [&](Change& change) -> Status {
      MDFS_TRY_ASSIGN(format::Inode item, read_inode(change.transaction, inode.ino));
      MDFS_TRY_ASSIGN(format::Inode source, read_inode(change.transaction, made.ino));
      item.flags = MDFS_INODE_IMAGE;
      item.placement = source.placement;
      item.base = source.base;
      item.stored_bytes = std::exchange(source.stored_bytes, 0);
      item.data_generation = change.transaction.generation();
      item.ctime_ns = change.now_ns;
      change.transaction.erase({inode.ino, MDFS_KIND_INLINE, 0});
      put_inode(change.transaction, inode.ino, item);
      put_inode(change.transaction, made.ino, source);
      return {};
    });
  };
  constexpr auto kAnotherKind = OpenObjects::Reopened::kAnotherKind;
  return open_objects_.change_alone(
      inode, kAnotherKind, [&](std::uint64_t) { return open_objects_.change_alone(made, kAnotherKind, swap); });
}

}  // namespace mdfs::volume
