// Making, sharing and releasing the memory of a channel.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/channel_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace mdfs::fuse {

Result<ChannelMemory> ChannelMemory::make(std::uint64_t area_bytes) {
  const std::uint64_t bytes = channel::kAreaOffset + area_bytes;
  device::UniqueFd fd(::memfd_create("mdfs-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.open() || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return from_errno(errno, "memory of a channel");
  void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (start == MAP_FAILED) return from_errno(errno, "memory of a channel");
  ChannelMemory memory(std::move(fd), static_cast<std::byte*>(start), area_bytes);
  memory.header().alive.store(1, std::memory_order_release);
  return memory;
}

ChannelMemory::ChannelMemory(ChannelMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      start_(std::exchange(other.start_, nullptr)),
      area_bytes_(other.area_bytes_) {}

ChannelMemory::~ChannelMemory() {
  if (start_ == nullptr) return;
  // A client that still copies samples looks at this word afterwards, and does not take zeros for samples.
  header().alive.store(0, std::memory_order_seq_cst);
  const std::uint64_t bytes = channel::kAreaOffset + area_bytes_;
  ::madvise(start_, bytes, MADV_REMOVE);
  ::munmap(start_, bytes);
}

channel::Request ChannelMemory::copy_request(unsigned index) const {
  channel::Request copy;
  std::memcpy(&copy, &slot(index).request, sizeof copy);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler must not read it again
  return copy;
}

Result<MutableBytes> ChannelMemory::samples(const channel::Request& request) const {
  if (request.reserved != 0 || request.bytes == 0 || !inside(request.offset, request.bytes, area_bytes_))
    return Error{Errc::kInvalidArgument, "channel: bytes outside of the data area"};
  return MutableBytes(start_ + channel::kAreaOffset + request.offset, request.bytes);
}

}  // namespace mdfs::fuse
