// Names: looking up, making, linking and removing.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>

#include "volume/names.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

// As ext4 has it.
constexpr std::uint32_t kMaxLinks = 65000;

void now_changed(format::Inode& directory, std::int64_t now_ns) {
  directory.mtime_ns = now_ns;
  directory.ctime_ns = now_ns;
}

}  // namespace

Result<Attributes> VolumeImpl::lookup(Ino parent, std::string_view name) {
  MDFS_TRY(check_name(name));
  Ino vanished = 0;
  for (;;) {
    Ino ino = parent;  // ".": an inode of any kind, which is looked up by its number
    if (name != ".") {
      MDFS_TRY_ASSIGN(const format::Inode directory, read_directory_inode(*store_, parent));
      ino = directory.parent;
    }
    if (name != "." && name != "..") {
      MDFS_TRY_ASSIGN(const NamePlace place, find_name(*store_, secret_, parent, name));
      if (!place.entry) return Error{Errc::kNotFound, std::string(name)};
      ino = place.entry->inode;
    }
    const Pin pin = table_.pin(ino);
    table_.add_lookup(*pin);
    auto attributes = attributes_of(*pin);
    if (attributes.ok() && attributes->links > 0) return attributes;
    // Removed between the two looks, and the name may be there again; but not with a number that has gone.
    table_.drop_lookups(ino, 1);
    if (!attributes.ok() && (attributes.error().code != Errc::kNotFound)) return attributes.error();
    if (name == ".") return Error{Errc::kNotFound, "inode " + std::to_string(ino)};
    if (ino == vanished)
      return Error{Errc::kCorrupt, "directory " + std::to_string(parent) + ": the entry " + std::string(name) +
                                       " leads to inode " + std::to_string(ino) + ", which does not exist"};
    vanished = ino;
  }
}

void VolumeImpl::forget(Ino ino, std::uint64_t lookups) { table_.drop_lookups(ino, lookups); }

Result<Attributes> VolumeImpl::make_node(Ino parent, std::string_view name, mode_t mode, std::uint64_t device,
                                         const Caller& caller) {
  const mode_t type = (mode & S_IFMT) == 0 ? S_IFREG : mode & S_IFMT;
  switch (type) {
    case S_IFREG:
    case S_IFIFO:
    case S_IFSOCK:
      device = 0;
      break;
    case S_IFCHR:
    case S_IFBLK:
      break;
    default:
      return Error{Errc::kInvalidArgument, "type of the new node"};
  }
  return make(parent, name, {type | (mode & 07777), device, {}}, caller);
}

Result<Attributes> VolumeImpl::make_directory(Ino parent, std::string_view name, mode_t mode, const Caller& caller) {
  return make(parent, name, {S_IFDIR | (mode & 01777), 0, {}}, caller);
}

Result<Attributes> VolumeImpl::make_symlink(Ino parent, std::string_view name, std::string_view target,
                                            const Caller& caller) {
  if (target.empty()) return Error{Errc::kNotFound, "an empty target"};
  if (target.size() > MDFS_MAX_SYMLINK)
    return Error{Errc::kNameTooLong, "the target of a symbolic link has at most 4095 bytes"};
  if (target.find('\0') != std::string_view::npos)
    return Error{Errc::kInvalidArgument, "the target of a symbolic link must not contain NUL"};
  return make(parent, name, {S_IFLNK | 0777, 0, target}, caller);
}

