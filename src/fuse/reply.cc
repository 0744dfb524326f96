// Answers.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/reply.h"

#include <fcntl.h>

#include <utility>

#include "base/checked.h"
#include "base/environment.h"
#include "base/log.h"
#include "fuse/interrupts.h"

namespace mdfs::fuse {
namespace {

timespec to_timespec(std::int64_t ns) {
  std::int64_t seconds = ns / kNsPerSecond;
  std::int64_t rest = ns % kNsPerSecond;
  if (rest < 0) {
    --seconds;
    rest += kNsPerSecond;
  }
  return {.tv_sec = seconds, .tv_nsec = rest};
}

}  // namespace

Server& server_of(fuse_req_t req) { return *static_cast<Server*>(fuse_req_userdata(req)); }

volume::Caller caller_of(fuse_req_t req) {
  const fuse_ctx* const context = fuse_req_ctx(req);
  return {.uid = context->uid, .gid = context->gid, .umask = context->umask, .groups = {}};
}

volume::Caller caller_with_groups(fuse_req_t req) {
  volume::Caller caller = caller_of(req);
  caller.groups.resize(64);
  int count = fuse_req_getgroups(req, static_cast<int>(caller.groups.size()), caller.groups.data());
  if (count > static_cast<int>(caller.groups.size())) {
    caller.groups.resize(static_cast<std::size_t>(count));
    count = std::min(count, fuse_req_getgroups(req, count, caller.groups.data()));
  }
  caller.groups.resize(static_cast<std::size_t>(std::max(count, 0)));  // a caller that has gone has no groups
  return caller;
}

volume::Caller creator_of(fuse_req_t req, mode_t mode) {
  constexpr mode_t kGroup = S_ISGID | S_IXGRP;
  return (mode & kGroup) == kGroup ? caller_with_groups(req) : caller_of(req);
}

Status drop_privileges(fuse_req_t req, volume::Ino ino) {
  return server_of(req).volume().drop_privileges(ino, [req] { return caller_with_groups(req); });
}

struct stat to_stat(const volume::Attributes& attributes) {
  struct stat st {};
  st.st_ino = attributes.ino;
  st.st_mode = attributes.mode;
  st.st_nlink = attributes.links;
  st.st_uid = attributes.uid;
  st.st_gid = attributes.gid;
  st.st_rdev = attributes.device;
  st.st_size = static_cast<off_t>(attributes.size_bytes);
  st.st_blocks = static_cast<blkcnt_t>(ceil_div(attributes.stored_bytes, 512));
  st.st_blksize = attributes.is_image ? kImageBlockBytes : kFileBlockBytes;
  st.st_atim = to_timespec(attributes.atime_ns);
  st.st_mtim = to_timespec(attributes.mtime_ns);
  st.st_ctim = to_timespec(attributes.ctime_ns);
  return st;
}

fuse_entry_param to_entry(const volume::Attributes& attributes) {
  fuse_entry_param entry{};
  entry.ino = attributes.ino;
  entry.attr = to_stat(attributes);
  entry.attr_timeout = kAttributeSeconds;
  entry.entry_timeout = kEntrySeconds;
  return entry;
}

void reply_error(fuse_req_t req, const Error& error) {
  const int number = error.posix_errno();
  if (number == EIO) {
    spdlog::error("{}", error.message());
  } else {
    SPDLOG_DEBUG("{}", error.message());
  }
  fuse_reply_err(req, number);
}

void reply_status(fuse_req_t req, const Status& status) {
  if (status.ok()) {
    fuse_reply_err(req, 0);
  } else {
    reply_error(req, status.error());
  }
}

void reply_entry(fuse_req_t req, const Result<volume::Attributes>& attributes) {
  if (!attributes.ok()) return reply_error(req, attributes.error());
  const fuse_entry_param entry = to_entry(*attributes);
  Server& server = server_of(req);
  if (fuse_reply_entry(req, &entry) != 0) server.volume().forget(attributes->ino, 1);
}

void reply_to_new_image(Server& server, volume::Ino ino, std::function<void()> reply) {
  if (server.trace() != nullptr) server.trace()->forget(ino);
  server.notified_replies().post([&server, ino] { server.coherence().drop_attributes(ino); }, std::move(reply));
}

void reply_after_change(Server& server, volume::Ino ino, std::function<void()> reply) {
  if (!server.coherence().has_views(ino)) return reply();
  server.notified_replies().post([&server, ino] { server.coherence().drop_views(ino); }, std::move(reply));
}

void reply_after_direct_write(Server& server, volume::Ino ino, std::uint64_t offset, std::uint64_t length,
                              std::function<void()> reply) {
  const FilledPages::Drop drop = server.filled_pages().begin_drop(ino);
  if (drop == FilledPages::Drop::kNothing) return reply_after_change(server, ino, std::move(reply));
  const PlainRange range = drop == FilledPages::Drop::kAll ? PlainRange{0, 0} : PlainRange{offset, length};
  const auto notify = [&server, ino, range] {
    server.coherence().drop_plain(ino, range);
    server.filled_pages().dropped(ino);
    server.coherence().drop_views(ino);
  };
  server.notified_replies().post(notify, std::move(reply));
}

Status change_window(fuse_req_t req, volume::Ino image, const geometry::Window& window,
                     const std::function<Status()>& change) {
  Server& server = server_of(req);
  MDFS_TRY_ASSIGN(const volume::ImageInfo info, server.volume().image_info(image));
  MDFS_TRY(geometry::check(info.geometry, window));
  MDFS_TRY(drop_privileges(req, image));
  // First what has been stored through mappings: written back later, it would undo the window. What the kernel holds
  // afterwards is dropped by the volume's change listener, in this thread.
  server.coherence().drop_plain(image, plain_range(info.geometry, window));
  return change();
}

void apply_and_reply(fuse_req_t req, Handle& handle, std::unique_ptr<views::StagedWrite> writer,
                     std::function<void(const Status&)> reply) {
  Server& server = server_of(req);
  const volume::Ino image = handle.ino;
  if (TraceRecorder* const trace = server.trace(); trace != nullptr)
    trace->window(server.volume(), image, writer->window(), true, TraceRecorder::Clock::now(), fuse_req_ctx(req)->pid);
  // std::function wants a copyable job.
  auto held = std::make_shared<std::unique_ptr<views::StagedWrite>>(std::move(writer));
  server.apply_queue().post([req, &handle, image, held, reply = std::move(reply)] {
    const geometry::Window window = (*held)->window();
    const Status status = change_window(req, image, window, [&] { return (*held)->apply(stop_of(req)); });
    if (const auto reader = handle.current_window(); status.ok() && reader) reader->restart();
    std::vector<std::function<void(const Status&)>> waiting;
    {
      const std::lock_guard lock(handle.mutex);
      const bool keep = !status.ok() && status.error().code != Errc::kInvalidArgument;
      if (keep && !handle.writer && handle.written_window() == window) handle.writer = std::move(*held);
      handle.refused = !status.ok();
      if (status.ok() && !handle.writer) handle.stagers.clear();
      if (--handle.applying == 0) waiting.swap(handle.waiting);
    }
    held->reset();  // its memory may serve the next one before the caller is told
    reply(status);
    for (const auto& wake : waiting) wake(status);  // each is an unanswered request of the handle, which lasts
  });
}

void sync_if_asked(Server& server, volume::Ino ino, int flags, std::function<void(const Status&)> done) {
  if ((flags & O_DSYNC) == 0) return done({});
  const bool data_only = (flags & O_SYNC) != O_SYNC;
  server.sync_queue().post(
      [&server, ino, data_only, done = std::move(done)] { done(server.volume().fsync(ino, data_only)); });
}

}  // namespace mdfs::fuse
