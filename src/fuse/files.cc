// Operations on open files: plain, bound to a window, and virtual.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/log.h"
#include "fuse/handles.h"
#include "fuse/interrupts.h"
#include "fuse/operations.h"
#include "fuse/reply.h"
#include "fuse/stream_ioctls.h"
#include "fuse/view_nodes.h"
#include "fuse/zarr_writes.h"

namespace mdfs::fuse {
namespace {

using volume::Attributes;
using volume::Ino;

// One request does not keep a thread for longer than this many bytes take; the caller continues with the rest.
constexpr std::size_t kMaxCopyBytes = 16u << 20;

pid_t caller_pid(fuse_req_t req) { return fuse_req_ctx(req)->pid; }

// ---- opening

Result<std::unique_ptr<Handle>> open_plain(Server& server, Ino ino, int flags, bool truncate) {
  MDFS_TRY(server.volume().open_file(ino, truncate));
  auto handle = std::make_unique<Handle>();
  handle->ino = ino;
  handle->flags = flags;
  handle->seen_failures = server.failed_writes().last();
  return handle;
}

// Ordinary files use the page cache, which the kernel keeps current. Images bypass it, unless the kernel could not map
// them then; a program that binds windows must use O_DIRECT in that case.
void choose_caching(Server& server, Handle& handle, bool is_image, fuse_file_info& fi) {
  handle.direct = (handle.flags & O_DIRECT) != 0 || (is_image && server.maps_direct_files());
  fi.direct_io = handle.direct;
  fi.keep_cache = !handle.direct;
  fi.noflush = 1;
}

// Answers the open of a virtual file; on a work queue if that takes long.
void finish_virtual(fuse_req_t req, std::shared_ptr<const Node> node, fuse_file_info info,
                    const volume::Caller& caller) {
  Server& server = server_of(req);
  const bool is_window = node->spec.kind == NodeKind::kWindow;
  const bool rendered = is_rendered(node->spec);
  const geometry::Window window = node->spec.window.window;
  const bool is_box = node->spec.window.level == 0 && !node->spec.window.cut;  // a trace has no word for others
  if (TraceRecorder* const trace = server.trace(); trace != nullptr && rendered && is_box)
    trace->window(server.volume(), node->spec.ino, window, false, TraceRecorder::Clock::now(), caller_pid(req));
  auto opened = reading(req, [&] { return open_view(server, std::move(node), info.flags, caller, stop_of(req)); });
  if (!opened.ok()) return reply_error(req, opened.error());
  Handle& handle = **opened;
  handle.direct = can_write(info.flags) || server.maps_direct_files() || !handle.view->may_cache();
  info.direct_io = handle.direct;
  info.noflush = !can_write(info.flags);
  const Ino image = handle.ino;
  // Neither a rendered window, which has been read, nor an image's npy is read whole by everyone; a window and a chunk
  // are.
  const std::optional<geometry::Window> chunk = handle.chunk;
  const bool starts = can_read(info.flags) && ((is_window && !rendered) || chunk);
  const geometry::Window read = chunk ? *chunk : window;
  const bool is_decoded = is_window || handle.view->may_cache();
  if (TraceRecorder* const trace = server.trace(); trace != nullptr && starts) {
    handle.traced_window = true;
    trace->window(server.volume(), image, read, false, TraceRecorder::Clock::now(), caller_pid(req));
  }
  keep_in(&info, std::move(*opened));
  if (fuse_reply_open(req, &info) != 0) {
    take_from(&info);
    server.volume().release_file(image);
    return;
  }
  // An error shows when it is read. The frame of a chunk is read alone.
  if (starts && is_decoded) (void)server.volume().start_window(image, read);
}

void open_virtual(fuse_req_t req, fuse_ino_t ino, const fuse_file_info& info) {
  Server& server = server_of(req);
  auto node = server.nodes().find(ino);
  if (!node) {
    fuse_reply_err(req, ENOENT);
    return;
  }
  server.nodes().mark_fresh(ino);
  volume::Caller caller = caller_of(req);
  if (caller.uid != 0) caller = caller_with_groups(req);  // root needs none
  if (!is_rendered(node->spec)) return finish_virtual(req, std::move(node), info, caller);
  server.render_queue().post(
      job_of(req, [req, node = std::move(node), info, caller] { finish_virtual(req, node, info, caller); }));
}

// ---- reading

Result<std::size_t> read_view_bytes(Handle& handle, views::View& view, std::uint64_t offset, MutableBytes into,
                                    const engine::Stop& stop) {
  {
    const std::lock_guard lock(handle.mutex);
    if (handle.writer && (!handle.writer->empty() || !handle.writer->is_complete()))
      return handle.writer->read(offset, into);
  }
  return view.read(offset, into, stop);
}

// What a read asked for, into the trace. A window is one request, at the time of its binding or opening; the pieces in
// which the kernel fetches it are none, but when its first byte is read again so is the window.
void trace_read(fuse_req_t req, fuse_ino_t ino, Handle& handle, const views::ViewFile* view, std::uint64_t offset,
                std::size_t count, TraceRecorder::Clock::time_point when) {
  Server& server = server_of(req);
  TraceRecorder& trace = *server.trace();
  if (view == nullptr) {
    if (!is_virtual(ino)) trace.bytes(server.volume(), ino, offset, count, false, when, caller_pid(req));
    return;
  }
  if (is_virtual(ino) && handle.node->spec.kind != NodeKind::kWindow) {  // the image behind a header
    const std::uint64_t header = view->header.size();
    const std::uint64_t end = offset + count;
    if (end <= header) return;
    const std::uint64_t begin = std::max(offset, header);
    return trace.bytes(server.volume(), handle.ino, begin - header, end - begin, false, when, caller_pid(req));
  }
  if (offset != 0 || count == 0) return;
  {
    const std::lock_guard lock(handle.mutex);
    if (std::exchange(handle.traced_window, false)) return;
  }
  trace.window(server.volume(), handle.ino, view->window, false, when, caller_pid(req));
}

// Reads made for a caller, other than those that fill pages, name the caller's locks.
bool fills_pages(const fuse_file_info* fi) { return fi->lock_owner == 0; }

// Null: the read is of the plain file. Pages of a mapping are those of the plain file, also with a bound window.
std::shared_ptr<views::View> view_to_read(fuse_ino_t ino, const fuse_file_info* fi) {
  Handle& handle = handle_of(fi);
  if (is_virtual(ino)) return handle.view;
  return fills_pages(fi) ? nullptr : handle.current_view();
}

// `view`: as view_to_read().
Result<std::size_t> read_some(Server& server, fuse_ino_t ino, Handle& handle, views::View* view,
                              bool through_page_cache, std::uint64_t offset, MutableBytes into,
                              const engine::Stop& stop) {
  if (is_virtual(ino)) server.nodes().mark_fresh(ino);
  if (view == nullptr) return server.volume().read(ino, offset, into, stop);
  // All open descriptors of the file share its pages, which hold the newest version.
  if (through_page_cache) return view->read_newest(offset, into, stop);
  return read_view_bytes(handle, *view, offset, into, stop);
}

void read_now(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, const fuse_file_info* fi,
              views::View* view) {
  Server& server = server_of(req);
  ReplyBuffer buffer = server.reply_buffer();
  const MutableBytes into = buffer.bytes().first(std::min(size, kMaxTransferBytes));
  const bool through_page_cache = fills_pages(fi);
  if (!is_virtual(ino) && (through_page_cache || !handle_of(fi).direct))
    server.filled_pages().note_fill(ino, !handle_of(fi).fills_pages.exchange(true));
  const auto begun = TraceRecorder::Clock::now();
  const auto count = reading(req, [&] {
    return read_some(server, ino, handle_of(fi), view, through_page_cache, static_cast<std::uint64_t>(offset), into,
                     stop_of(req));
  });
  if (!count.ok()) return reply_error(req, count.error());
  if (server.trace() != nullptr) {
    Handle& handle = handle_of(fi);
    const bool plain = through_page_cache && !is_virtual(ino);
    const auto window = plain ? nullptr : handle.current_window();
    if (window || plain || !handle.current_view())  // samples of levels, and pictures, have no words in a trace
      trace_read(req, ino, handle, window ? window->file().get() : nullptr, static_cast<std::uint64_t>(offset), *count,
                 begun);
  }
  fuse_reply_buf(req, reinterpret_cast<const char*>(into.data()), *count);
}

// ---- writing

// Answers a write of `count` bytes.
std::function<void(const Status&)> written(fuse_req_t req, std::size_t count) {
  return [req, count](const Status& status) {
    if (!status.ok()) return reply_error(req, status.error());
    fuse_reply_write(req, count);
  };
}

// A file that will become a chunk when it is renamed.
void write_staged(fuse_req_t req, StagedFile& file, std::uint64_t offset, ConstBytes from) {
  Server& server = server_of(req);
  const auto write = [&]() -> Result<std::size_t> {
    const std::lock_guard lock(file.mutex);
    if (!file.writer) return Error{Errc::kBusy, file.key + ": it has become a chunk"};
    MDFS_TRY_ASSIGN(const std::size_t count, file.writer->write(offset, from));
    file.size_bytes = file.writer->size_bytes();
    return count;
  };
  auto count = write();
  while (!count.ok() && count.error().code == Errc::kNoSpace && server.staged_files().drop_oldest(file.uid))
    count = write();
  if (!count.ok()) return reply_error(req, count.error());
  fuse_reply_write(req, *count);
}

// Stages bytes of a window; on a bound descriptor the last of them applies it.
void write_window_bytes(fuse_req_t req, fuse_ino_t ino, Handle& handle, std::uint64_t offset, ConstBytes from,
                        const fuse_file_info& info) {
  Server& server = server_of(req);
  std::unique_ptr<views::StagedWrite> full;
  std::size_t count = 0;
  const auto stage = [&]() -> Status {
    const std::lock_guard lock(handle.mutex);
    if (!handle.writer) {
      MDFS_TRY_ASSIGN(handle.writer, new_writer(server, handle, fuse_req_ctx(req)->uid, false));
    }
    MDFS_TRY_ASSIGN(count, handle.writer->write(offset, from));
    handle.note_stager(info.lock_owner);
    handle.refused = false;
    if (!is_virtual(ino) && handle.writer->is_full()) full = handle.take_staged();
    return {};
  };
  if (const Status status = stage(); !status.ok()) return reply_error(req, status.error());
  if (!full) {
    fuse_reply_write(req, count);
    return;
  }
  apply_and_reply(req, handle, std::move(full),
                  [&server, req, count, image = handle.ino, flags = info.flags](const Status& status) {
                    if (!status.ok()) return reply_error(req, status.error());
                    sync_if_asked(server, image, flags, written(req, count));
                  });
}

// A close or fsync of a virtual file: what is whole takes effect, a part is refused and kept. `closer`: the lock owner
// of a close; if it has staged nothing, this is the copy of a descriptor in another process, and the window is left to
// those who write it. A close returns after an application that is under way. `done` answers, which may end the handle:
// its lock is not held then.
void flush_view(fuse_req_t req, Handle& handle, std::optional<std::uint64_t> closer,
                std::function<void(const Status&)> done) {
  std::unique_ptr<views::StagedWrite> writer;
  bool waits = false;
  const auto take = [&]() -> Status {
    const std::lock_guard lock(handle.mutex);
    if (closer && !handle.has_staged(*closer)) return {};
    if (handle.applying > 0) {
      waits = true;
      handle.waiting.emplace_back([req, &handle, closer, done](const Status& applied) {
        if (!applied.ok()) return done(applied);
        flush_view(req, handle, closer, done);  // more may have been staged meanwhile
      });
      return {};
    }
    if (!handle.writer || handle.writer->empty() || !handle.written_window()) return {};
    handle.refused = true;
    if (handle.writer->overran()) return Error{Errc::kInvalidArgument, "more was written than the window holds"};
    if (!handle.writer->is_complete())
      return Error{Errc::kInvalidArgument, "only a part of the window has been written"};
    writer = handle.take_staged();
    return {};
  };
  const Status taken = take();
  if (waits) return;
  if (!taken.ok() || !writer) return done(taken);
  apply_and_reply(req, handle, std::move(writer), std::move(done));
}

// Ends a handle with staged bytes. The error of writing them has not been reported to any caller.
void apply_at_release(fuse_req_t req, std::unique_ptr<Handle> last) {
  Handle& handle = *last;
  const std::shared_ptr<Handle> held = std::move(last);
  flush_view(req, handle, std::nullopt, [req, held](const Status& status) {
    if (!status.ok()) spdlog::warn("inode {}: a window write is given up: {}", held->ino, status.error().message());
    server_of(req).volume().release_file(held->ino);
    fuse_reply_err(req, 0);
  });
}

}  // namespace

void op_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* fi) {
  Server& server = server_of(req);
  if (is_virtual(parent)) return create_chunk(req, parent, name, mode, *fi);
  if (const Status status = check_new_name(parent, name); !status.ok()) return reply_error(req, status.error());
  const auto made = server.volume().make_node(parent, name, S_IFREG | (mode & 07777), 0, creator_of(req, mode));
  if (!made.ok()) return reply_error(req, made.error());
  auto opened = open_plain(server, made->ino, fi->flags, false);
  if (!opened.ok()) {
    server.volume().forget(made->ino, 1);
    return reply_error(req, opened.error());
  }
  choose_caching(server, **opened, false, *fi);
  keep_in(fi, std::move(*opened));
  const fuse_entry_param entry = to_entry(*made);
  if (fuse_reply_create(req, &entry, fi) != 0) {
    take_from(fi);
    server.volume().release_file(made->ino);
    server.volume().forget(made->ino, 1);
  }
}

