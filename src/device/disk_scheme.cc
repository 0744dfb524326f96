// The table of disk schemes, and the two that are paths: block devices and regular files.
// SPDX-License-Identifier: Apache-2.0
#include "device/disk_scheme.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "device/backing.h"
#include "device/file_limit.h"
#include "device/rados/rados_description.h"
#include "device/rados/rados_name.h"
#include "device/rados/rados_scheme.h"
#include "device/uring_disk.h"

namespace mdfs::device {
namespace {

constexpr bool is_block(mode_t mode) { return S_ISBLK(mode); }
constexpr bool is_file(mode_t mode) { return S_ISREG(mode); }

template <bool (*kind)(mode_t)>
bool is_path_of(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && kind(st.st_mode);
}

template <bool (*kind)(mode_t)>
bool is_descriptor_of(int fd) {
  struct stat st {};
  return ::fstat(fd, &st) == 0 && kind(st.st_mode);
}

Error path_error(const std::string& path) {
  if (errno == EBUSY) return {Errc::kBusy, path + " is mounted or in use by another program"};
  return from_errno(errno, path);
}

Result<UniqueFd> open_direct(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_DIRECT));
  if (!fd.open() && errno == EINVAL) {
    spdlog::warn("{}: its filesystem refuses O_DIRECT; reading and writing through the page cache", path);
    fd.reset(::open(path.c_str(), flags));
  }
  if (!fd.open()) return path_error(path);
  return fd;
}

int open_flags(OpenMode mode) { return O_CLOEXEC | (mode == OpenMode::kReadWrite ? O_RDWR : O_RDONLY); }

Error in_use(const std::string& path, const std::string& user) {
  return {Errc::kBusy, fmt::format("{} is in use by {}", path, user)};
}

// The path may be of something else since is_name() looked.
Error changed(const std::string& path) { return {Errc::kInvalidArgument, path + " changed while it was opened"}; }

Result<UniqueFd> open_block(const std::string& path, OpenMode mode) {
  MDFS_TRY_ASSIGN(UniqueFd fd, open_direct(path, open_flags(mode) | (mode == OpenMode::kLook ? 0 : O_EXCL)));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return from_errno(errno, path);
  if (!is_block(st.st_mode)) return changed(path);
  if (mode != OpenMode::kLook)
    if (const auto user = user_below(st.st_rdev, mode)) return in_use(path, *user);
  return fd;
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

Result<UniqueFd> open_file(const std::string& path, OpenMode mode) {
  MDFS_TRY_ASSIGN(UniqueFd fd, open_direct(path, open_flags(mode)));
  if (!is_descriptor_of<is_file>(fd.get())) return changed(path);
  if (mode == OpenMode::kLook) return fd;
  MDFS_TRY(lock_file(path, fd.get(), mode));
  if (const auto user = user_of_file(fd.get())) return in_use(path, *user);
  return fd;
}

template <bool block_device>
Result<std::unique_ptr<Disk>> adopt_uring(const std::string& name, UniqueFd fd, std::shared_ptr<UringContext> context) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0) return from_errno(errno, name);
  MDFS_TRY_ASSIGN(const std::uint64_t size, UringDisk::size_of(name, fd.get()));
  const bool writable = (flags & O_ACCMODE) == O_RDWR;
  if (writable && !block_device) MDFS_TRY(check_file_limit(name, size));
  const bool direct = (flags & O_DIRECT) != 0;
  return std::unique_ptr<Disk>(std::make_unique<UringDisk>(
      std::move(context), std::move(fd), UringDisk::Properties{name, size, writable, block_device, direct}));
}

bool is_rados(const std::string& disk) { return is_rados_name(disk); }

// Descriptors of other schemes may be files, too.
bool is_file_descriptor(int fd) { return is_descriptor_of<is_file>(fd) && !is_rados_descriptor(fd); }

constexpr DiskScheme kTable[] = {
    {.name = "disk in RADOS (rados:POOL/NAME)",
     .is_path = false,
     .is_remote = true,
     .is_name = is_rados,
     .is_open = is_rados_descriptor,
     .open = open_rados,
     .adopt = adopt_rados,
     .create = create_rados,
     .grow = grow_rados,
     .remove = remove_rados,
     .take_over = take_over_rados},
    {.name = "block device",
     .is_path = true,
     .is_name = is_path_of<is_block>,
     .is_open = is_descriptor_of<is_block>,
     .open = open_block,
     .adopt = adopt_uring<true>},
    {.name = "regular file",
     .is_path = true,
     .is_name = is_path_of<is_file>,
     .is_open = is_file_descriptor,
     .open = open_file,
     .adopt = adopt_uring<false>},
};

}  // namespace

std::span<const DiskScheme> scheme_table() { return kTable; }

}  // namespace mdfs::device
