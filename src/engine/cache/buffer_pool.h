// Aligned buffers of the engine, counted, reused, and given back to the system when they are not needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace mdfs::engine {

class BufferPool;

// One buffer and who holds it. Made and owned by the pool; used through BufferRef.
struct PooledBuffer {
  std::atomic<std::uint32_t> references{1};
  std::byte* data = nullptr;
  std::size_t size = 0;      // as asked for
  std::size_t capacity = 0;  // of its size class
  BufferPool* pool = nullptr;
};

// A shared hold on a buffer; the last one gives it back. Contents are undefined at first. A holder that finds itself
// the only one may write; who shares must not (the writer makes a copy instead).
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(PooledBuffer* buffer) : buffer_(buffer) {}
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) {
    if (buffer_ != nullptr) buffer_->references.fetch_add(1, std::memory_order_relaxed);
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef();

  explicit operator bool() const { return buffer_ != nullptr; }
  std::byte* data() const { return buffer_->data; }
  std::size_t size() const { return buffer_ == nullptr ? 0 : buffer_->size; }
  MutableBytes bytes() const { return {buffer_->data, buffer_->size}; }
  // Only this holder is left; what others did with the buffer has happened before.
  bool unique() const { return buffer_->references.load(std::memory_order_acquire) == 1; }

 private:
  PooledBuffer* buffer_ = nullptr;
};

// Buffers at 4096-byte boundaries, cut from mapped regions by size class. Freed ones are kept for reuse up to a bound;
// beyond it their pages go back to the system at once (the addresses stay mapped). Any thread; outlives its buffers.
class BufferPool {
 public:
  explicit BufferPool(std::size_t idle_limit_bytes) : idle_limit_bytes_(idle_limit_bytes) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  // At least one byte. `size` is rounded up to a multiple of 4096. Never fails: no memory ends the program.
  BufferRef acquire(std::size_t size);
  // Bytes in buffers that are held.
  std::size_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

 private:
  friend class BufferRef;
  struct SizeClass {
    std::vector<std::byte*> idle;   // freed, pages still there
    std::vector<std::byte*> empty;  // no pages behind
  };
  void release(PooledBuffer* buffer);
  void add_region(std::size_t capacity, SizeClass& size_class);

  const std::size_t idle_limit_bytes_;
  std::atomic<std::size_t> used_bytes_{0};
  std::mutex mutex_;  // guards all below
  std::map<std::size_t, SizeClass> classes_;
  std::size_t idle_bytes_ = 0;
  std::vector<std::pair<std::byte*, std::size_t>> regions_;
};

}  // namespace mdfs::engine