void op_open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  if (is_virtual(ino)) return open_virtual(req, ino, *fi);
  Server& server = server_of(req);
  const bool truncate = (fi->flags & O_TRUNC) != 0;
  if (truncate)
    if (const Status dropped = drop_privileges(req, ino); !dropped.ok()) return reply_error(req, dropped.error());
  const auto open = [&] { return open_plain(server, ino, fi->flags, truncate); };
  auto opened = truncate ? open() : reading(req, open);
  if (!opened.ok()) return reply_error(req, opened.error());
  const auto attributes = reading(req, [&] { return server.volume().attributes(ino); });
  if (!attributes.ok()) {
    server.volume().release_file(ino);
    return reply_error(req, attributes.error());
  }
  choose_caching(server, **opened, attributes->is_image, *fi);
  keep_in(fi, std::move(*opened));
  const auto reply = [req, &server, ino, info = *fi] {
    if (Server::reply_open(req, info, info.direct_io != 0) == 0) return;
    take_from(&info);
    server.volume().release_file(ino);
  };
  if (truncate && attributes->is_image) return reply_after_change(server, ino, reply);
  reply();
}

void op_read(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info* fi) {
  const auto view = view_to_read(ino, fi);
  if (!view || !view->may_compute(static_cast<std::uint64_t>(offset), size))
    return read_now(req, ino, size, offset, fi, view.get());
  server_of(req).render_queue().post(
      job_of(req, [req, ino, size, offset, info = *fi, view] { read_now(req, ino, size, offset, &info, view.get()); }));
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char* bytes, std::size_t size, off_t offset, fuse_file_info* fi) {
  Server& server = server_of(req);
  Handle& handle = handle_of(fi);
  const ConstBytes from = as_bytes({bytes, size});
  const auto at = static_cast<std::uint64_t>(offset);
  if (is_virtual(ino)) {
    if (fi->writepage) return reply_error(req, {Errc::kNotSupported, "a window cannot be written through a mapping"});
    if (handle.staged) return write_staged(req, *handle.staged, at, from);
    return write_window_bytes(req, ino, handle, at, from, *fi);
  }
  // Pages of a mapping are those of the plain file, also with a bound window.
  if (!fi->writepage && handle.current_view()) return write_window_bytes(req, ino, handle, at, from, *fi);
  const bool direct = handle.direct || (fi->flags & O_DIRECT) != 0;
  if (!direct || fi->writepage) server.filled_pages().note_fill(ino, !handle.fills_pages.exchange(true));
  const bool append = !fi->writepage && (fi->flags & O_APPEND) != 0;
  const auto note_failure = [&](Errc code) {
    if (!direct && !fi->writepage) server.failed_writes().note(ino, code);
  };
  const auto fail = [&](const Error& error) {
    note_failure(error.code);
    reply_error(req, error);
  };
  // Stores through a mapping leave set-uid, as on ext4.
  if (!fi->writepage)
    if (const Status dropped = drop_privileges(req, ino); !dropped.ok()) return fail(dropped.error());
  const auto begun = TraceRecorder::Clock::now();
  const auto count = server.volume().write(ino, at, from, append, stop_of(req));
  if (!count.ok()) return fail(count.error());
  if (*count < size) {
    // The kernel makes EIO of a part of an asynchronous direct write. ext4 and XFS write a part, too, and say ENOSPC.
    if ((fi->flags & O_DIRECT) != 0)
      return reply_after_direct_write(server, ino, at, *count, [req] {
        reply_error(req, {Errc::kNoSpace, "the volume has room for a part of a direct write"});
      });
    note_failure(Errc::kNoSpace);
  }
  if (server.trace() != nullptr) server.trace()->bytes(server.volume(), ino, at, *count, true, begun, caller_pid(req));
  if (fi->writepage) {
    // The kernel takes any count as a success of the write-back, and forgets the pages: a part is an error.
    if (*count == size)
      fuse_reply_write(req, size);
    else
      reply_error(req, {Errc::kNoSpace, "the volume has room for a part of the pages of a mapping"});
    // The kernel may be waiting for this very page to tell views of it: they are told afterwards.
    return reply_after_change(server, ino, [] {});
  }
  const auto reply = [&server, req, ino, flags = direct ? fi->flags : 0, n = *count] {
    sync_if_asked(server, ino, flags, written(req, n));
  };
  if (direct) return reply_after_direct_write(server, ino, at, *count, reply);
  reply_after_change(server, ino, reply);
}

