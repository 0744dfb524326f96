// Operations on names.
// SPDX-License-Identifier: Apache-2.0
#include "volume/names.h"

#include <string>
#include <string_view>

#include "base/log.h"
#include "fuse/interrupts.h"
#include "fuse/operations.h"
#include "fuse/reply.h"
#include "fuse/view_nodes.h"
#include "fuse/zarr_writes.h"

namespace mdfs::fuse {
namespace {

using volume::Attributes;

Status check_old_name(fuse_ino_t parent, const char* name) {
  MDFS_TRY(volume::check_name(name));
  if (is_virtual(parent) || is_view_name(parent, name))
    return Error{Errc::kNotPermitted, "virtual names cannot be changed"};
  return {};
}

void reply_no_such_entry(fuse_req_t req, bool may_cache) {
  if (!may_cache) {
    fuse_reply_err(req, ENOENT);
    return;
  }
  fuse_entry_param entry{};  // inode 0: there is no such name, and the kernel may remember that
  entry.entry_timeout = kEntrySeconds;
  fuse_reply_entry(req, &entry);
}

void lookup_view(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Server& server = server_of(req);
  const auto node = reading(req, [&] { return look_up_view(server, parent, name); });
  if (!node.ok()) return reply_error(req, node.error());
  const auto attributes = reading(req, [&] { return view_attributes(server, **node); });
  if (!attributes.ok()) {
    server.nodes().forget((*node)->id, 1);
    return reply_error(req, attributes.error());
  }
  fuse_entry_param entry{};
  entry.ino = (*node)->id;
  entry.attr = *attributes;
  entry.attr_timeout = attribute_seconds(**node);
  entry.entry_timeout = may_cache_name(server, **node, parent, name) ? kEntrySeconds : 0;
  if (fuse_reply_entry(req, &entry) != 0) server.nodes().forget(entry.ino, 1);
  if (server.coherence().wants_trim()) server.notify_queue().post([&server] { server.coherence().trim_nodes(); });
}

// Look-up by number, for programs that have kept a handle.
void lookup_same(fuse_req_t req, fuse_ino_t ino) {
  Server& server = server_of(req);
  const auto known = server.nodes().find(ino);
  if (!known) return reply_error(req, {Errc::kNotFound, "a virtual file"});
  const auto node = server.nodes().look_up(known->spec);
  const auto attributes = view_attributes(server, *node);
  if (!attributes.ok() || node->id != ino) {
    server.nodes().forget(node->id, 1);
    return reply_error(req, attributes.ok() ? Error{Errc::kNotFound, "a virtual file"} : attributes.error());
  }
  fuse_entry_param entry{};
  entry.ino = ino;
  entry.attr = *attributes;
  entry.attr_timeout = attribute_seconds(*node);
  if (fuse_reply_entry(req, &entry) != 0) server.nodes().forget(ino, 1);
}

void forget_one(Server& server, fuse_ino_t ino, std::uint64_t lookups) {
  if (is_virtual(ino)) {
    server.nodes().forget(ino, lookups);
  } else {
    server.filled_pages().forget(ino);
    server.failed_writes().forget(ino);
    server.volume().forget(ino, lookups);
  }
}

}  // namespace

Status check_new_name(fuse_ino_t parent, const char* name) {
  MDFS_TRY(volume::check_name(name));
  if (is_virtual(parent)) return Error{Errc::kNotPermitted, "virtual directories cannot be changed"};
  if (!volume::is_reserved_name(parent, name)) return {};
  // The caller sees no more than a number.
  spdlog::info("{}: refused: names ending in @, and /.mdfs, are reserved for views of images", name);
  return Error{Errc::kInvalidArgument, std::string(name) + ": names ending in @, and /.mdfs, are reserved"};
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (const Status status = volume::check_name(name); !status.ok()) return reply_error(req, status.error());
  if (std::string_view(name) == "." && is_virtual(parent)) return lookup_same(req, parent);
  if (is_virtual(parent) || is_view_name(parent, name)) return lookup_view(req, parent, name);
  const auto attributes = reading(req, [&] { return server_of(req).volume().lookup(parent, name); });
  if (!attributes.ok() && attributes.error().code == Errc::kNotFound) return reply_no_such_entry(req, true);
  reply_entry(req, attributes);
}

void op_forget(fuse_req_t req, fuse_ino_t ino, std::uint64_t lookups) {
  forget_one(server_of(req), ino, lookups);
  fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, std::size_t count, fuse_forget_data* forgets) {
  for (std::size_t i = 0; i < count; ++i) forget_one(server_of(req), forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(req);
}

void op_readlink(fuse_req_t req, fuse_ino_t ino) {
  Server& server = server_of(req);
  const auto target =
      reading(req, [&] { return is_virtual(ino) ? view_link(server, ino) : server.volume().read_symlink(ino); });
  if (!target.ok()) return reply_error(req, target.error());
  fuse_reply_readlink(req, target->c_str());
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  if (const Status status = check_new_name(parent, name); !status.ok()) return reply_error(req, status.error());
  reply_entry(req, server_of(req).volume().make_node(parent, name, mode, device, creator_of(req, mode)));
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  if (const Status status = check_new_name(parent, name); !status.ok()) return reply_error(req, status.error());
  reply_entry(req, server_of(req).volume().make_directory(parent, name, mode, caller_of(req)));
}

void op_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  if (const Status status = check_new_name(parent, name); !status.ok()) return reply_error(req, status.error());
  reply_entry(req, server_of(req).volume().make_symlink(parent, name, target, caller_of(req)));
}

void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char* new_name) {
  Status status = check_new_name(new_parent, new_name);
  if (status.ok() && is_virtual(ino)) status = Error{Errc::kNotPermitted, "a virtual file cannot have a second name"};
  if (!status.ok()) return reply_error(req, status.error());
  reply_entry(req, server_of(req).volume().link(ino, new_parent, new_name));
}

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (is_virtual(parent)) return remove_chunk(req, parent, name);
  if (const Status status = check_old_name(parent, name); !status.ok()) return reply_error(req, status.error());
  reply_status(req, server_of(req).volume().unlink(parent, name));
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (const Status status = check_old_name(parent, name); !status.ok()) return reply_error(req, status.error());
  reply_status(req, server_of(req).volume().remove_directory(parent, name));
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
               unsigned flags) {
  if (is_virtual(parent)) return install_chunk(req, parent, name, new_parent, new_name, flags);
  Status status = check_old_name(parent, name);
  if (status.ok()) status = check_new_name(new_parent, new_name);
  // mv(1) words EINVAL as a move of a directory into itself.
  if (!status.ok() && status.error().code == Errc::kInvalidArgument)
    status = Error{Errc::kNotPermitted, status.error().where};
  auto mode = volume::RenameMode::kReplace;
  if (flags == RENAME_NOREPLACE) {
    mode = volume::RenameMode::kNoReplace;
  } else if (flags == RENAME_EXCHANGE) {
    mode = volume::RenameMode::kExchange;
  } else if (flags != 0 && status.ok()) {
    status = Error{Errc::kInvalidArgument, "rename: flags"};
  }
  if (!status.ok()) return reply_error(req, status.error());
  reply_status(req, server_of(req).volume().rename(parent, name, new_parent, new_name, mode));
}

}  // namespace mdfs::fuse
