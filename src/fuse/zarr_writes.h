// The calls of clients that write a chunk of ome.zarr/: they create, rename and remove the chunk or a file beside it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "fuse/low_level.h"

namespace mdfs::fuse {

// Each answers its request exactly once. The parents are virtual.
void create_chunk(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info info);
void install_chunk(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
                   unsigned flags);
void remove_chunk(fuse_req_t req, fuse_ino_t parent, const char* name);

}  // namespace mdfs::fuse
