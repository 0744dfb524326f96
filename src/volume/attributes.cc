// Attributes: stat, chmod, chown, utimens, and access checks.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>

#include "volume/level_items.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {

// `inode` may be null: nothing in memory is newer than the item. `use` was taken before the item was read.
Attributes VolumeImpl::compose(Ino ino, Inode* inode, const ObjectUse& use, const format::Inode& item) {
  format::Inode now = item;
  if (inode != nullptr) OpenObjects::overlay_times(*inode, now);
  if (use) now.size = engine_->size_bytes(*use);
  Attributes attributes;
  attributes.ino = ino;
  attributes.mode = now.mode;
  attributes.links = now.links;
  attributes.uid = now.uid;
  attributes.gid = now.gid;
  attributes.size_bytes = now.size;
  attributes.stored_bytes = now.stored_bytes;
  attributes.atime_ns = now.atime_ns;
  attributes.mtime_ns = now.mtime_ns;
  attributes.ctime_ns = now.ctime_ns;
  attributes.btime_ns = now.btime_ns;
  attributes.device = now.device;
  attributes.is_image = now.is_image();
  attributes.data_generation = shown_generation(now.data_generation);
  if (inode != nullptr) {
    const std::lock_guard lock(inode->times_mutex);
    attributes.data_generation = inode->data_generation.value_or(attributes.data_generation);
  }
  // Data in the tree or not yet written back: not none, or archivers take the file for a hole.
  const bool has_data = now.is_inline() || (use && engine_->is_dirty(*use));
  if (now.is_regular() && now.size > 0 && now.stored_bytes == 0 && has_data) attributes.stored_bytes = 512;
  if (now.is_image()) attributes.stored_bytes += stored_in_levels(*store_, ino);
  return attributes;
}

Result<Attributes> VolumeImpl::attributes_of(Inode& inode) {
  const ObjectUse use = open_objects_.use_if_open(inode);
  MDFS_TRY_ASSIGN(const format::Inode item, read_inode(*store_, inode.ino));
  return compose(inode.ino, &inode, use, item);
}

Result<Attributes> VolumeImpl::attributes(Ino ino) {
  const Pin pin = table_.find(ino);
  if (pin) return attributes_of(*pin);
  MDFS_TRY_ASSIGN(const format::Inode item, read_inode(*store_, ino));
  return compose(ino, nullptr, ObjectUse(), item);
}

// Permission to change the mode, and the loss of setgid by a chmod of a stranger to the group, are the kernel's
// business under default_permissions: it hands over the bits that are to be set. Of a chown it hands over the owner
// alone.
void VolumeImpl::apply(const SetAttributes& change, std::int64_t now_ns, format::Inode& inode) const {
  if (change.is_chown()) {
    inode.uid = change.uid.value_or(inode.uid);
    inode.gid = change.gid.value_or(inode.gid);
    if (!inode.is_directory()) {
      inode.mode &= ~std::uint32_t{S_ISUID};
      if ((inode.mode & S_IXGRP) != 0 || change.by_outsider) inode.mode &= ~std::uint32_t{S_ISGID};
    }
  }
  if (change.mode) inode.mode = (inode.mode & S_IFMT) | (*change.mode & 07777);
  if (change.atime_ns) inode.atime_ns = *change.atime_ns;
  if (change.mtime_ns) inode.mtime_ns = *change.mtime_ns;
  if (change.atime_now) inode.atime_ns = now_ns;
  if (change.mtime_now) inode.mtime_ns = now_ns;
  inode.ctime_ns = change.ctime_ns.value_or(now_ns);
}

