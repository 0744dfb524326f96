// The open objects of inodes.
// SPDX-License-Identifier: Apache-2.0
#include "volume/open_objects.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/checked.h"
#include "base/log.h"
#include "format/geometry_item.h"
#include "volume/level_items.h"
#include "volume/placements.h"
#include "volume/records.h"

namespace mdfs::volume {

ObjectUse& ObjectUse::operator=(ObjectUse&& other) noexcept {
  if (this != &other) {
    end();
    owner_ = other.owner_;
    inode_ = std::exchange(other.inode_, nullptr);
    object_ = std::move(other.object_);
    geometry_ = std::move(other.geometry_);
    levels_ = std::move(other.levels_);
  }
  return *this;
}

void ObjectUse::end() {
  if (inode_ == nullptr) return;
  object_.reset();
  geometry_.reset();
  levels_.reset();
  owner_->end_use(*std::exchange(inode_, nullptr));
}

ObjectUse OpenObjects::make_use(Inode& inode) {
  ObjectUse use;
  use.owner_ = this;
  use.inode_ = &inode;
  use.object_ = inode.open_object;
  use.geometry_ = inode.geometry;
  use.levels_ = inode.levels;
  ++inode.object_users;
  return use;
}

Result<ObjectUse> OpenObjects::use(Inode& inode) {
  std::unique_lock lock(inode.object_mutex);
  inode.object_changed.wait(lock, [&] { return !inode.object_switching; });
  if (!inode.open_object) MDFS_TRY(open(inode));
  return make_use(inode);
}

ObjectUse OpenObjects::use_if_open(Inode& inode) {
  std::unique_lock lock(inode.object_mutex);
  inode.object_changed.wait(lock, [&] { return !inode.object_switching; });
  if (!inode.open_object) return {};
  return make_use(inode);
}

void OpenObjects::end_use(Inode& inode) {
  const std::lock_guard lock(inode.object_mutex);
  if (--inode.object_users > 0) return;
  inode.object_used_ns = environment_.monotonic_ns();
  if (inode.object_switching) inode.object_changed.notify_all();
  queue_idle(inode);
}

Status OpenObjects::open(Inode& inode) {
  MDFS_TRY_ASSIGN(const format::Inode item, read_inode(store_, inode.ino));
  if (item.is_directory()) return Error{Errc::kIsDirectory, "inode " + std::to_string(inode.ino)};
  if (!item.is_regular()) return Error{Errc::kInvalidArgument, "not a regular file"};
  engine::ObjectSpec spec;
  spec.number = inode.ino;
  spec.base = item.base;
  spec.size_bytes = item.size;
  spec.is_inline = item.is_inline();
  spec.copies = item.has_copies();
  spec.group_members = item.group_width();
  MDFS_TRY_ASSIGN(spec.placement, placements_.get(item.placement));
  std::shared_ptr<const geometry::Geometry> geometry;
  std::shared_ptr<const LevelSet> levels;
  if (item.is_image()) {
    auto stored = read_geometry(store_, inode.ino);
    if (!stored.ok()) {
      MDFS_TRY(read_inode(store_, inode.ino));  // kNotFound: the object was freed between the two
      return stored.error();
    }
    spec.geometry = std::move(*stored);
    spec.geometry->shape[0] = ceil_div(item.size, spec.geometry->slab_bytes());
    MDFS_TRY(geometry::check(*spec.geometry));
    geometry = std::make_shared<const geometry::Geometry>(*spec.geometry);
    MDFS_TRY_ASSIGN(levels, read_levels(store_, inode.ino, *geometry));
  }
  load_times(inode, item);
  bool privileges = (item.mode & (S_ISUID | S_ISGID)) != 0;
  if (!privileges) {
    MDFS_TRY_ASSIGN(const XattrPlace capability, find_xattr(store_, secret_, inode.ino, "security.capability"));
    privileges = capability.value.has_value();
  }
  inode.has_privileges = privileges;
  MDFS_TRY_ASSIGN(inode.open_object,
                  engine_.open(spec, [this, &inode](store::Transaction& transaction, const engine::ObjectState& state) {
                    return update_item(inode, transaction, state);
                  }));
  inode.geometry = std::move(geometry);
  inode.levels = std::move(levels);
  inode.has_open_object = true;
  return {};
}

Status OpenObjects::close(Inode& inode) {
  Status status;
  if (inode.unlinked && !table_.is_held(inode)) {
    engine_.discard(inode.open_object);
  } else {
    status = engine_.close(inode.open_object);
  }
  inode.open_object.reset();
  inode.geometry.reset();
  inode.levels.reset();
  inode.has_open_object = false;
  if (!status.ok()) spdlog::error("inode {}: closing lost data: {}", inode.ino, status.error().message());
  return status;
}

Status OpenObjects::update_item(Inode& inode, store::Transaction& transaction, const engine::ObjectState& state) {
  MDFS_TRY_ASSIGN(format::Inode item, read_inode(transaction, inode.ino));
  const std::uint64_t freed = state.stored_bytes_change < 0 ? std::uint64_t(-state.stored_bytes_change) : 0;
  if (freed > item.stored_bytes) return Error{Errc::kCorrupt, "inode.stored-bytes: more bytes freed than stored"};
  item.stored_bytes += static_cast<std::uint64_t>(state.stored_bytes_change);
  if (item.is_image() && item.size != state.size_bytes) {
    MDFS_TRY_ASSIGN(geometry::Geometry geometry, read_geometry(transaction, inode.ino));
    geometry.shape[0] = ceil_div(state.size_bytes, geometry.slab_bytes());
    MDFS_TRY_ASSIGN(const auto old, transaction.get(geometry_key(inode.ino)));
    if (!old) return Error{Errc::kCorrupt, "an image without a geometry"};
    transaction.put(geometry_key(inode.ino), format::encode_over(geometry, *old));
  }
  item.size = state.size_bytes;
  item.flags = (item.flags & ~std::uint64_t{MDFS_INODE_INLINE}) | (state.is_inline ? MDFS_INODE_INLINE : 0);
  item.data_generation = transaction.generation();
  overlay_times(inode, item);
  put_inode(transaction, inode.ino, item);
  return {};
}

// ---- times

void OpenObjects::load_times(Inode& inode, const format::Inode& item) {
  const std::lock_guard lock(inode.times_mutex);
  if (!inode.atime_ns) inode.atime_ns = item.atime_ns;
  if (!item.is_regular()) return;  // the others are changed in the tree at once
  if (!inode.mtime_ns) inode.mtime_ns = item.mtime_ns;
  if (!inode.ctime_ns) inode.ctime_ns = item.ctime_ns;
  if (!inode.data_generation) inode.data_generation = shown_generation(item.data_generation);
}

void OpenObjects::overlay_times(Inode& inode, format::Inode& item) {
  const std::lock_guard lock(inode.times_mutex);
  item.atime_ns = inode.atime_ns.value_or(item.atime_ns);
  item.mtime_ns = inode.mtime_ns.value_or(item.mtime_ns);
  item.ctime_ns = std::max(inode.ctime_ns.value_or(item.ctime_ns), item.ctime_ns);
}

void OpenObjects::data_changed(Inode& inode) {
  {
    const std::int64_t now_ns = environment_.now_ns();
    const std::uint64_t next = (store_.generation() + 1) << kGenerationShift;
    const std::lock_guard lock(inode.times_mutex);
    inode.mtime_ns = now_ns;
    inode.ctime_ns = std::max(inode.ctime_ns.value_or(now_ns), now_ns);
    inode.data_generation = std::max(inode.data_generation.value_or(0) + 1, next);
  }
  mark_times_dirty(inode);
}

void OpenObjects::was_read(Inode& inode, const format::Inode& item) {
  constexpr std::int64_t kDayNs = 86'400'000'000'000;
  {
    const std::int64_t now_ns = environment_.now_ns();
    const std::lock_guard lock(inode.times_mutex);
    if (!inode.atime_ns) return;
    const std::int64_t atime_ns = *inode.atime_ns;
    const bool older_than_data =
        atime_ns <= inode.mtime_ns.value_or(item.mtime_ns) || atime_ns <= inode.ctime_ns.value_or(item.ctime_ns);
    if (!older_than_data && now_ns - atime_ns < kDayNs) return;
    inode.atime_ns = now_ns;
  }
  mark_times_dirty(inode);
}

void OpenObjects::set_times(Inode& inode, std::optional<std::int64_t> atime_ns, std::optional<std::int64_t> mtime_ns) {
  {
    const std::lock_guard lock(inode.times_mutex);
    if (!inode.atime_ns && !inode.mtime_ns) return;  // the item says it all
    if (atime_ns && inode.atime_ns) inode.atime_ns = atime_ns;
    if (mtime_ns && inode.mtime_ns) inode.mtime_ns = mtime_ns;
  }
  mark_times_dirty(inode);  // a write-back in between may have put the old ones into the item
}

void OpenObjects::mark_times_dirty(Inode& inode) {
  if (inode.times_dirty.exchange(true)) return;
  const std::lock_guard lock(dirty_mutex_);
  dirty_times_.push_back(inode.ino);
}

Status OpenObjects::write_back_times(Inode& inode) {
  if (!inode.times_dirty.exchange(false)) return {};
  MDFS_TRY_ASSIGN(const std::optional<format::Inode> item, find_inode(store_, inode.ino));
  if (!item) return {};
  format::Inode newer = *item;
  overlay_times(inode, newer);
  if (newer == *item) return {};
  const Status status = store_.transact(store::Purpose::kFreeing, [&](store::Transaction& transaction) -> Status {
    MDFS_TRY_ASSIGN(std::optional<format::Inode> now, find_inode(transaction, inode.ino));
    if (!now) return {};
    overlay_times(inode, *now);
    put_inode(transaction, inode.ino, *now);
    return {};
  });
  if (!status.ok() && !store_.read_only()) mark_times_dirty(inode);
  return status;
}

Status OpenObjects::write_back_times() {
  std::vector<Ino> inodes;
  {
    const std::lock_guard lock(dirty_mutex_);
    inodes.swap(dirty_times_);
  }
  Status first_error;
  for (const Ino ino : inodes) {
    const Pin pin = table_.find(ino);
    if (!pin) continue;
    const Status status = write_back_times(*pin);
    if (!status.ok() && first_error.ok()) first_error = status;
  }
  return first_error;
}

Status OpenObjects::write_back(Inode& inode, bool data_only) {
  Status status;
  {
    const ObjectUse use = use_if_open(inode);
    if (use) status = engine_.write_back(*use);
  }
  if (inode.write_error_kept) {
    const std::lock_guard lock(inode.error_mutex);
    if (status.ok() && inode.write_error) status = *inode.write_error;
    inode.write_error.reset();
    inode.write_error_kept = false;
  }
  if (status.ok() && !data_only) status = write_back_times(inode);
  return status;
}

// ---- closing

Status OpenObjects::change_alone(Inode& inode, Reopened reopened, const std::function<Status(std::uint64_t)>& change) {
  std::unique_lock lock(inode.object_mutex);
  inode.object_changed.wait(lock, [&] { return !inode.object_switching; });
  inode.object_switching = true;
  inode.object_changed.wait(lock, [&] { return inode.object_users == 0; });
  Status status;
  if (!inode.open_object) status = open(inode);
  if (status.ok()) {
    const std::uint64_t size_bytes = engine_.size_bytes(*inode.open_object);
    status = engine_.write_back(*inode.open_object);
    if (status.ok() && reopened == Reopened::kAnotherKind) engine_.discard(inode.open_object);
    if (status.ok()) status = close(inode);
    if (status.ok()) status = change(size_bytes);
  }
  inode.object_switching = false;
  inode.object_changed.notify_all();
  return status;
}

void OpenObjects::discard(Inode& inode) {
  const std::lock_guard lock(inode.object_mutex);
  if (inode.open_object) {
    engine_.discard(inode.open_object);
  } else {
    engine_.forget_relocations(inode.ino);
  }
  inode.open_object.reset();
  inode.geometry.reset();
  inode.levels.reset();
  inode.has_open_object = false;
  inode.times_dirty = false;
  inode.write_error_kept = false;
}

void OpenObjects::note_idle(Inode& inode) {
  const std::lock_guard lock(inode.object_mutex);
  if (inode.object_users == 0) queue_idle(inode);
}

// The inode's object_mutex is held.
void OpenObjects::queue_idle(Inode& inode) {
  if (!inode.open_object || inode.object_queued || table_.is_open(inode)) return;
  inode.object_queued = true;
  const std::lock_guard lock(idle_mutex_);
  idle_.push_back({inode.ino, inode.object_used_ns});
}

void OpenObjects::close_idle(std::int64_t age_ns) {
  const std::int64_t now_ns = environment_.monotonic_ns();
  std::size_t looks = 0;
  for (;;) {
    Idle idle;
    bool crowded = false;
    {
      const std::lock_guard lock(idle_mutex_);
      if (looks++ > 2 * kMaxIdle || idle_.empty()) return;
      crowded = idle_.size() > kMaxIdle;
      if (!crowded && now_ns - idle_.front().since_ns < age_ns) return;
      idle = idle_.front();
      idle_.pop_front();
    }
    if (!close_if_idle(idle, now_ns - age_ns, crowded)) return;
  }
}

// False: it could not be written, and stays as it is, behind the others.
bool OpenObjects::close_if_idle(const Idle& idle, std::int64_t used_before_ns, bool crowded) {
  const Pin pin = table_.find(idle.ino);
  if (!pin) return true;
  {
    const std::lock_guard lock(pin->object_mutex);
    pin->object_queued = false;
    if (!pin->open_object || pin->object_users > 0 || table_.is_open(*pin)) return true;
    if (!crowded && pin->object_used_ns > used_before_ns) {
      queue_idle(*pin);
      return true;
    }
    const bool is_gone = pin->unlinked && !table_.is_held(*pin);
    if (const Status written = is_gone ? Status() : engine_.write_back(*pin->open_object); !written.ok()) {
      if (!pin->write_error_kept)
        spdlog::error("inode {}: data stay in memory for another write: {}", idle.ino, written.error().message());
      const std::lock_guard error_lock(pin->error_mutex);
      pin->write_error = written.error();
      pin->write_error_kept = true;
      pin->object_used_ns = environment_.monotonic_ns();
      queue_idle(*pin);
      return false;
    }
    if (!close(*pin).ok()) return true;  // nothing was left to be written
  }
  const Status status = write_back_times(*pin);
  if (!status.ok()) spdlog::warn("inode {}: times not written: {}", idle.ino, status.error().message());
  return true;
}

Status OpenObjects::close_all() {
  Status first_error;
  for (const Pin& pin : table_.all()) {
    const std::lock_guard lock(pin->object_mutex);
    if (!pin->open_object) continue;
    const Status status = close(*pin);
    if (!status.ok() && first_error.ok()) first_error = status;
  }
  const Status status = write_back_times();
  return first_error.ok() ? status : first_error;
}

}  // namespace mdfs::volume
