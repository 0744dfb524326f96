// Operations on attributes.
// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/log.h"
#include "fuse/handles.h"
#include "fuse/interrupts.h"
#include "fuse/operations.h"
#include "fuse/reply.h"
#include "fuse/view_nodes.h"
#include "fuse/zarr_nodes.h"
#include "geometry/display.h"
#include "views/geometry_json.h"
#include "views/metadata_blocks.h"
#include "volume/acl.h"

namespace mdfs::fuse {
namespace {

using volume::Attributes;
using volume::SetAttributes;

std::int64_t to_ns(const timespec& time) { return time.tv_sec * kNsPerSecond + time.tv_nsec; }

Result<struct stat> stat_of(Server& server, fuse_ino_t ino) {
  if (is_virtual(ino)) {
    const auto node = server.nodes().find(ino);
    if (!node) return Error{Errc::kNotFound, "a virtual file"};
    return view_attributes(server, *node);
  }
  MDFS_TRY_ASSIGN(const Attributes attributes, server.volume().attributes(ino));
  return to_stat(attributes);
}

void reply_stat(fuse_req_t req, fuse_ino_t ino, const Result<struct stat>& attributes) {
  if (!attributes.ok()) return reply_error(req, attributes.error());
  const auto node = is_virtual(ino) ? server_of(req).nodes().find(ino) : nullptr;
  fuse_reply_attr(req, &*attributes, node ? attribute_seconds(*node) : kAttributeSeconds);
}

// Only the length of a virtual file can be set: to its present value, or to 0 by a program that will rewrite it.
Result<struct stat> set_view_attributes(Server& server, uid_t caller, fuse_ino_t ino, const struct stat& requested,
                                        int which, fuse_file_info* fi) {
  MDFS_TRY_ASSIGN(struct stat now, stat_of(server, ino));
  constexpr int kOwned = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
  if ((which & kOwned) != 0)
    return Error{Errc::kNotPermitted, "the owner and mode of a virtual file are those of its image"};
  if ((which & FUSE_SET_ATTR_SIZE) == 0 || requested.st_size == now.st_size) return now;
  if (requested.st_size != 0 || fi == nullptr)
    return Error{Errc::kInvalidArgument, "the size of a virtual file follows from its window"};
  Handle& handle = handle_of(fi);
  if (!can_write(handle.flags)) return Error{Errc::kInvalidArgument, "not open for writing"};
  if (handle.staged) {
    MDFS_TRY(empty_staged(*handle.staged));
  } else {
    const std::lock_guard lock(handle.mutex);
    MDFS_TRY_ASSIGN(handle.writer, new_writer(server, handle, caller, true));
  }
  now.st_size = 0;
  return now;
}

SetAttributes to_change(const struct stat& requested, int which) {
  SetAttributes change;
  if ((which & FUSE_SET_ATTR_MODE) != 0) change.mode = requested.st_mode;
  if ((which & FUSE_SET_ATTR_UID) != 0) change.uid = requested.st_uid;
  if ((which & FUSE_SET_ATTR_GID) != 0) change.gid = requested.st_gid;
  if ((which & FUSE_SET_ATTR_SIZE) != 0) change.size_bytes = static_cast<std::uint64_t>(requested.st_size);
  change.atime_now = (which & FUSE_SET_ATTR_ATIME_NOW) != 0;
  change.mtime_now = (which & FUSE_SET_ATTR_MTIME_NOW) != 0;
  if ((which & FUSE_SET_ATTR_ATIME) != 0 && !change.atime_now) change.atime_ns = to_ns(requested.st_atim);
  if ((which & FUSE_SET_ATTR_MTIME) != 0 && !change.mtime_now) change.mtime_ns = to_ns(requested.st_mtim);
  if ((which & FUSE_SET_ATTR_CTIME) != 0) change.ctime_ns = to_ns(requested.st_ctim);
  // The kernel leaves set-uid and set-gid to the daemon: a write, or a chown(2) of neither owner nor group.
  change.keeps_owner = which == 0;
  return change;
}

// The groups cost a read of /proc. They matter for a setgid bit without group execute only.
bool is_outsider(fuse_req_t req, fuse_ino_t ino) {
  if (fuse_req_ctx(req)->uid == 0) return false;
  const auto now = server_of(req).volume().attributes(ino);
  return now.ok() && !S_ISDIR(now->mode) && (now->mode & (S_ISGID | S_IXGRP)) == S_ISGID &&
         !caller_with_groups(req).is_in(now->gid);
}

// Replies to a request for `value` that offered room for `size` bytes; 0 asks for the length.
void reply_xattr(fuse_req_t req, ConstBytes value, std::size_t size) {
  if (size == 0) {
    fuse_reply_xattr(req, value.size());
  } else if (value.size() > size) {
    fuse_reply_err(req, ERANGE);
  } else {
    fuse_reply_buf(req, reinterpret_cast<const char*>(value.data()), value.size());
  }
}

// A view may have bytes of the image's metadata.
void reply_after_metadata(fuse_req_t req, fuse_ino_t ino, std::string_view name, Status status) {
  if (!status.ok() || !name.starts_with(views::kMetadataPrefix)) return reply_status(req, status);
  reply_after_change(server_of(req), ino, [req] { reply_status(req, {}); });
}

// The only attribute of a virtual file or directory: the access list of the image, or of the mirrored directory, for
// the kernel's check of permissions. Readers of an image may enter its views, and its writers make chunks.
Result<ByteVector> view_xattr(Server& server, fuse_ino_t ino, std::string_view name) {
  const auto node = server.nodes().find(ino);
  if (!node || node->spec.kind == NodeKind::kControl || name != volume::kAccessAclName) return Error{Errc::kNoData, ""};
  MDFS_TRY_ASSIGN(ByteVector value, server.volume().get_xattr(node->spec.ino, name));
  if (!is_directory(node->spec.kind) || node->spec.kind == NodeKind::kMirror) return value;
  MDFS_TRY_ASSIGN(volume::Acl acl, volume::parse_acl(value));
  const bool has_chunks = is_chunk_directory(node->spec);
  for (volume::AclEntry& entry : acl) {
    const auto of_image = entry.permissions;
    entry.permissions = (of_image & R_OK) != 0 ? R_OK | X_OK : 0;
    if (has_chunks && (of_image & W_OK) != 0) entry.permissions |= W_OK | X_OK;
  }
  return volume::encode_acl(acl);
}

// What archives keep of an image, so that it comes back as one.
Result<ByteVector> geometry_attribute(volume::Volume& volume, volume::Ino ino) {
  MDFS_TRY_ASSIGN(const volume::ImageInfo info, volume.image_info(ino));
  const std::string text = views::geometry_json({info.geometry, info.size_bytes});
  const ConstBytes bytes = as_bytes(text);
  return ByteVector(bytes.begin(), bytes.end());
}

bool is_image(volume::Volume& volume, volume::Ino ino) {
  const auto attributes = volume.attributes(ino);
  return attributes.ok() && attributes->is_image;
}

Status take_geometry(volume::Volume& volume, volume::Ino ino, std::string_view text, int flags,
                     const engine::Stop& stop) {
  MDFS_TRY_ASSIGN(const Attributes before, volume.attributes(ino));
  if (flags == XATTR_CREATE && before.is_image) return {Errc::kExists, "the file is already an image"};
  if (flags == XATTR_REPLACE && !before.is_image) return {Errc::kNoData, "the file is not an image"};
  MDFS_TRY_ASSIGN(const views::SizedGeometry sized, views::parse_geometry_json(text));
  volume::ImageOptions options;
  options.geometry = sized.geometry;
  MDFS_TRY(volume.become_image(ino, options, stop));
  if (before.is_image || before.size_bytes != 0 || sized.size_bytes == sized.geometry.size_bytes()) return {};
  SetAttributes size;
  size.size_bytes = sized.size_bytes;
  const auto cut = volume.set_attributes(ino, size);
  return cut.ok() ? Status() : Status(cut.error());
}

// A file that has its bytes is stored anew, which may take long.
void set_geometry_attribute(fuse_req_t req, fuse_ino_t ino, std::string text, int flags) {
  Server& server = server_of(req);
  const auto set = [&server, req, ino, text = std::move(text), flags] {
    const Status status = take_geometry(server.volume(), ino, text, flags, stop_of(req));
    if (!status.ok()) {
      spdlog::info("inode {}: {} refused: {}", ino, views::kGeometryAttribute, status.error().message());
      return reply_error(req, status.error());
    }
    reply_to_new_image(server, ino, [req] { fuse_reply_err(req, 0); });
  };
  server.long_queue().post(job_of(req, set));
}

void change_and_reply(fuse_req_t req, fuse_ino_t ino, const SetAttributes& change) {
  Server& server = server_of(req);
  auto changed = server.volume().set_attributes(ino, change);
  // With a size the kernel sends the mode that it thinks is left.
  if (changed.ok() && change.size_bytes && change.mode) {
    const Status dropped = drop_privileges(req, ino);
    changed = dropped.ok() ? server.volume().attributes(ino) : Result<Attributes>(dropped.error());
  }
  if (!changed.ok()) return reply_error(req, changed.error());
  const struct stat now = to_stat(*changed);
  if (!changed->is_image) {
    fuse_reply_attr(req, &now, kAttributeSeconds);
    return;
  }
  reply_after_change(server, ino, [req, now] { fuse_reply_attr(req, &now, kAttributeSeconds); });
}

}  // namespace

void op_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  reply_stat(req, ino, reading(req, [&] { return stat_of(server_of(req), ino); }));
}

