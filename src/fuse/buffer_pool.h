// Reply buffers. The pool hands out the buffer used last first, because it is still in the processor's cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <vector>

#include "base/aligned_buffer.h"

namespace mdfs::fuse {

// Any thread. The pool keeps up to `most_kept` free buffers.
class BufferPool {
 public:
  BufferPool(std::size_t buffer_bytes, std::size_t most_kept) : buffer_bytes_(buffer_bytes), most_kept_(most_kept) {}

  class Lease {
   public:
    Lease(BufferPool& pool, AlignedBuffer buffer) : pool_(pool), buffer_(std::move(buffer)) {}
    ~Lease() { pool_.give_back(std::move(buffer_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    MutableBytes bytes() { return buffer_.bytes(); }

   private:
    BufferPool& pool_;
    AlignedBuffer buffer_;
  };
  Lease take() { return Lease(*this, take_buffer()); }
  // For a Lease.
  AlignedBuffer take_buffer() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        AlignedBuffer buffer = std::move(free_.back());
        free_.pop_back();
        return buffer;
      }
    }
    return AlignedBuffer(buffer_bytes_);
  }

 private:
  void give_back(AlignedBuffer buffer) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < most_kept_) free_.push_back(std::move(buffer));
  }

  const std::size_t buffer_bytes_, most_kept_;
  std::mutex mutex_;  // guards free_
  std::vector<AlignedBuffer> free_;
};

}  // namespace mdfs::fuse
