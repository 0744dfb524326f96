// What the operations share: the caller, attributes as the kernel takes them, and answers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "fuse/handles.h"
#include "fuse/low_level.h"
#include "fuse/server.h"
#include "views/window_writer.h"
#include "volume/volume.h"

namespace mdfs::fuse {

// The kernel makes all changes of names itself, and is told of those it does not see.
inline constexpr double kEntrySeconds = 3600;
// Short, since write-back changes st_blocks without the kernel's knowledge.
inline constexpr double kAttributeSeconds = 1;
inline constexpr blksize_t kImageBlockBytes = 1 << 20;
inline constexpr blksize_t kFileBlockBytes = 128 << 10;

Server& server_of(fuse_req_t req);
// Without the supplementary groups, which cost a look into /proc.
volume::Caller caller_of(fuse_req_t req);
volume::Caller caller_with_groups(fuse_req_t req);
// For a new file of this mode: whether setgid stays depends on the caller's groups.
volume::Caller creator_of(fuse_req_t req, mode_t mode);

// Before the caller changes bytes or the size of the file or image: Volume::drop_privileges().
Status drop_privileges(fuse_req_t req, volume::Ino ino);

struct stat to_stat(const volume::Attributes& attributes);
fuse_entry_param to_entry(const volume::Attributes& attributes);

void reply_error(fuse_req_t req, const Error& error);
void reply_status(fuse_req_t req, const Status& status);
// A new entry, holding one look-up of the volume's inode, which goes back if nobody waits for the answer any more.
void reply_entry(fuse_req_t req, const Result<volume::Attributes>& attributes);

// The file has become an image: `reply` runs once the kernel knows nothing of it any more that is no longer so.
void reply_to_new_image(Server& server, volume::Ino ino, std::function<void()> reply);

// The image or file has changed through its plain file: `reply` runs once the virtual files are in step; at once, in
// this thread, where there are none. `reply` answers the request.
void reply_after_change(Server& server, volume::Ino ino, std::function<void()> reply);
// The same after a write past the page cache: pages that were filled with the old bytes meanwhile are dropped, too.
void reply_after_direct_write(Server& server, volume::Ino ino, std::uint64_t offset, std::uint64_t length,
                              std::function<void()> reply);

// Applies what is staged, brings every view of the image in step, then calls `reply` with the outcome; on a work queue.
// What could not be stored stays staged in the handle, which lasts until the reply: of a write that was split, the
// kernel may have reported the first parts as written. `client`: the caller's process, for a trace.
void apply_and_reply(fuse_req_t req, Handle& handle, const geometry::Window& window,
                     std::unique_ptr<views::WindowWriter> writer, std::function<void(const Status&)> reply);

// Calls `done` once what was written is on the disks, if these flags of the description (O_DSYNC, O_SYNC) ask for that;
// else at once. The kernel sees to it for writes through its page cache, but not for others.
void sync_if_asked(Server& server, volume::Ino ino, int flags, std::function<void(const Status&)> done);

}  // namespace mdfs::fuse
