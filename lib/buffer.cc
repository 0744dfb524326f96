// Memory for windows.
// SPDX-License-Identifier: Apache-2.0
#include "buffer.h"

#include <sys/mman.h>

#include <utility>

#include "image.h"

std::unique_ptr<mdfs_buffer> mdfs_buffer::make(mdfs_image& image, std::uint64_t bytes) {
  std::uint32_t number = 0;
  auto channel = image.channel.current(image.pool->plain(), number, mdfs::client::kReadsBeforeChannel + 1);
  if (channel != nullptr)
    if (const mdfs::MutableBytes shared = channel->new_buffer(bytes); !shared.empty())
      return std::unique_ptr<mdfs_buffer>(new mdfs_buffer(std::move(channel), shared));
  void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  return std::unique_ptr<mdfs_buffer>(new mdfs_buffer(nullptr, {static_cast<std::byte*>(start), bytes}));
}

mdfs_buffer::~mdfs_buffer() {
  if (channel != nullptr) {
    channel->free_buffer(bytes);
  } else {
    ::munmap(bytes.data(), bytes.size());
  }
}