Result<Attributes> VolumeImpl::make(Ino parent, std::string_view name, const NewObject& object, const Caller& caller) {
  MDFS_TRY(check_writable());
  MDFS_TRY(check_new_name(parent, name));
  format::Inode inode;
  if (S_ISREG(object.mode)) {
    std::uint64_t id = file_placement_;
    if (id == 0) {
      const std::uint64_t changes = member_changes_;
      const geometry::Placement placement = placements_.for_files();
      const Status status = change(store::Purpose::kNormal, [&](Change& change) -> Status {
        MDFS_TRY_ASSIGN(id, placements_.find_or_make(change.transaction, placement));
        return {};
      });
      MDFS_TRY(status);
      file_placement_ = id;
      if (changes != member_changes_) file_placement_ = 0;  // found for the disks that were
    }
    MDFS_TRY_ASSIGN(const auto placement, placements_.get(id));
    inode.placement = id;
    inode.base = placements_.next_base(*placement);
  }
  Pin pin;
  const Status status = change(store::Purpose::kNormal, [&](Change& change) -> Status {
    MDFS_TRY_ASSIGN(format::Inode directory, read_directory_inode(change.transaction, parent));
    MDFS_TRY_ASSIGN(const NamePlace place, find_name(change.transaction, secret_, parent, name));
    if (place.entry) return Error{Errc::kExists, std::string(name)};
    const Ino ino = change.transaction.new_object();
    change.transaction.count_objects(1);
    MDFS_TRY(create_inode(change, ino, directory, parent, object, caller, inode));
    put_entry(change.transaction, parent, place.cookie, {ino, inode.entry_type(), std::string(name)});
    directory.reach = std::max(directory.reach, place.reach);
    ++directory.entries;
    if (inode.is_directory()) ++directory.links;
    now_changed(directory, change.now_ns);
    put_inode(change.transaction, parent, directory);
    pin = table_.pin(ino);
    return {};
  });
  MDFS_TRY(status);
  table_.add_lookup(*pin);
  return compose(pin->ino, nullptr, ObjectUse(), inode);
}

