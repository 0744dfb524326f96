// Turns requests into transfers of the io_uring.
// SPDX-License-Identifier: Apache-2.0
#include "device/uring_disk.h"

#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <utility>

#include "base/checked.h"
#include "device/request.h"

namespace mdfs::device {
namespace {

// Buffers that lie behind one another in memory become one vector.
std::vector<iovec> to_vectors(const std::vector<MutableBytes>& buffers) {
  std::vector<iovec> vectors;
  vectors.reserve(buffers.size());
  for (const auto& buffer : buffers) {
    if (!vectors.empty() &&
        static_cast<std::byte*>(vectors.back().iov_base) + vectors.back().iov_len == buffer.data()) {
      vectors.back().iov_len += buffer.size();
    } else {
      vectors.push_back({buffer.data(), buffer.size()});
    }
  }
  return vectors;
}

bool has_name(int fd) {
  struct stat st {};
  return ::fstat(fd, &st) == 0 && st.st_nlink > 0;
}

}  // namespace

UringDisk::UringDisk(std::shared_ptr<UringContext> context, UniqueFd fd, Properties properties)
    : context_(std::move(context)),
      fd_(std::move(fd)),
      properties_(std::move(properties)),
      had_name_(!properties_.block_device && has_name(fd_.get())),
      size_bytes_(properties_.size_bytes) {}

Result<std::uint64_t> UringDisk::size_of(const std::string& name, int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return from_errno(errno, name);
  if (S_ISREG(st.st_mode)) return align_down(static_cast<std::uint64_t>(st.st_size), kAlignment);
  std::uint64_t size = 0;
  int sector = 0;
  if (::ioctl(fd, BLKGETSIZE64, &size) != 0 || ::ioctl(fd, BLKSSZGET, &sector) != 0) return from_errno(errno, name);
  if (sector <= 0 || kAlignment % static_cast<unsigned>(sector) != 0)
    return {Errc::kNotSupported,
            fmt::format("{}: the sectors have {} bytes; the size must divide {}", name, sector, kAlignment)};
  return align_down(size, kAlignment);
}

Result<std::uint64_t> UringDisk::measure() {
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, size_of(properties_.name, fd_.get()));
  size_bytes_ = bytes;
  return bytes;
}

Result<Condition> UringDisk::condition() {
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, size_of(properties_.name, fd_.get()));
  return Condition{bytes, had_name_ && !has_name(fd_.get())};
}

std::uint64_t UringDisk::room_bytes() {
  constexpr std::int64_t kUnit = 512;  // of st_blocks
  struct stat st {};
  struct statfs below {};
  if (properties_.block_device || ::fstat(fd_.get(), &st) != 0 || st.st_blocks * kUnit >= st.st_size ||
      ::fstatfs(fd_.get(), &below) != 0)
    return UINT64_MAX;
  return static_cast<std::uint64_t>(below.f_bavail) * static_cast<std::uint64_t>(below.f_bsize);
}

void UringDisk::submit(std::span<Io* const> batch) {
  std::vector<std::unique_ptr<UringContext::Transfer>> transfers;
  transfers.reserve(batch.size());
  for (Io* io : batch) {
    if (auto status = check_request(*this, *io); !status.ok()) {
      complete(*io, std::move(status));
      continue;
    }
    auto transfer = std::make_unique<UringContext::Transfer>();
    transfer->io = io;
    transfer->fd = fd_.get();
    transfer->disk = &properties_.name;
    transfer->block_device = properties_.block_device;
    transfer->vectors = to_vectors(io->buffers);
    transfer->offset = io->offset;
    transfer->left = io->bytes();
    transfers.push_back(std::move(transfer));
  }
  context_->start(transfers);
}

}  // namespace mdfs::device
