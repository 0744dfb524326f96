// Aligned buffers of the engine.
// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/buffer_pool.h"

#include "base/check.h"
#include "base/checked.h"
#include "engine/cache/slab_classes.h"

namespace mdfs::engine {

namespace {

std::size_t class_for(std::size_t size, Use use) { return use == Use::kBrief ? brief_class_of(size) : class_of(size); }

}  // namespace

BufferRef::~BufferRef() {
  if (buffer_ == nullptr) return;
  if (buffer_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) buffer_->pool->release(buffer_);
}

BufferRef BufferPool::acquire(std::size_t size, Use use) {
  MDFS_CHECK(size > 0);
  auto* const buffer = new PooledBuffer;
  buffer->piece = arena_.take(class_for(size, use));
  buffer->data = buffer->piece.data;
  buffer->size = align_up(size, kPageBytes);
  buffer->pool = this;
  return BufferRef(buffer);
}

BufferRef BufferPool::acquire_sparse(std::size_t size) {
  MDFS_CHECK(size > 0);
  auto* const buffer = new PooledBuffer;
  buffer->piece = arena_.take_sparse(class_of(size));
  buffer->data = buffer->piece.data;
  buffer->size = align_up(size, kPageBytes);
  buffer->is_sparse = true;
  buffer->pool = this;
  return BufferRef(buffer);
}

void BufferRef::charge(std::size_t bytes) const {
  if (is_sparse()) buffer_->pool->arena_.charge(buffer_->piece, bytes);
}

std::size_t BufferPool::growth(std::size_t size, Use use) const { return arena_.growth(class_for(size, use)); }

void BufferPool::release(PooledBuffer* buffer) {
  const SlabArena::Piece piece = buffer->piece;
  delete buffer;
  arena_.put(piece);
}

}  // namespace mdfs::engine
