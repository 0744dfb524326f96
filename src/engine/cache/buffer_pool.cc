// Aligned buffers of the engine.
// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/checked.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_poison_memory_region(const volatile void* address, std::size_t size);
extern "C" void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
#endif

namespace mdfs::engine {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kFineClassLimit = 256u << 10;  // up to here every multiple of a page is a class
constexpr std::size_t kRegionBytes = 1u << 20;

// Above the fine classes: eight classes for each power of two, so that at most an eighth is not used (and not touched).
std::size_t class_of(std::size_t size) {
  if (size <= kFineClassLimit) return size;
  const std::size_t step = std::bit_floor(size) / 8;
  return align_up(size, step);
}

void forbid([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, size);
#endif
}

void allow([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, size);
#endif
}

}  // namespace

BufferRef::~BufferRef() {
  if (buffer_ == nullptr) return;
  if (buffer_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) buffer_->pool->release(buffer_);
}

BufferPool::~BufferPool() {
  MDFS_CHECK(used_bytes() == 0);
  for (const auto& [data, size] : regions_) {
    allow(data, size);
    ::munmap(data, size);
  }
}

void BufferPool::add_region(std::size_t capacity, SizeClass& size_class) {
  const std::size_t pieces = std::max<std::size_t>(1, kRegionBytes / capacity);
  const std::size_t size = pieces * capacity;
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) out_of_memory();
  auto* const data = static_cast<std::byte*>(mapped);
  forbid(data, size);
  regions_.emplace_back(data, size);
  for (std::size_t i = pieces; i-- > 0;) size_class.empty.push_back(data + i * capacity);
}

BufferRef BufferPool::acquire(std::size_t size) {
  MDFS_CHECK(size > 0);
  size = align_up(size, kPage);
  const std::size_t capacity = class_of(size);
  auto* const buffer = new PooledBuffer;
  buffer->size = size;
  buffer->capacity = capacity;
  buffer->pool = this;
  {
    const std::lock_guard lock(mutex_);
    SizeClass& size_class = classes_[capacity];
    if (!size_class.idle.empty()) {
      buffer->data = size_class.idle.back();
      size_class.idle.pop_back();
      idle_bytes_ -= capacity;
    } else {
      if (size_class.empty.empty()) add_region(capacity, size_class);
      buffer->data = size_class.empty.back();
      size_class.empty.pop_back();
    }
  }
  used_bytes_.fetch_add(capacity, std::memory_order_relaxed);
  allow(buffer->data, size);
  return BufferRef(buffer);
}

void BufferPool::release(PooledBuffer* buffer) {
  std::byte* const data = buffer->data;
  const std::size_t capacity = buffer->capacity;
  delete buffer;
  forbid(data, capacity);
  used_bytes_.fetch_sub(capacity, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    if (idle_bytes_ + capacity <= idle_limit_bytes_) {
      idle_bytes_ += capacity;
      classes_[capacity].idle.push_back(data);
      return;
    }
  }
  ::madvise(data, capacity, MADV_DONTNEED);
  const std::lock_guard lock(mutex_);
  classes_[capacity].empty.push_back(data);
}

}  // namespace mdfs::engine