Result<Attributes> VolumeImpl::set_attributes(Ino ino, const SetAttributes& wanted) {
  MDFS_TRY(check_writable());
  const Pin pin = table_.pin(ino);
  if (wanted.size_bytes) MDFS_TRY(set_size(ino, *wanted.size_bytes, wanted.stop));
  const bool sets_atime = wanted.atime_ns || wanted.atime_now;
  const bool sets_mtime = wanted.mtime_ns || wanted.mtime_now;
  const bool changes_item = wanted.mode || wanted.is_chown() || wanted.ctime_ns || sets_atime || sets_mtime;
  if (!changes_item) return attributes_of(*pin);
  std::optional<std::int64_t> atime_ns, mtime_ns;
  const Status status = change(store::Purpose::kFreeing, [&](Change& change) -> Status {
    MDFS_TRY_ASSIGN(format::Inode inode, read_inode(change.transaction, ino));
    apply(wanted, change.now_ns, inode);
    if (wanted.mode && !inode.is_symlink()) {
      MDFS_TRY_ASSIGN(const XattrPlace place, find_xattr(change.transaction, secret_, ino, kAccessAclName));
      if (place.value) {
        MDFS_TRY_ASSIGN(Acl acl, parse_acl(*place.value));
        change_mode(acl, inode.mode);
        put_xattr(change.transaction, ino, inode, place, kAccessAclName, encode_acl(acl));
      }
    }
    if (wanted.is_chown()) {
      MDFS_TRY_ASSIGN(const XattrPlace capability, find_xattr(change.transaction, secret_, ino, "security.capability"));
      if (capability.value) erase_xattr(change.transaction, ino, capability);
    }
    put_inode(change.transaction, ino, inode);
    if (sets_atime) atime_ns = inode.atime_ns;
    if (sets_mtime) mtime_ns = inode.mtime_ns;
    if ((inode.mode & (S_ISUID | S_ISGID)) != 0) pin->has_privileges = true;
    return {};
  });
  if (!status.ok()) return status.error();
  if (atime_ns || mtime_ns) open_objects_.set_times(*pin, atime_ns, mtime_ns);
  return attributes_of(*pin);
}

namespace {

// The mode after this caller has changed the bytes.
std::uint32_t mode_after_write(std::uint32_t mode, gid_t group, const Caller& caller) {
  if (caller.uid == 0) return mode;
  mode &= ~std::uint32_t{S_ISUID};
  return (mode & S_IXGRP) != 0 || !caller.is_in(group) ? mode & ~std::uint32_t{S_ISGID} : mode;
}

}  // namespace

Status VolumeImpl::drop_privileges(Ino ino, const std::function<Caller()>& caller) {
  const Pin pin = table_.pin(ino);
  if (!pin->has_open_object) {  // they are looked up with it
    MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  }
  if (!pin->has_privileges) return {};
  MDFS_TRY(check_writable());
  const Caller who = caller();
  bool dropped = false, left = false;
  const Status status = change(store::Purpose::kFreeing, [&](Change& change) -> Status {
    pin->has_privileges = false;  // a change of the mode that comes later sets it again
    MDFS_TRY_ASSIGN(format::Inode item, read_inode(change.transaction, ino));
    const std::uint32_t mode = mode_after_write(item.mode, item.gid, who);
    dropped = mode != item.mode;
    left = (mode & (S_ISUID | S_ISGID)) != 0;
    if (dropped) {
      item.mode = mode;
      item.ctime_ns = change.now_ns;
      put_inode(change.transaction, ino, item);
    }
    MDFS_TRY_ASSIGN(const XattrPlace capability, find_xattr(change.transaction, secret_, ino, "security.capability"));
    if (capability.value) erase_xattr(change.transaction, ino, capability);
    dropped = dropped || capability.value.has_value();
    return {};
  });
  if (!status.ok() || left) pin->has_privileges = true;
  if (status.ok() && dropped) tell_privileges_listener(ino);
  return status;
}

Status VolumeImpl::check_access(Ino ino, int mask, const Caller& caller) {
  MDFS_TRY_ASSIGN(const format::Inode inode, read_inode(*store_, ino));
  MDFS_TRY_ASSIGN(const Acl acl, read_acl(*store_, ino, kAccessAclName));
  if (may_access(acl, inode.mode, inode.uid, inode.gid, caller, mask)) return {};
  return Error{Errc::kAccessDenied, "inode " + std::to_string(ino)};
}

}  // namespace mdfs::volume
