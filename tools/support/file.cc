// Whole reads and writes on a file descriptor that closes itself.
// SPDX-License-Identifier: Apache-2.0
#include "support/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace mdfs::tools {

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(name_, other.name_);
  std::swap(borrowed_, other.borrowed_);
  return *this;
}

File::~File() {
  if (fd_ >= 0 && !borrowed_) ::close(fd_);
}

Result<File> File::open(const std::string& path, int flags, unsigned mode) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return from_errno(errno, path);
  return File(fd, path);
}

File File::standard_input() {
  File file(STDIN_FILENO, "standard input");
  file.borrowed_ = true;
  return file;
}

File File::standard_output() {
  File file(STDOUT_FILENO, "standard output");
  file.borrowed_ = true;
  return file;
}

Result<std::uint64_t> File::size_bytes() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) return from_errno(errno, name_);
  if (S_ISREG(status.st_mode)) return static_cast<std::uint64_t>(status.st_size);
  if (S_ISBLK(status.st_mode)) {
    std::uint64_t bytes = 0;
    if (::ioctl(fd_, BLKGETSIZE64, &bytes) != 0) return from_errno(errno, name_);
    return bytes;
  }
  if (S_ISDIR(status.st_mode)) return Error{Errc::kIsDirectory, name_};
  return Error{Errc::kInvalidArgument, name_ + ": must be a file or a block device"};
}

Result<std::size_t> File::read(MutableBytes into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::read(fd_, into.data() + done, into.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return from_errno(errno, name_);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Status File::read_exactly(MutableBytes into, std::uint64_t behind_bytes) {
  MDFS_TRY_ASSIGN(const std::size_t got, read(into));
  if (got == into.size()) return {};
  return {Errc::kBadData, name_ + ": the file is truncated: " + std::to_string(into.size() - got + behind_bytes) +
                              " more bytes were expected"};
}

Result<std::size_t> File::read_at(std::uint64_t offset, MutableBytes into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return from_errno(errno, name_);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Status File::write(ConstBytes from) {
  std::size_t done = 0;
  while (done < from.size()) {
    const ssize_t put = ::write(fd_, from.data() + done, from.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return from_errno(errno, name_);
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Status File::write_at(std::uint64_t offset, ConstBytes from) {
  std::size_t done = 0;
  while (done < from.size()) {
    const ssize_t put = ::pwrite(fd_, from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return from_errno(errno, name_);
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Status File::close() {
  if (fd_ < 0 || borrowed_) return {};
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 && errno != EINTR) return from_errno(errno, name_);
  return {};
}

std::uint64_t size_of_file(const std::string& path, std::uint64_t otherwise) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return otherwise;
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace mdfs::tools
