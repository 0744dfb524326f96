// The memory of a channel.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/channel_memory.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace mdfs::fuse {

Result<ChannelMemory> ChannelMemory::make(std::uint64_t area_bytes) {
  MDFS_TRY_ASSIGN(SharedMemory shared, SharedMemory::make("mdfs-channel", channel::kAreaOffset + area_bytes));
  ChannelMemory memory(std::move(shared));
  memory.header().alive.store(1, std::memory_order_release);
  return memory;
}

ChannelMemory::ChannelMemory(ChannelMemory&&) noexcept = default;

ChannelMemory::~ChannelMemory() {
  if (memory_.bytes().empty()) return;
  // A client that still copies samples looks at this word afterwards, and does not take zeros for samples.
  header().alive.store(0, std::memory_order_seq_cst);
  memory_.free_pages();
}

channel::Request ChannelMemory::copy_request(unsigned index) const {
  channel::Request copy;
  std::memcpy(&copy, &slot(index).request, sizeof copy);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler must not read it again
  return copy;
}

Result<MutableBytes> samples_in(MutableBytes whole, const channel::Request& request) {
  if (request.bytes == 0 || !inside(request.offset, request.bytes, whole.size()))
    return Error{Errc::kInvalidArgument, "channel: bytes outside of their memory"};
  return whole.subspan(request.offset, request.bytes);
}

}  // namespace mdfs::fuse
