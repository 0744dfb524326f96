// Aligned buffers of the engine: counted, shared, and used again.
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

// One buffer and who holds it. Made and owned by the pool; used through BufferRef.
struct PooledBuffer {
  std::atomic<std::uint32_t> references{1};
  std::byte* data = nullptr;
  std::size_t size = 0;  // as asked for
  SlabArena::Piece piece;
  bool is_sparse = false;
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
  // Sparse: filled in parts, and counted for what is filled (BufferPool::acquire_sparse).
  bool is_sparse() const { return buffer_ != nullptr && buffer_->is_sparse; }
  // So many more bytes of a sparse buffer are about to be filled; of others nothing changes. One thread at a time.
  void charge(std::size_t bytes) const;
  std::size_t charged_bytes() const { return buffer_->piece.charge; }
  // Only this holder is left; what others did with the buffer has happened before.
  bool unique() const { return buffer_->references.load(std::memory_order_acquire) == 1; }

 private:
  PooledBuffer* buffer_ = nullptr;
};

// How long a buffer is held. Brief ones are of few size classes, so that the next one finds their memory.
enum class Use : std::uint8_t { kLasting, kBrief };

// Buffers at 4096-byte boundaries out of an arena. The memory of released buffers stays for the next ones: who counts
// memory counts used_bytes() and idle_bytes(), and makes room with give_back(). Any thread; outlives its buffers.
class BufferPool {
 public:
  // Pools of less than 64 MiB use small pages alone: a huge page for each size of buffer would be much of them.
  explicit BufferPool(std::size_t budget_bytes) : arena_(budget_bytes / kSmallestShare) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool() = default;

  // At least one byte. `size` is rounded up to a multiple of 4096. Never fails: no memory ends the program.
  BufferRef acquire(std::size_t size, Use use = Use::kLasting);
  // A buffer that few parts of are filled: with pages for these parts alone, which are counted as they are charged.
  BufferRef acquire_sparse(std::size_t size);
  // By how much used_bytes() and idle_bytes() together would grow.
  std::size_t growth(std::size_t size, Use use = Use::kLasting) const;
  // Memory of buffers that are held, and of released ones.
  std::size_t used_bytes() const { return arena_.used_bytes(); }
  std::size_t idle_bytes() const { return arena_.idle_bytes(); }
  // Until idle_bytes() is so small; the bytes given back to the system.
  std::size_t give_back(std::size_t idle_bytes_left) { return arena_.give_back(idle_bytes_left); }

 private:
  friend class BufferRef;
  static constexpr std::size_t kSmallestShare = 32;
  void release(PooledBuffer* buffer);

  SlabArena arena_;
};

}  // namespace mdfs::engine
