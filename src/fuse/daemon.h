// The mount daemon: implements `mdfs mount`, mount.mdfs, `mdfs umount` and `mdfs volume sync`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "fuse/mount_options.h"

namespace mdfs::fuse {

// Receives notices that are not errors: "mount point was dead: ...".
using Notice = std::function<void(const std::string& line)>;

// Mounts the volume. In the background, returns when the mount point answers; the daemon is then a process of its own
// with its log in syslog. In the foreground, returns when the file system has been unmounted and everything is on the
// disks. Returns the daemon's error if the mount fails. Call it before creating threads.
Status run_mount(const MountOptions& options, const Notice& notice);

// Unmounts, and returns when the daemon has put everything on the disks and ended; returns its last error. kBusy: files
// are open there, or written data cannot be stored; `by_force` gives such data up, with a notice. A mount point whose
// daemon has died is cleared, with a notice.
Status unmount(const std::string& mountpoint, bool by_force, const Notice& notice);

// Waits for a second at most. kBusy: files are open there (for root; others learn it from unmount()).
Status wait_until_free(const std::string& mountpoint);

// Returns when everything written to the volume mounted there so far is on its disks.
Status sync_mount(const std::string& path);

}  // namespace mdfs::fuse
