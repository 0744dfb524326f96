// The kernel's side of a mount: arguments, and the mounting itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/unique_fd.h"
#include "fuse/low_level.h"

namespace mdfs::fuse {

// The largest read or write that the kernel sends.
inline constexpr std::size_t kMaxTransferBytes = 1u << 20;

struct SessionOptions {
  std::string source = "mdfs";              // shown by mount(8)
  std::vector<std::string> kernel_options;  // for mount(2) and fusermount3: "noatime", "allow_other", ..
  bool read_only = false;
};

struct EndSession {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};
using Session = std::unique_ptr<fuse_session, EndSession>;

// A session that is not mounted yet.
Result<Session> make_session(const SessionOptions& options, const fuse_lowlevel_ops& operations, void* userdata);

// Mounts; the kernel's requests come from the descriptor.
Result<device::UniqueFd> mount_session(const SessionOptions& options, const std::string& mountpoint);

}  // namespace mdfs::fuse
