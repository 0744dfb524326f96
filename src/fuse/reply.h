// Shared by the operations: the caller, attributes for the kernel, and answers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "fuse/handles.h"
#include "fuse/low_level.h"
#include "fuse/server.h"
#include "views/staged_write.h"
#include "volume/volume.h"

namespace mdfs::fuse {

// The kernel makes all changes of names itself, and is notified of all others.
inline constexpr double kEntrySeconds = 3600;
// Short, because write-back changes st_blocks without the kernel's knowledge.
inline constexpr double kAttributeSeconds = 1;
inline constexpr blksize_t kImageBlockBytes = 1 << 20;
inline constexpr blksize_t kFileBlockBytes = 128 << 10;

Server& server_of(fuse_req_t req);
// Without the supplementary groups, which need a read of /proc.
volume::Caller caller_of(fuse_req_t req);
volume::Caller caller_with_groups(fuse_req_t req);
// For a new file of this mode: the caller's groups decide if setgid stays.
volume::Caller creator_of(fuse_req_t req, mode_t mode);

// Call before the caller changes bytes or the size of the file or image: Volume::drop_privileges().
Status drop_privileges(fuse_req_t req, volume::Ino ino);

struct stat to_stat(const volume::Attributes& attributes);
fuse_entry_param to_entry(const volume::Attributes& attributes);

void reply_error(fuse_req_t req, const Error& error);
void reply_status(fuse_req_t req, const Status& status);
// Answers with a new entry, which holds a look-up of the inode; releases it if no caller waits for the answer.
void reply_entry(fuse_req_t req, const Result<volume::Attributes>& attributes);

// The file has become an image: runs `reply` once the kernel has dropped outdated data about the file.
void reply_to_new_image(Server& server, volume::Ino ino, std::function<void()> reply);

// The image or file has changed through its plain file: runs `reply` once the virtual files are current; at once, in
// this thread, if there are none. `reply` answers the request.
void reply_after_change(Server& server, volume::Ino ino, std::function<void()> reply);
// The same after a write past the page cache; also drops pages that were filled with old bytes during the write.
void reply_after_direct_write(Server& server, volume::Ino ino, std::uint64_t offset, std::uint64_t length,
                              std::function<void()> reply);

// Applies staged bytes, invalidates all views of the image, and calls `reply` with the result; on a work queue.
// Bytes that could not be stored stay staged in the handle, which lasts until the reply: of a split write, the
// kernel may have reported the first parts as written. `writer`: from Handle::take_staged().
void apply_and_reply(fuse_req_t req, Handle& handle, std::unique_ptr<views::StagedWrite> writer,
                     std::function<void(const Status&)> reply);

// A change of a window of the image for a request: `change` makes it, and the kernel's caches follow. On the apply
// queue.
Status change_window(fuse_req_t req, volume::Ino image, const geometry::Window& window,
                     const std::function<Status()>& change);

// Calls `done` once the written bytes are on the disks, if the flags (O_DSYNC, O_SYNC) of the description require it;
// else at once. The kernel requests a sync only for writes through its page cache.
void sync_if_asked(Server& server, volume::Ino ino, int flags, std::function<void(const Status&)> done);

}  // namespace mdfs::fuse
