// Aligned buffers of the engine: counted, shared and reused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "engine/cache/slab_arena.h"

namespace mdfs::engine {

class BufferPool;

// One buffer and the number of its holders. The pool makes and owns it; BufferRef is the way to use it.
struct PooledBuffer {
  std::atomic<std::uint32_t> references{1};
  std::byte* data = nullptr;
  std::size_t size = 0;  // as requested
  SlabArena::Piece piece;
  bool is_sparse = false;
  BufferPool* pool = nullptr;
};

// A shared hold on a buffer; the last hold gives the buffer back. The bytes are undefined at first. A thread that holds
// the only reference may write. A thread that shares the buffer makes a copy instead.
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
  // Sparse buffers are filled in parts and counted by the filled bytes (BufferPool::acquire_sparse).
  bool is_sparse() const { return buffer_ != nullptr && buffer_->is_sparse; }
  // Counts bytes of a sparse buffer before they are filled; does nothing for other buffers. One thread at a time.
  void charge(std::size_t bytes) const;
  std::size_t charged_bytes() const { return buffer_->piece.charge; }
  // True if no other hold is left. Changes by former holders have happened before.
  bool unique() const { return buffer_->references.load(std::memory_order_acquire) == 1; }

 private:
  PooledBuffer* buffer_ = nullptr;
};

// How long a buffer is held. Brief buffers have few size classes, so that the next one finds memory of its class.
enum class Use : std::uint8_t { kLasting, kBrief };

// Buffers at 4096-byte boundaries out of an arena. The pool keeps the memory of released buffers for the next ones. The
// cache therefore counts used_bytes() and idle_bytes(), and frees memory with give_back(). Any thread; outlives its
// buffers.
class BufferPool {
 public:
  // Pools of less than 64 MiB use small pages only: one huge page for each size of buffer would be a large part of
  // them.
  explicit BufferPool(std::size_t budget_bytes) : arena_(budget_bytes / kSmallestShare) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool() = default;

  // At least one byte. `size` is rounded up to a multiple of 4096. Never fails: the program ends when memory runs out.
  BufferRef acquire(std::size_t size, Use use = Use::kLasting);
  // A buffer of which few parts are filled. Only these parts have pages, and they are counted as they are charged.
  BufferRef acquire_sparse(std::size_t size);
  // The growth of used_bytes() plus idle_bytes() if acquire() were called now.
  std::size_t growth(std::size_t size, Use use = Use::kLasting) const;
  // Memory of held buffers, and of released buffers.
  std::size_t used_bytes() const { return arena_.used_bytes(); }
  std::size_t idle_bytes() const { return arena_.idle_bytes(); }
  // Gives memory back to the system until idle_bytes() is this small. Returns the bytes given back.
  std::size_t give_back(std::size_t idle_bytes_left) { return arena_.give_back(idle_bytes_left); }

 private:
  friend class BufferRef;
  static constexpr std::size_t kSmallestShare = 32;
  void release(PooledBuffer* buffer);

  SlabArena arena_;
};

}  // namespace mdfs::engine
