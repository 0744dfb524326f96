// Requests to discard unused blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/fs.h>

#include "fuse/low_level.h"
#include "mdfs/ioctl.h"

namespace mdfs::fuse {

// Each answers its request. `permitted`: the caller is root, or the mount is the caller's.
void trim(fuse_req_t req, bool permitted, const mdfs_ioc_trim& in);
// FITRIM: on the disks one behind another.
void trim_range(fuse_req_t req, bool permitted, const fstrim_range& in);

}  // namespace mdfs::fuse