void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat* attributes, int which, fuse_file_info* fi) {
  Server& server = server_of(req);
  if (is_virtual(ino))
    return reply_stat(req, ino, set_view_attributes(server, fuse_req_ctx(req)->uid, ino, *attributes, which, fi));
  SetAttributes change = to_change(*attributes, which);
  change.by_outsider = change.is_chown() && is_outsider(req, ino);
  if (!change.size_bytes) return change_and_reply(req, ino, change);
  // What is cut off may take long.
  change.stop = stop_of(req);
  server.long_queue().post(job_of(req, [req, ino, change] {
    if (const Status dropped = drop_privileges(req, ino); !dropped.ok()) return reply_error(req, dropped.error());
    change_and_reply(req, ino, change);
  }));
}

void op_statfs(fuse_req_t req, fuse_ino_t ino) {
  Server& server = server_of(req);
  const store::SpaceInfo space = server.volume().space();
  const std::uint32_t block_size = server.volume().store().block_size();
  struct statvfs vfs {};
  vfs.f_bsize = block_size;
  vfs.f_frsize = block_size;
  vfs.f_blocks = space.total_blocks;
  vfs.f_bfree = space.free_blocks;
  vfs.f_bavail = space.available_blocks;
  if (!is_virtual(ino))
    if (const auto of_inode = server.volume().available_blocks(ino); of_inode.ok()) vfs.f_bavail = *of_inode;
  // An inode takes no place of its own but room in the tree: about as many as there are free blocks.
  vfs.f_files = space.objects + space.free_blocks;
  vfs.f_ffree = space.free_blocks;
  vfs.f_favail = space.available_blocks;
  vfs.f_namemax = 255;
  fuse_reply_statfs(req, &vfs);
}

