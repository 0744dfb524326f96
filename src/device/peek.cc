// Paths by pread(2), other disks as disks.
// SPDX-License-Identifier: Apache-2.0
#include "device/peek.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "device/open.h"

namespace mdfs::device {

Result<Peek> Peek::open(const std::string& disk) {
  Peek peek;
  peek.name_ = disk;
  if (!is_path(disk)) {
    MDFS_TRY_ASSIGN(peek.disk_, open_disk(disk, OpenMode::kLook, nullptr));
    peek.size_bytes_ = peek.disk_->size_bytes();
    return peek;
  }
  peek.fd_.reset(::open(disk.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat st {};
  if (!peek.fd_.open() || ::fstat(peek.fd_.get(), &st) != 0) return from_errno(errno, disk);
  if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
    return Error{Errc::kInvalidArgument, disk + " is neither a block device nor a file"};
  peek.size_bytes_ = static_cast<std::uint64_t>(st.st_size);
  if (S_ISBLK(st.st_mode) && ::ioctl(peek.fd_.get(), BLKGETSIZE64, &peek.size_bytes_) != 0)
    return from_errno(errno, disk);
  return peek;
}

Status Peek::read(std::uint64_t offset, MutableBytes bytes) {
  if (disk_ != nullptr) {
    AlignedBuffer buffer(bytes.size());
    MDFS_TRY(device::read(*disk_, offset, buffer.bytes()));
    std::copy(buffer.bytes().begin(), buffer.bytes().end(), bytes.begin());
    return {};
  }
  const ssize_t got = ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (got < 0) return from_errno(errno, name_);
  if (got != static_cast<ssize_t>(bytes.size()))
    return {Errc::kIo, fmt::format("{}: {} of {} bytes at {}", name_, got, bytes.size(), offset)};
  return {};
}

}  // namespace mdfs::device