void op_flush(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  if (!is_virtual(ino)) {
    fuse_reply_err(req, 0);
    return;
  }
  Handle& handle = handle_of(fi);
  Server& server = server_of(req);
  flush_view(req, handle, fi->lock_owner,
             [&server, req, image = handle.ino, flags = handle.flags](const Status& status) {
               if (!status.ok()) return reply_error(req, status.error());
               sync_if_asked(server, image, flags, [req](const Status& synced) { reply_status(req, synced); });
             });
}

void op_release(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  std::unique_ptr<Handle> handle = take_from(fi);
  Server& server = server_of(req);
  if (handle->staged) server.staged_files().close(handle->staged);
  if (handle->fills_pages) server.filled_pages().note_closed(handle->ino);
  // Bytes of a writer that has had no close of its own: the kernel's NFS server, or a file registered with io_uring.
  if (is_virtual(ino) && handle->writer && !handle->writer->empty() && !handle->refused)
    return apply_at_release(req, std::move(handle));
  if (server.channels() != nullptr) server.channels()->close(handle.get());
  end_stream(server, *handle);
  server.volume().release_file(handle->ino);
  fuse_reply_err(req, 0);
}

void op_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, fuse_file_info* fi) {
  Server& server = server_of(req);
  const Ino file = handle_of(fi).ino;
  const auto sync = [&server, req, file, data_only](const Status& status) {
    if (!status.ok()) return reply_error(req, status.error());
    server.sync_queue().post(
        [&server, req, file, data_only] { reply_status(req, server.volume().fsync(file, data_only != 0)); });
  };
  if (is_virtual(ino)) return flush_view(req, handle_of(fi), std::nullopt, sync);
  // A shared mapping that can be written needs a descriptor for reading and writing.
  Handle& handle = handle_of(fi);
  if ((handle.flags & O_ACCMODE) == O_RDWR)
    if (const auto code = server.failed_writes().take(file, handle.seen_failures))
      return reply_error(req, {*code, "a write to the file has failed since the last fsync of this descriptor"});
  sync({});
}

