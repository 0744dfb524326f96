// rename(2): replace, no-replace and exchange, of anything.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "volume/names.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {

// An application that writes a file and renames it over another must find, after a crash, the old or the new bytes:
// so the data reach the disks in the commit of the new name at the latest.
Status VolumeImpl::write_back_named(Ino parent, std::string_view name) {
  MDFS_TRY_ASSIGN(const NamePlace place, find_name(*store_, secret_, parent, name));
  if (!place.entry) return {};
  const Pin pin = table_.find(place.entry->inode);
  if (!pin) return {};
  const ObjectUse use = open_objects_.use_if_open(*pin);
  return use && engine_->is_dirty(*use) ? engine_->write_back(*use) : Status();
}

Status VolumeImpl::rename(Ino parent, std::string_view name, Ino new_parent, std::string_view new_name,
                          RenameMode mode) {
  MDFS_TRY(check_writable());
  MDFS_TRY(check_old_name(name));
  const Status new_name_allowed = check_new_name(new_parent, new_name);
  if (!new_name_allowed.ok()) {
    // As Linux answers for "." and "..".
    return new_name_allowed.error().code == Errc::kExists && mode != RenameMode::kNoReplace
               ? Status(Errc::kBusy, std::string(new_name))
               : new_name_allowed;
  }
  if (mode != RenameMode::kNoReplace) {
    MDFS_TRY_ASSIGN(const NamePlace target, find_name(*store_, secret_, new_parent, new_name));
    if (target.entry) MDFS_TRY(write_back_named(parent, name));
    if (target.entry && mode == RenameMode::kExchange) MDFS_TRY(write_back_named(new_parent, new_name));
  }
  Removed removed;
  const Status status = change(store::Purpose::kNormal, [&](Change& change) -> Status {
    removed = Removed();
    RenameEnd from{parent, name, {}, {}};
    RenameEnd to{new_parent, new_name, {}, {}};
    for (RenameEnd* end : {&from, &to}) {
      MDFS_TRY_ASSIGN(end->directory, read_directory_inode(change.transaction, end->parent));
      MDFS_TRY_ASSIGN(end->place, find_name(change.transaction, secret_, end->parent, end->name));
    }
    MDFS_TRY(check_rename(change, from, to, mode));
    if (to.place.entry && from.place.entry->inode == to.place.entry->inode) return {};  // two names of one file
    MDFS_TRY(mode == RenameMode::kExchange ? exchange(change, from, to) : replace(change, from, to, removed));
    from.directory.mtime_ns = from.directory.ctime_ns = change.now_ns;
    to.directory.mtime_ns = to.directory.ctime_ns = change.now_ns;
    put_inode(change.transaction, parent, from.directory);
    if (parent != new_parent) put_inode(change.transaction, new_parent, to.directory);
    return {};
  });
  MDFS_TRY(status);
  drop_removed(removed);
  return {};
}

Status VolumeImpl::check_rename(Change& change, const RenameEnd& from, const RenameEnd& to, RenameMode mode) {
  if (!from.place.entry) return Error{Errc::kNotFound, std::string(from.name)};
  if (to.place.entry && mode == RenameMode::kNoReplace) return Error{Errc::kExists, std::string(to.name)};
  if (!to.place.entry && mode == RenameMode::kExchange) return Error{Errc::kNotFound, std::string(to.name)};
  MDFS_TRY_ASSIGN(const format::Inode moved, read_inode(change.transaction, from.place.entry->inode));
  if (moved.is_directory()) MDFS_TRY(check_no_loop(change, from.place.entry->inode, to.parent));
  if (!to.place.entry || from.place.entry->inode == to.place.entry->inode) return {};
  MDFS_TRY_ASSIGN(const format::Inode target, read_inode(change.transaction, to.place.entry->inode));
  if (mode == RenameMode::kExchange) {
    if (target.is_directory()) MDFS_TRY(check_no_loop(change, to.place.entry->inode, from.parent));
    return {};
  }
  if (moved.is_directory() && !target.is_directory()) return Error{Errc::kNotDirectory, std::string(to.name)};
  if (!moved.is_directory() && target.is_directory()) return Error{Errc::kIsDirectory, std::string(to.name)};
  if (target.entries > 0) return Error{Errc::kNotEmpty, std::string(to.name)};
  return {};
}

// A directory does not move into itself or below.
Status VolumeImpl::check_no_loop(Change& change, Ino moved, Ino new_parent) {
  constexpr unsigned kMaxDepth = 1u << 20;  // only a damaged tree is deeper
  Ino at = new_parent;
  for (unsigned depth = 0; depth < kMaxDepth; ++depth) {
    if (at == moved) return Error{Errc::kInvalidArgument, "a directory cannot move below itself"};
    if (at == kRootIno) return {};
    MDFS_TRY_ASSIGN(const format::Inode directory, read_inode(change.transaction, at));
    at = directory.parent;
  }
  return Error{Errc::kCorrupt, "directory " + std::to_string(new_parent) + " is not below the root"};
}

Status VolumeImpl::exchange(Change& change, RenameEnd& from, RenameEnd& to) {
  const format::Dirent first = *from.place.entry;
  const format::Dirent second = *to.place.entry;
  put_entry(change.transaction, from.parent, from.place.cookie, {second.inode, second.type, first.name});
  put_entry(change.transaction, to.parent, to.place.cookie, {first.inode, first.type, second.name});
  MDFS_TRY(move_object(change, first.inode, from, to));
  MDFS_TRY(move_object(change, second.inode, to, from));
  if (from.parent == to.parent) return {};
  MDFS_TRY_ASSIGN(const format::Inode moved, read_inode(change.transaction, first.inode));
  MDFS_TRY_ASSIGN(const format::Inode other, read_inode(change.transaction, second.inode));
  if (moved.is_directory()) {
    --from.directory.links;
    ++to.directory.links;
  }
  if (other.is_directory()) {
    ++from.directory.links;
    --to.directory.links;
  }
  return {};
}

Status VolumeImpl::replace(Change& change, RenameEnd& from, RenameEnd& to, Removed& removed) {
  const format::Dirent moved = *from.place.entry;
  MDFS_TRY_ASSIGN(const format::Inode inode, read_inode(change.transaction, moved.inode));
  const bool is_directory = inode.is_directory();
  erase_entry(change.transaction, from.parent, from.place.cookie);
  RenameEnd& counted = from.parent == to.parent ? from : to;  // one directory has one count
  --from.directory.entries;
  ++counted.directory.entries;
  if (is_directory) {
    --from.directory.links;
    ++counted.directory.links;
  }
  if (to.place.entry) {
    const Ino victim = to.place.entry->inode;
    MDFS_TRY_ASSIGN(format::Inode target, read_inode(change.transaction, victim));
    --counted.directory.entries;
    if (target.is_directory()) --counted.directory.links;
    drop_link(change, victim, target);
    removed.pin = table_.pin(victim);
    removed.gone = target.links == 0;
  }
  put_entry(change.transaction, to.parent, to.place.cookie, {moved.inode, moved.type, std::string(to.name)});
  counted.directory.reach = std::max(counted.directory.reach, to.place.reach);
  return move_object(change, moved.inode, from, to);
}

Status VolumeImpl::move_object(Change& change, Ino ino, const RenameEnd& from, const RenameEnd& to) {
  MDFS_TRY_ASSIGN(format::Inode inode, read_inode(change.transaction, ino));
  inode.ctime_ns = change.now_ns;
  if (inode.is_directory() && from.parent != to.parent) inode.parent = to.parent;
  put_inode(change.transaction, ino, inode);
  return {};
}

}  // namespace mdfs::volume
