// The unmounting process.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/unmounter.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "fuse/mountpoint.h"

namespace mdfs::fuse {
namespace {

// Serves in the child; never returns.
[[noreturn]] void serve(int socket, const std::string& mountpoint) {
  constexpr int kSocket = 3;
  const int null = open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (dup2(null, standard) < 0) _exit(1);
  if (dup2(socket, kSocket) < 0) _exit(1);
  close_range(kSocket + 1, ~0u, 0);
  prctl(PR_SET_NAME, "mdfs-unmount");
  for (;;) {
    unsigned char request = 0;
    const ssize_t count = read(kSocket, &request, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1) _exit(0);
    const Status status = unmount_path(mountpoint, Unmount::kLazily);
    const int answer = status.ok() ? 0 : status.error().posix_errno();
    if (write(kSocket, &answer, sizeof answer) != sizeof answer) _exit(1);
  }
}

}  // namespace

Result<std::unique_ptr<Unmounter>> Unmounter::start(const std::string& mountpoint) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return from_errno(errno, "socketpair");
  const pid_t child = fork();
  if (child < 0) return from_errno(errno, "fork");
  if (child == 0) {
    close(pair[0]);
    serve(pair[1], mountpoint);
  }
  close(pair[1]);
  return std::unique_ptr<Unmounter>(new Unmounter(pair[0], child));
}

Unmounter::~Unmounter() {
  close(socket_);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status Unmounter::unmount_lazily() {
  const unsigned char request = 'u';
  int answer = 0;
  if (send(socket_, &request, 1, MSG_NOSIGNAL) != 1 ||
      recv(socket_, &answer, sizeof answer, MSG_WAITALL) != sizeof answer)
    return Error{Errc::kIo, "the unmounting process has gone"};
  if (answer != 0) return from_errno(answer, "unmounting");
  return {};
}

}  // namespace mdfs::fuse
