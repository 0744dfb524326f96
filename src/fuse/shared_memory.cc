// Making and releasing memory that is shared with clients.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace mdfs::fuse {

Result<SharedMemory> SharedMemory::make(const char* name, std::uint64_t bytes) {
  device::UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.open() || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return from_errno(errno, "memory of a channel");
  void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (start == MAP_FAILED) return from_errno(errno, "memory of a channel");
  return SharedMemory(std::move(fd), MutableBytes(static_cast<std::byte*>(start), bytes));
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

void SharedMemory::free_pages() { ::madvise(bytes_.data(), bytes_.size(), MADV_REMOVE); }

}  // namespace mdfs::fuse
