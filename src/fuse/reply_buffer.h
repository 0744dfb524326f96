// The bytes of an answer: in the ring entry of the request where there is one, so that nothing is copied.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "fuse/buffer_pool.h"
#include "fuse/ring_entry.h"

namespace mdfs::fuse {

// For the thread that handles the request, until it answers. The memory of an entry also holds the request's payload.
class ReplyBuffer {
 public:
  ReplyBuffer(BufferPool& pool, std::size_t offset_bytes) {
    if (RingEntry* const entry = RingEntry::current(); entry != nullptr) {
      bytes_ = entry->payload().subspan(offset_bytes);
    } else {
      lease_.emplace(pool, pool.take_buffer());
      bytes_ = lease_->bytes();
    }
  }
  MutableBytes bytes() { return bytes_; }

 private:
  std::optional<BufferPool::Lease> lease_;
  MutableBytes bytes_;
};

}  // namespace mdfs::fuse
