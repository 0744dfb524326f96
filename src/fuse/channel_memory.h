// The memory of one channel: slots of requests, and the data area.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "channel/layout.h"
#include "fuse/shared_memory.h"

namespace mdfs::fuse {

// Any thread may call any method: all that is shared is atomic, or belongs to one request.
class ChannelMemory {
 public:
  // `area_bytes`: whole pages.
  static Result<ChannelMemory> make(std::uint64_t area_bytes);
  ChannelMemory(ChannelMemory&&) noexcept;
  ChannelMemory& operator=(ChannelMemory&&) = delete;
  ~ChannelMemory();  // frees the pages

  SharedMemory& shared() { return memory_; }
  channel::Header& header() const { return channel::header_in(memory_.bytes().data()); }
  channel::Slot& slot(unsigned index) const { return channel::slot_in(memory_.bytes().data(), index); }
  MutableBytes area() const { return memory_.bytes().subspan(channel::kAreaOffset); }
  // A copy, of which no field changes any more.
  channel::Request copy_request(unsigned index) const;

 private:
  explicit ChannelMemory(SharedMemory memory) : memory_(std::move(memory)) {}

  SharedMemory memory_;
};

// The samples of the request in its area or buffer; kInvalidArgument if they do not lie there.
Result<MutableBytes> samples_in(MutableBytes whole, const channel::Request& request);

}  // namespace mdfs::fuse
