// Allocation of aligned buffers.
// SPDX-License-Identifier: Apache-2.0
#include "base/aligned_buffer.h"

#include <new>

#include "base/checked.h"

namespace mdfs {

AlignedBuffer::AlignedBuffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  void* memory = std::aligned_alloc(kBufferAlignment, align_up(size, kBufferAlignment));
  if (memory == nullptr) throw std::bad_alloc();
  data_.reset(static_cast<std::byte*>(memory));
}

}  // namespace mdfs