// Owner, group, mode and lists of a new inode, by the caller and the directory.
Status VolumeImpl::create_inode(Change& change, Ino ino, const format::Inode& parent, Ino parent_ino,
                                const NewObject& object, const Caller& caller, format::Inode& inode) {
  inode.mode = object.mode;
  inode.links = S_ISDIR(object.mode) ? 2 : 1;
  inode.uid = caller.uid;
  inode.gid = caller.gid;
  inode.device = object.device;
  inode.parent = S_ISDIR(object.mode) ? parent_ino : 0;
  inode.atime_ns = inode.mtime_ns = inode.ctime_ns = inode.btime_ns = change.now_ns;
  inode.data_generation = change.transaction.generation();
  if (S_ISREG(object.mode) || S_ISDIR(object.mode)) {
    inode.protection = parent.protection;
    inode.group_members = parent.group_members;
  }
  if ((parent.mode & S_ISGID) != 0) {
    inode.gid = parent.gid;
    const bool member = caller.uid == 0 || caller.is_in(inode.gid);
    if (S_ISDIR(object.mode)) {
      inode.mode |= S_ISGID;
    } else if ((inode.mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && !member) {
      inode.mode &= ~std::uint32_t{S_ISGID};
    }
  }
  if (S_ISLNK(object.mode)) {
    inode.size = object.target.size();
    change.transaction.put(symlink_key(ino), as_bytes(object.target));
  } else {
    MDFS_TRY_ASSIGN(const Acl default_acl, read_acl(change.transaction, parent_ino, kDefaultAclName));
    if (default_acl.empty()) {
      inode.mode &= ~(caller.umask & 0777);
    } else {
      Acl access = default_acl;
      inode.mode = inherit(access, inode.mode);
      put_new_acls(change, ino, inode, access, S_ISDIR(object.mode) ? default_acl : Acl{});
    }
  }
  put_inode(change.transaction, ino, inode);
  return {};
}

void VolumeImpl::put_new_acls(Change& change, Ino ino, format::Inode& inode, const Acl& inherited,
                              const Acl& default_acl) {
  std::uint64_t taken = 0;  // a new inode has no other attributes
  const auto put = [&](std::string_view name, const Acl& acl) {
    const std::uint64_t first = format::first_cookie(secret_, name);
    const std::uint32_t reach = first == taken ? 1 : 0;
    put_xattr(change.transaction, ino, inode, {std::nullopt, first + reach, reach}, name, encode_acl(acl));
    taken = first + reach;
  };
  if (!is_minimal(inherited)) put(kAccessAclName, inherited);
  if (!default_acl.empty()) put(kDefaultAclName, default_acl);
}

Result<Attributes> VolumeImpl::link(Ino ino, Ino new_parent, std::string_view new_name) {
  MDFS_TRY(check_writable());
  MDFS_TRY(check_new_name(new_parent, new_name));
  const Pin pin = table_.pin(ino);
  const Status status = change(store::Purpose::kNormal, [&](Change& change) -> Status {
    MDFS_TRY_ASSIGN(format::Inode inode, read_inode(change.transaction, ino));
    if (inode.is_directory()) return Error{Errc::kNotPermitted, "hard links to directories"};
    if (inode.links == 0) return Error{Errc::kNotFound, "the file has been removed"};
    MDFS_TRY_ASSIGN(format::Inode directory, read_directory_inode(change.transaction, new_parent));
    MDFS_TRY_ASSIGN(const NamePlace place, find_name(change.transaction, secret_, new_parent, new_name));
    if (place.entry) return Error{Errc::kExists, std::string(new_name)};
    if (inode.links >= kMaxLinks) return Error{Errc::kTooManyLinks, std::string(new_name)};
    ++inode.links;
    inode.ctime_ns = change.now_ns;
    put_inode(change.transaction, ino, inode);
    put_entry(change.transaction, new_parent, place.cookie, {ino, inode.entry_type(), std::string(new_name)});
    directory.reach = std::max(directory.reach, place.reach);
    ++directory.entries;
    now_changed(directory, change.now_ns);
    put_inode(change.transaction, new_parent, directory);
    return {};
  });
  MDFS_TRY(status);
  table_.add_lookup(*pin);
  return attributes_of(*pin);
}

Status VolumeImpl::unlink(Ino parent, std::string_view name) { return remove_name(parent, name, false); }

Status VolumeImpl::remove_directory(Ino parent, std::string_view name) { return remove_name(parent, name, true); }

Status VolumeImpl::remove_name(Ino parent, std::string_view name, bool directory) {
  MDFS_TRY(check_writable());
  MDFS_TRY(check_old_name(name));
  Removed removed;
  const Status status = change(store::Purpose::kFreeing, [&](Change& change) -> Status {
    MDFS_TRY_ASSIGN(format::Inode above, read_directory_inode(change.transaction, parent));
    MDFS_TRY_ASSIGN(const NamePlace place, find_name(change.transaction, secret_, parent, name));
    if (!place.entry) return Error{Errc::kNotFound, std::string(name)};
    const Ino ino = place.entry->inode;
    MDFS_TRY_ASSIGN(format::Inode inode, read_inode(change.transaction, ino));
    if (directory && !inode.is_directory()) return Error{Errc::kNotDirectory, std::string(name)};
    if (!directory && inode.is_directory()) return Error{Errc::kIsDirectory, std::string(name)};
    if (inode.entries > 0) return Error{Errc::kNotEmpty, std::string(name)};
    erase_entry(change.transaction, parent, place.cookie);
    --above.entries;
    if (directory) --above.links;
    now_changed(above, change.now_ns);
    put_inode(change.transaction, parent, above);
    drop_link(change, ino, inode);
    removed.pin = table_.pin(ino);
    removed.gone = inode.links == 0;
    return {};
  });
  MDFS_TRY(status);
  drop_removed(removed);
  return {};
}

void VolumeImpl::drop_link(Change& change, Ino ino, format::Inode& inode) {
  inode.links = inode.is_directory() ? 0 : inode.links - std::min(inode.links, 1u);
  inode.ctime_ns = change.now_ns;
  put_inode(change.transaction, ino, inode);
  if (inode.links == 0) change.transaction.put(orphan_key(ino), {});
}

void VolumeImpl::drop_removed(Removed& removed) {
  if (removed.gone) removed.pin->unlinked = true;
  removed.pin = Pin();
}

Result<std::string> VolumeImpl::read_symlink(Ino ino) {
  MDFS_TRY_ASSIGN(const format::Inode inode, read_inode(*store_, ino));
  if (!inode.is_symlink()) return Error{Errc::kInvalidArgument, "not a symbolic link"};
  MDFS_TRY_ASSIGN(const std::optional<ByteVector> target, store_->get(symlink_key(ino)));
  if (!target) return Error{Errc::kCorrupt, "inode " + std::to_string(ino) + ": a symbolic link without a target"};
  return format::decode_symlink(*target);
}

}  // namespace mdfs::volume
