// Opens, locks and creates disks.
// SPDX-License-Identifier: Apache-2.0
#include "device/open.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>
#include <utility>

#include "base/checked.h"
#include "base/log.h"
#include "device/backing.h"
#include "device/unique_fd.h"
#include "device/uring_disk.h"

namespace mdfs::device {
namespace {

Error open_error(const std::string& path, int posix_errno) {
  if (posix_errno == EBUSY) return {Errc::kBusy, path + " is mounted or in use by another program"};
  return from_errno(posix_errno, path);
}

Status check_kind(const std::string& path, const struct stat& st) {
  if (S_ISBLK(st.st_mode) || S_ISREG(st.st_mode)) return {};
  if (S_ISDIR(st.st_mode)) return {Errc::kInvalidArgument, path + " is a directory, not a disk"};
  return {Errc::kInvalidArgument, path + " is neither a block device nor a regular file"};
}

// An open-file-description lock on the whole file: it conflicts with any other opening, in this process too.
Status lock_file(const std::string& path, int fd, OpenMode mode) {
  struct flock lock {};
  lock.l_type = mode == OpenMode::kReadWrite ? F_WRLCK : F_RDLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return {};
  if (errno == EAGAIN || errno == EACCES) {
    return {Errc::kBusy, path + " is in use: another program holds its lock"};
  }
  return from_errno(errno, path + ": cannot lock");
}

Result<UniqueFd> open_descriptor(const std::string& path, const struct stat& st, OpenMode mode, bool& direct) {
  int flags = O_CLOEXEC | (mode == OpenMode::kReadWrite ? O_RDWR : O_RDONLY);
  if (S_ISBLK(st.st_mode) && mode != OpenMode::kLook) flags |= O_EXCL;
  direct = true;
  UniqueFd fd(::open(path.c_str(), flags | O_DIRECT));
  if (!fd.open() && errno == EINVAL) {
    direct = false;
    spdlog::warn("{}: its filesystem refuses O_DIRECT; reading and writing through the page cache", path);
    fd.reset(::open(path.c_str(), flags));
  }
  if (!fd.open()) return open_error(path, errno);
  return fd;
}

Status sync_directory_of(const std::string& path) {
  auto parent = std::filesystem::path(path).parent_path();
  if (parent.empty()) parent = ".";
  UniqueFd fd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open() || ::fsync(fd.get()) != 0) return from_errno(errno, parent.string());
  return {};
}

Status allocate(const std::string& path, int fd, std::uint64_t size_bytes, bool sparse) {
  const auto size = static_cast<off_t>(size_bytes);
  // posix_fallocate returns the error and writes zeros where the filesystem cannot allocate.
  const int error = !sparse ? ::posix_fallocate(fd, 0, size) : ::ftruncate(fd, size) != 0 ? errno : 0;
  if (error == EFBIG)
    return {Errc::kTooBig, fmt::format("{}: {} bytes exceed the largest file there", path, size_bytes)};
  if (error == ENOSPC) return {Errc::kTooBig, fmt::format("{}: no space for {} bytes", path, size_bytes)};
  if (error != 0) return from_errno(error, path);
  return {};
}

}  // namespace

Result<UniqueFd> open_disk_descriptor(const std::string& path, OpenMode mode) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return open_error(path, errno);
  MDFS_TRY(check_kind(path, st));  // before open(): opening a FIFO would wait, opening a tape would rewind it
  bool direct = true;
  MDFS_TRY_ASSIGN(UniqueFd fd, open_descriptor(path, st, mode, direct));
  if (::fstat(fd.get(), &st) != 0) return from_errno(errno, path);
  MDFS_TRY(check_kind(path, st));
  if (S_ISBLK(st.st_mode) && mode != OpenMode::kLook)
    if (const auto user = user_below(st.st_rdev, mode))
      return {Errc::kBusy, fmt::format("{} is in use by {}", path, *user)};
  if (S_ISREG(st.st_mode) && mode != OpenMode::kLook) {
    MDFS_TRY(lock_file(path, fd.get(), mode));
    if (const auto user = user_of_file(fd.get())) return {Errc::kBusy, fmt::format("{} is in use by {}", path, *user)};
  }
  return fd;
}

Result<UniqueFd> open_descriptor_when_free(const std::string& path, OpenMode mode,
                                           std::chrono::steady_clock::time_point patience) {
  constexpr auto kStep = std::chrono::milliseconds(10);
  for (;;) {
    auto fd = open_disk_descriptor(path, mode);
    if (fd.ok() || fd.error().code != Errc::kBusy || std::chrono::steady_clock::now() > patience) return fd;
    std::this_thread::sleep_for(kStep);
  }
}

Result<std::unique_ptr<Disk>> adopt_disk(const std::string& name, UniqueFd fd, std::shared_ptr<UringContext> context) {
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return from_errno(errno, name);
  MDFS_TRY(check_kind(name, st));
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0) return from_errno(errno, name);
  MDFS_TRY_ASSIGN(const std::uint64_t size, UringDisk::size_of(name, fd.get()));
  const bool writable = (flags & O_ACCMODE) == O_RDWR;
  const bool direct = (flags & O_DIRECT) != 0;
  return std::unique_ptr<Disk>(std::make_unique<UringDisk>(
      std::move(context), std::move(fd), UringDisk::Properties{name, size, writable, S_ISBLK(st.st_mode), direct}));
}

Result<std::unique_ptr<Disk>> open_disk(const std::string& path, OpenMode mode, std::shared_ptr<UringContext> context) {
  MDFS_TRY_ASSIGN(UniqueFd fd, open_disk_descriptor(path, mode));
  return adopt_disk(path, std::move(fd), std::move(context));
}

Result<std::unique_ptr<Disk>> open_disk_when_free(const std::string& path, OpenMode mode,
                                                  const std::shared_ptr<UringContext>& context,
                                                  std::chrono::steady_clock::time_point patience) {
  MDFS_TRY_ASSIGN(UniqueFd fd, open_descriptor_when_free(path, mode, patience));
  return adopt_disk(path, std::move(fd), context);
}

Status create_file_disk(const std::string& path, std::uint64_t size_bytes, bool sparse) {
  if (size_bytes == 0 || size_bytes % kAlignment != 0 || size_bytes > std::numeric_limits<off_t>::max()) {
    return {Errc::kInvalidArgument,
            fmt::format("{}: a disk of {} bytes (must be a multiple of {})", path, size_bytes, kAlignment)};
  }
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.open()) return open_error(path, errno);
  Status status = allocate(path, fd.get(), size_bytes, sparse);
  if (status.ok() && ::fsync(fd.get()) != 0) status = from_errno(errno, path);
  if (status.ok()) status = sync_directory_of(path);
  if (!status.ok()) ::unlink(path.c_str());
  return status;
}

}  // namespace mdfs::device
