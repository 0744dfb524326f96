// Memory that the daemon shares with a client: made and sealed by the daemon, trusted in nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "device/unique_fd.h"

namespace mdfs::fuse {

// Any thread may read and write the bytes. The client may write them at any time.
class SharedMemory {
 public:
  // `bytes`: whole pages. The name is what /proc shows.
  static Result<SharedMemory> make(const char* name, std::uint64_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  // For the client; it cannot change the size.
  const device::UniqueFd& descriptor() const { return descriptor_; }
  void close_descriptor() { descriptor_.reset(); }
  // Empty after a move.
  MutableBytes bytes() const { return bytes_; }
  // Gives the pages back to the system although the client may still map them: it then sees zeros, and pages that it
  // touches later are its own. Without it they live as long as a mapping of the client.
  void free_pages();

 private:
  SharedMemory(device::UniqueFd descriptor, MutableBytes bytes) : descriptor_(std::move(descriptor)), bytes_(bytes) {}

  device::UniqueFd descriptor_;
  MutableBytes bytes_;
};

}  // namespace mdfs::fuse
