// MDFS_IOC_STREAM and MDFS_IOC_FRAME.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuse/handles.h"
#include "fuse/low_level.h"
#include "fuse/server.h"
#include "mdfs/ioctl.h"

namespace mdfs::fuse {

// All answer the request. `manages`: the caller is root or the owner of the mount.
// MDFS_IOC_STREAM_LIST, and a close with an id: on any file or directory.
bool is_for_any_file(const mdfs_ioc_stream& in);
void any_stream(fuse_req_t req, bool manages, const mdfs_ioc_stream& in);
// The others, on an image.
void own_stream(fuse_req_t req, volume::Ino ino, Handle& handle, bool manages, const mdfs_ioc_stream& in);
void next_frame(fuse_req_t req, Handle& handle, const mdfs_ioc_frame& in);

// The last close of a description.
void end_stream(Server& server, const Handle& handle);

}  // namespace mdfs::fuse
