// Creating, renaming and removing chunks.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/zarr_writes.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "fuse/handles.h"
#include "fuse/interrupts.h"
#include "fuse/reply.h"
#include "fuse/view_nodes.h"
#include "fuse/zarr_nodes.h"
#include "volume/names.h"

namespace mdfs::fuse {
namespace {

Result<std::shared_ptr<const Node>> directory_of(Server& server, fuse_ino_t parent, const char* name) {
  MDFS_TRY(volume::check_name(name));
  auto node = server.nodes().find(parent);
  if (!node || !is_chunk_directory(node->spec))
    return Error{Errc::kNotPermitted, std::string(name) + ": this virtual directory cannot be changed"};
  return node;
}

volume::Caller checked_caller(fuse_req_t req) {
  const volume::Caller caller = caller_of(req);
  return caller.uid == 0 ? caller : caller_with_groups(req);  // root needs none
}

struct Created {
  std::shared_ptr<const Node> node;  // with a look-up
  std::unique_ptr<Handle> handle;    // of an open image
};

Result<Created> create_staged(Server& server, const Node& directory, const NodeSpec& chunk, const char* name,
                              mode_t mode, int flags, const volume::Caller& caller) {
  MDFS_TRY(server.volume().check_access(chunk.ino, W_OK, caller));
  MDFS_TRY_ASSIGN(auto writer,
                  chunk_writer(server.volume(), chunk.ino, chunk.zarr, server.staging(), caller.uid, true));
  const StagedFiles::Request request{.key = staged_key(directory.spec, name),
                                     .image = chunk.ino,
                                     .chunk = chunk.zarr,
                                     .is_lock = views::is_lock_name(name),
                                     .uid = caller.uid,
                                     .gid = caller.gid,
                                     .mode = mode & ~caller.umask & 0666,
                                     .exclusive = (flags & O_EXCL) != 0};
  MDFS_TRY(server.volume().open_file(chunk.ino, false));
  auto file = server.staged_files().open(request, std::move(writer));
  if (!file.ok()) {
    server.volume().release_file(chunk.ino);
    return std::move(file).error();
  }
  auto node = server.nodes().look_up(staged_spec(*file));
  auto handle = staged_handle(node, *file, flags);
  if ((flags & O_TRUNC) != 0) (void)empty_staged(**file);  // one that was there already
  return Created{std::move(node), std::move(handle)};
}

Result<Created> create_in(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, int flags) {
  Server& server = server_of(req);
  MDFS_TRY_ASSIGN(const auto directory, directory_of(server, parent, name));
  const volume::Caller caller = checked_caller(req);
  if (const auto chunk = chunk_to_stage(server.volume(), *directory, name);
      chunk.ok() || chunk.error().code != Errc::kNotPermitted) {
    if (!chunk.ok()) return chunk.error();
    return create_staged(server, *directory, *chunk, name, mode, flags, caller);
  }
  MDFS_TRY_ASSIGN(NodeSpec chunk, chunk_to_write(server.volume(), *directory, name));
  auto node = server.nodes().look_up(std::move(chunk));
  auto handle = open_view(server, node, flags | O_TRUNC, caller, stop_of(req));
  if (!handle.ok()) {
    server.nodes().forget(node->id, 1);
    return std::move(handle).error();
  }
  return Created{std::move(node), std::move(*handle)};
}

void end(Server& server, const Handle& handle) {
  if (handle.staged) server.staged_files().close(handle.staged);
  server.volume().release_file(handle.ino);
}

bool may_change(fuse_req_t req, const StagedFile& file) {
  const uid_t caller = fuse_req_ctx(req)->uid;
  return caller == 0 || caller == file.uid;
}

// The staged file `from`, if it may become the entry `to` of the same directory.
Result<std::shared_ptr<StagedFile>> staged_for(fuse_req_t req, fuse_ino_t parent, const char* from, const char* to) {
  Server& server = server_of(req);
  MDFS_TRY_ASSIGN(const auto directory, directory_of(server, parent, from));
  MDFS_TRY(volume::check_name(to));
  auto file = server.staged_files().find(staged_key(directory->spec, from));
  MDFS_TRY_ASSIGN(const NodeSpec chunk, chunk_to_write(server.volume(), *directory, to));
  if (!file) return Error{Errc::kNotPermitted, std::string(from) + ": a chunk cannot be renamed"};
  if (chunk.zarr != file->chunk)
    return Error{Errc::kNotPermitted, std::string(from) + ": it becomes the chunk that its name begins with"};
  if (!may_change(req, *file)) return Error{Errc::kNotPermitted, std::string(from) + ": another user's"};
  return file;
}

// On the apply queue. After an error the file is as before.
Status install(fuse_req_t req, StagedFile& file) {
  Server& server = server_of(req);
  std::unique_ptr<views::ChunkWriter> writer;
  {
    const std::lock_guard lock(file.mutex);
    writer = std::move(file.writer);
  }
  if (!writer) return {Errc::kBusy, file.key};
  const Status status = change_window(req, file.image, writer->window(), [&] { return writer->apply(stop_of(req)); });
  if (status.ok()) {
    server.staged_files().remove(file);
    return {};
  }
  const std::lock_guard lock(file.mutex);
  file.writer = std::move(writer);
  return status;
}

}  // namespace

void create_chunk(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info info) {
  Server& server = server_of(req);
  auto created = reading(req, [&] { return create_in(req, parent, name, mode, info.flags); });
  if (!created.ok()) return reply_error(req, created.error());
  Handle& handle = *created->handle;
  const auto attributes = view_attributes(server, *created->node);
  if (!attributes.ok()) {
    end(server, handle);
    server.nodes().forget(created->node->id, 1);
    return reply_error(req, attributes.error());
  }
  handle.direct = true;
  info.direct_io = 1;
  info.noflush = 0;
  const fuse_entry_param entry{.ino = created->node->id,
                               .generation = 0,
                               .attr = *attributes,
                               .attr_timeout = attribute_seconds(*created->node),
                               .entry_timeout = 0};
  const auto node = created->node;
  keep_in(&info, std::move(created->handle));
  if (fuse_reply_create(req, &entry, &info) == 0) return;
  end(server, *take_from(&info));
  server.nodes().forget(node->id, 1);
}

void install_chunk(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
                   unsigned flags) {
  if (new_parent != parent) return reply_error(req, {Errc::kNotPermitted, "a chunk stays in its directory"});
  if (flags != 0) return reply_error(req, {Errc::kInvalidArgument, "rename: flags"});
  const auto file = staged_for(req, parent, name, new_name);
  if (!file.ok()) return reply_error(req, file.error());
  if (TraceRecorder* const trace = server_of(req).trace(); trace != nullptr) {
    const std::lock_guard lock((*file)->mutex);
    if ((*file)->writer)
      trace->window(server_of(req).volume(), (*file)->image, (*file)->writer->window(), true,
                    TraceRecorder::Clock::now(), fuse_req_ctx(req)->pid);
  }
  server_of(req).apply_queue().post([req, file = *file] { reply_status(req, install(req, *file)); });
}

void remove_chunk(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Server& server = server_of(req);
  const auto directory = directory_of(server, parent, name);
  if (!directory.ok()) return reply_error(req, directory.error());
  if (const auto file = server.staged_files().find(staged_key((*directory)->spec, name))) {
    if (!may_change(req, *file)) return reply_error(req, {Errc::kNotPermitted, std::string(name) + ": another user's"});
    server.staged_files().remove(*file);
    return reply_status(req, {});
  }
  const auto chunk = chunk_to_write(server.volume(), **directory, name);
  if (!chunk.ok()) return reply_error(req, chunk.error());
  if (const Status allowed = server.volume().check_access(chunk->ino, W_OK, checked_caller(req)); !allowed.ok())
    return reply_error(req, allowed.error());
  server.apply_queue().post([&server, req, chunk = *chunk] {
    const auto remove = [&]() -> Status {
      MDFS_TRY(check_zarr_node(server.volume(), chunk));
      MDFS_TRY_ASSIGN(const geometry::Geometry geometry, server.volume().image_geometry(chunk.ino));
      const auto window = chunk_window(geometry, chunk.zarr);
      return change_window(req, chunk.ino, *window, [&] {
        return views::remove_chunk(server.volume(), chunk.ino, geometry, views::extent_of(geometry, chunk.zarr),
                                   stop_of(req));
      });
    };
    reply_status(req, remove());
  });
}

}  // namespace mdfs::fuse