void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, fuse_file_info* fi) {
  Server& server = server_of(req);
  if (is_virtual(ino)) {
    fuse_reply_err(req, EOPNOTSUPP);
    return;
  }
  const auto allocate = [&server, req, ino, mode, offset, length, flags = handle_of(fi).flags] {
    Status status = drop_privileges(req, ino);
    if (status.ok())
      status = server.volume().allocate(ino, mode, static_cast<std::uint64_t>(offset),
                                        static_cast<std::uint64_t>(length), stop_of(req));
    if (!status.ok()) return reply_error(req, status.error());
    reply_after_change(server, ino, [&server, req, ino, flags] {
      sync_if_asked(server, ino, flags, [req](const Status& synced) { reply_status(req, synced); });
    });
  };
  // Holes in what is stored may take long.
  if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0) return server.long_queue().post(job_of(req, allocate));
  allocate();
}

void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* fi) {
  Server& server = server_of(req);
  if (is_virtual(ino)) {  // no holes
    const Handle& handle = handle_of(fi);
    const std::uint64_t size = handle.view->size_bytes();
    if (static_cast<std::uint64_t>(offset) >= size) {
      fuse_reply_err(req, ENXIO);
    } else {
      fuse_reply_lseek(req, whence == SEEK_DATA ? offset : static_cast<off_t>(size));
    }
    return;
  }
  const auto found =
      reading(req, [&] { return server.volume().seek(ino, static_cast<std::uint64_t>(offset), whence); });
  if (!found.ok()) return reply_error(req, found.error());
  fuse_reply_lseek(req, static_cast<off_t>(*found));
}

