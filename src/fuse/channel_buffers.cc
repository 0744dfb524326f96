// Buffers of a client.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/channel_buffers.h"

#include <algorithm>
#include <utility>

namespace mdfs::fuse {

Result<std::uint32_t> ChannelBuffers::add(std::shared_ptr<SharedMemory> memory) {
  const std::lock_guard lock(mutex_);
  const auto place = std::find(buffers_.begin(), buffers_.end(), nullptr);
  if (place == buffers_.end()) return Error{Errc::kTooManyFiles, "buffers of a channel"};
  *place = std::move(memory);
  return static_cast<std::uint32_t>(place - buffers_.begin()) + 1;
}

std::shared_ptr<SharedMemory> ChannelBuffers::find(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  return number == 0 || number > buffers_.size() ? nullptr : buffers_[number - 1];
}

void ChannelBuffers::remove(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  if (number == 0 || number > buffers_.size() || buffers_[number - 1] == nullptr) return;
  removed_.push_back(std::move(buffers_[number - 1]));
}

std::uint64_t ChannelBuffers::reap() {
  std::vector<std::shared_ptr<SharedMemory>> freed;  // without the lock
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  std::erase_if(removed_, [&](std::shared_ptr<SharedMemory>& memory) {
    if (memory.use_count() > 1) return false;
    bytes += memory->bytes().size();
    freed.push_back(std::move(memory));
    return true;
  });
  return bytes;
}

bool ChannelBuffers::has_removed() const {
  const std::lock_guard lock(mutex_);
  return !removed_.empty();
}

std::uint64_t ChannelBuffers::bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& memory : buffers_) bytes += memory == nullptr ? 0 : memory->bytes().size();
  for (const auto& memory : removed_) bytes += memory->bytes().size();
  return bytes;
}

}  // namespace mdfs::fuse
