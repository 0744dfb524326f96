// Allocation of aligned buffers.
// SPDX-License-Identifier: Apache-2.0
#include "base/aligned_buffer.h"

#include <cstdlib>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs {

AlignedBuffer::AlignedBuffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  void* memory = std::aligned_alloc(kBufferAlignment, align_up(size, kBufferAlignment));
  if (memory == nullptr) out_of_memory();
  data_.reset(static_cast<std::byte*>(memory));
}

}  // namespace mdfs