void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_offset, fuse_file_info* from_fi, fuse_ino_t to,
                        off_t to_offset, fuse_file_info* to_fi, std::size_t length, int flags) {
  Server& server = server_of(req);
  const bool plain = !is_virtual(from) && !is_virtual(to) && !handle_of(from_fi).current_view() &&
                     !handle_of(to_fi).current_view() && flags == 0;
  if (!plain) {
    fuse_reply_err(req, EXDEV);  // the kernel then copies by reading and writing
    return;
  }
  if (const Status dropped = drop_privileges(req, to); !dropped.ok()) return reply_error(req, dropped.error());
  const auto begun = TraceRecorder::Clock::now();
  const auto count =
      server.volume().copy_range(from, static_cast<std::uint64_t>(from_offset), to,
                                 static_cast<std::uint64_t>(to_offset), std::min(length, kMaxCopyBytes), stop_of(req));
  if (!count.ok()) return reply_error(req, count.error());
  if (TraceRecorder* const trace = server.trace(); trace != nullptr) {
    trace->bytes(server.volume(), from, static_cast<std::uint64_t>(from_offset), *count, false, begun, caller_pid(req));
    trace->bytes(server.volume(), to, static_cast<std::uint64_t>(to_offset), *count, true, begun, caller_pid(req));
  }
  reply_after_change(server, to, [&server, req, to, flags = handle_of(to_fi).flags, n = *count] {
    sync_if_asked(server, to, flags, written(req, n));
  });
}

}  // namespace mdfs::fuse
