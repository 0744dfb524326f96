// Arguments of libfuse, and what it complains about.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/session.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/log.h"

namespace mdfs::fuse {
namespace {

// What libfuse last complained about, in this process.
std::mutex complaint_mutex;  // guards the next
std::string complaint;

void take_complaint(fuse_log_level level, const char* format, va_list arguments) {
  char text[512];
  const int length = vsnprintf(text, sizeof text, format, arguments);
  if (length <= 0) return;
  std::string line(text);
  while (line.ends_with('\n')) line.pop_back();
  if (level <= FUSE_LOG_ERR) spdlog::debug("{}", line);
  const std::lock_guard lock(complaint_mutex);
  complaint = std::move(line);
}

// " (fuse: ...)", or nothing.
std::string last_complaint() {
  const std::lock_guard lock(complaint_mutex);
  return complaint.empty() ? "" : " (" + complaint + ")";
}

}  // namespace

Result<Session> make_session(const SessionOptions& options, const fuse_lowlevel_ops& operations, void* userdata) {
  // A comma in a name would end an option.
  std::string source = options.source;
  for (char& c : source)
    if (c == ',' || c == '\\') c = '_';
  std::string joined = fmt::format("fsname={},subtype=mdfs,default_permissions,max_read={}", source, kMaxTransferBytes);
  for (const std::string& option : options.kernel_options) joined += "," + option;
  joined += options.read_only ? ",ro" : ",rw";
  std::string program = "mdfs";
  std::string dash_o = "-o";
  char* arguments[] = {program.data(), dash_o.data(), joined.data(), nullptr};
  fuse_args args{.argc = 3, .argv = arguments, .allocated = 0};
  fuse_set_log_func(take_complaint);
  Session session(fuse_session_new(&args, &operations, sizeof operations, userdata));
  fuse_opt_free_args(&args);
  if (session == nullptr) return Error{Errc::kInvalidArgument, "mount options '" + joined + "'" + last_complaint()};
  return session;
}

Result<device::UniqueFd> mount_session(const SessionOptions& options, const std::string& mountpoint) {
  const fuse_lowlevel_ops none{};
  MDFS_TRY_ASSIGN(const Session session, make_session(options, none, nullptr));
  if (fuse_session_mount(session.get(), mountpoint.c_str()) != 0)
    return Error{Errc::kIo, "mounting on " + mountpoint + last_complaint()};
  // The session closes its own.
  device::UniqueFd fd(fcntl(fuse_session_fd(session.get()), F_DUPFD_CLOEXEC, 0));
  if (!fd.open()) return from_errno(errno, "FUSE session");
  return fd;
}

}  // namespace mdfs::fuse