void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value, std::size_t size, int flags) {
  if (is_virtual(ino)) {
    fuse_reply_err(req, EPERM);
    return;
  }
  auto mode = volume::XattrMode::kSet;
  if (flags == XATTR_CREATE) mode = volume::XattrMode::kCreate;
  if (flags == XATTR_REPLACE) mode = volume::XattrMode::kReplace;
  volume::Volume& volume = server_of(req).volume();
  if (flags == (XATTR_CREATE | XATTR_REPLACE)) {  // is never met
    const auto there = volume.get_xattr(ino, name);
    return reply_error(req, there.ok() ? Error{Errc::kExists, name} : there.error());
  }
  if (flags != 0 && mode == volume::XattrMode::kSet) {
    fuse_reply_err(req, EINVAL);
    return;
  }
  if (name == views::kGeometryAttribute) return set_geometry_attribute(req, ino, {value, size}, flags);
  if (name == geometry::kDisplayAttribute)
    if (const auto range = geometry::parse_display({value, size}); !range.ok()) return reply_error(req, range.error());
  const ConstBytes bytes = as_bytes({value, size});
  if (std::string_view(name) == volume::kAccessAclName && fuse_req_ctx(req)->uid != 0)
    return reply_status(req, volume.set_access_acl(ino, bytes, caller_with_groups(req)));
  reply_after_metadata(req, ino, name, volume.set_xattr(ino, name, bytes, mode));
}

void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size) {
  Server& server = server_of(req);
  const auto read = [&] {
    if (is_virtual(ino)) return view_xattr(server, ino, name);
    if (name == views::kGeometryAttribute && is_image(server.volume(), ino))
      return geometry_attribute(server.volume(), ino);
    return server.volume().get_xattr(ino, name);
  };
  const auto value = reading(req, read);
  if (!value.ok()) return reply_error(req, value.error());
  reply_xattr(req, *value, size);
}

void op_listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t size) {
  std::string joined;
  if (!is_virtual(ino)) {
    const auto names = reading(req, [&] { return server_of(req).volume().list_xattrs(ino); });
    if (!names.ok()) return reply_error(req, names.error());
    const bool is_root = fuse_req_ctx(req)->uid == 0;
    for (const std::string& name : *names) {
      if (name.starts_with("trusted.") && !is_root) continue;  // others cannot read them, nor know of them
      joined.append(name).push_back('\0');
    }
    if (is_image(server_of(req).volume(), ino)) joined.append(views::kGeometryAttribute).push_back('\0');
  }
  reply_xattr(req, as_bytes(joined), size);
}

void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  if (is_virtual(ino)) {
    fuse_reply_err(req, EPERM);
    return;
  }
  if (name == views::kGeometryAttribute && is_image(server_of(req).volume(), ino))
    return reply_error(req, {Errc::kNotPermitted, "the geometry of an image cannot be removed"});
  reply_after_metadata(req, ino, name, server_of(req).volume().remove_xattr(ino, name));
}

}  // namespace mdfs::fuse
