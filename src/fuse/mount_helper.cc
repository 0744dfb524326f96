// The process that mounts and unmounts.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/mount_helper.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <vector>

#include "base/socket_message.h"
#include "base/text.h"
#include "fuse/call_filter.h"
#include "fuse/mountpoint.h"

namespace mdfs::fuse {
namespace {

constexpr int kSocket = 3;  // in the helper
constexpr std::size_t kMaxTextBytes = 1024;

enum Request : unsigned char { kMount = 'm', kMountReadOnly = 'r', kUnmount = 'u' };

// A letter for the code of an error, as in error_table(), and its words; without an error nothing but this.
constexpr char kDoneByte = '.';

std::string to_text(const Status& status) {
  if (status.ok()) return {kDoneByte};
  return static_cast<char>('A' + static_cast<int>(status.error().code)) +
         shortened(status.error().where, kMaxTextBytes);
}

Status to_status(std::string_view text) {
  if (text.empty()) return Error{Errc::kIo, "the mounting process has gone"};
  if (text[0] == kDoneByte) return {};
  return Error{static_cast<Errc>(text[0] - 'A'), std::string(text.substr(1))};
}

// What the helper of root does its work with, once the mount is there.
struct Place {
  std::string name;  // of the mount point, in the working directory

  Status unmount() const {
    if (umount2(name.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH) == 0) return {};
    return from_errno(errno, "unmounting");
  }
};

// Goes where the mount point lies, and gives up what unmounting it by its name there does not need.
Result<Place> confine(const std::string& mountpoint, const Identity& identity) {
  const std::size_t slash = mountpoint.rfind('/');
  const std::string parent = mountpoint.substr(0, slash + 1);
  const Place place{mountpoint.substr(slash + 1)};
  if (chdir(parent.c_str()) != 0) return from_errno(errno, parent);
  MDFS_TRY(become(identity, {CAP_SYS_ADMIN}, Search::kWorkingDirectory));
  MDFS_TRY(filter_helper_calls());
  return place;
}

void leave_terminal(int null) {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (dup2(null, standard) < 0) _exit(1);
}

// Serves in the child; never returns.
[[noreturn]] void serve(int socket, const std::string& mountpoint, SessionOptions options, const Identity& identity) {
  closelog();  // its descriptor goes with the others
  if (dup2(socket, kSocket) < 0) _exit(1);
  close_range(kSocket + 1, ~0u, 0);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) _exit(1);
  prctl(PR_SET_NAME, "mdfs-mounter");
  const bool root = geteuid() == 0;
  Place place;
  for (;;) {
    unsigned char request = 0;
    const ssize_t count = read(kSocket, &request, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1) _exit(0);
    Status status;
    device::UniqueFd fd;
    if (request == kUnmount) {
      status = root ? place.unmount() : unmount_path(mountpoint, Unmount::kLazily);
    } else {
      options.read_only = options.read_only || request == kMountReadOnly;
      // The last daemon may have been on its way out when the mount point was looked at; now that its disks are ours
      // it has ended.
      if (is_dead_mount(mountpoint)) status = unmount_path(mountpoint, Unmount::kLazily);
      if (status.ok()) {
        auto mounted = mount_session(options, mountpoint);
        if (mounted.ok()) {
          fd = std::move(*mounted);
          if (root) allow_read_ahead(mountpoint);
        } else {
          status = mounted.error();
        }
      }
      leave_terminal(null);  // fusermount3 may have had to say something
      if (status.ok() && root) {
        auto confined = confine(mountpoint, identity);
        if (confined.ok()) {
          place = std::move(*confined);
        } else {
          status = confined.error();
          umount2(mountpoint.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH);  // as far as the right to is still there
        }
      }
    }
    const std::string text = to_text(status);
    std::vector<int> descriptors;
    if (fd.open()) descriptors.push_back(fd.get());
    if (!send_message(kSocket, as_bytes(text), descriptors)) _exit(1);
    if (!status.ok() && request != kUnmount) _exit(1);
  }
}

}  // namespace

Result<std::unique_ptr<MountHelper>> MountHelper::start(const std::string& mountpoint, const SessionOptions& options,
                                                        const Identity& identity) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return from_errno(errno, "socketpair");
  const pid_t child = fork();
  if (child < 0) return from_errno(errno, "fork");
  if (child == 0) {
    close(pair[0]);
    serve(pair[1], mountpoint, options, identity);
  }
  close(pair[1]);
  return std::unique_ptr<MountHelper>(new MountHelper(pair[0], child));
}

MountHelper::~MountHelper() {
  shutdown(socket_.get(), SHUT_RDWR);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<device::UniqueFd> MountHelper::mount(bool read_only) {
  const unsigned char request = read_only ? kMountReadOnly : kMount;
  if (send(socket_.get(), &request, 1, MSG_NOSIGNAL) != 1) return to_status({}).error();
  char text[kMaxTextBytes + 1];
  ReceivedMessage received;
  do {
    received = receive_message(socket_.get(), std::as_writable_bytes(std::span(text)), 1);
  } while (received.bytes < 0 && errno == EINTR);
  device::UniqueFd fd;
  if (!received.descriptors.empty()) fd.reset(received.descriptors.front());
  MDFS_TRY(to_status({text, static_cast<std::size_t>(std::max<ssize_t>(received.bytes, 0))}));
  if (!fd.open()) return Error{Errc::kIo, "the mounting process sent no descriptor"};
  return fd;
}

Status MountHelper::unmount_lazily() {
  const unsigned char request = kUnmount;
  char text[kMaxTextBytes + 1];
  if (send(socket_.get(), &request, 1, MSG_NOSIGNAL) != 1) return to_status({});
  const ssize_t count = recv(socket_.get(), text, sizeof text, 0);
  return to_status({text, static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
}

}  // namespace mdfs::fuse
