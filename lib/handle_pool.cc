// Open descriptions of one image, one for each window call at work.
// SPDX-License-Identifier: Apache-2.0
#include "handle_pool.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace mdfs::client {

Result<std::unique_ptr<HandlePool>> HandlePool::open(const std::string& path, int flags) {
  if (flags != O_RDONLY && flags != O_RDWR) return Error{Errc::kInvalidArgument, "flags: O_RDONLY or O_RDWR"};
  // Without waiting, should it be a fifo; files of a mount do not look at O_NONBLOCK.
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return from_errno(errno, path);
  return std::unique_ptr<HandlePool>(new HandlePool(path, flags, fd));
}

HandlePool::~HandlePool() {
  for (const int fd : idle_) ::close(fd);
  ::close(plain_);
}

bool HandlePool::writable() const { return flags_ == O_RDWR; }

Result<int> HandlePool::open_again(int more_flags) {
  const std::string link = "/proc/self/fd/" + std::to_string(plain_);
  const int fd = ::open(link.c_str(), flags_ | O_CLOEXEC | more_flags);
  if (fd < 0) return from_errno(errno, path_);
  return fd;
}

Result<int> HandlePool::open_for(unsigned long command, void* argument) {
  bool direct = false;
  {
    const std::lock_guard lock(mutex_);
    direct = needs_direct_;
  }
  for (;;) {
    MDFS_TRY_ASSIGN(const int fd, open_again(direct ? O_DIRECT : 0));
    if (::ioctl(fd, command, argument) == 0) {
      const std::lock_guard lock(mutex_);
      needs_direct_ = needs_direct_ || direct;
      return fd;
    }
    const int problem = errno;
    ::close(fd);
    if (problem != EOPNOTSUPP || direct) return from_errno(problem, path_);
    direct = true;
  }
}

Result<int> HandlePool::bind(mdfs_ioc_window& window) {
  int fd = -1;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      fd = idle_.back();
      idle_.pop_back();
    }
  }
  if (fd < 0) return open_for(MDFS_IOC_BIND, &window);
  if (::ioctl(fd, MDFS_IOC_BIND, &window) == 0) return fd;
  const int problem = errno;
  ::close(fd);
  if (problem != EOPNOTSUPP) return from_errno(problem, path_);
  return open_for(MDFS_IOC_BIND, &window);
}

void HandlePool::put(int fd) {
  {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) {
      idle_.push_back(fd);
      return;
    }
  }
  ::close(fd);
}

}  // namespace mdfs::client
