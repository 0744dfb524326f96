// The memory of one channel: made by the daemon, sealed, shared with a client, trusted in nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "channel/layout.h"
#include "device/unique_fd.h"

namespace mdfs::fuse {

// Any thread may call any method: all that is shared is atomic, or belongs to one request.
class ChannelMemory {
 public:
  // `area_bytes`: whole pages.
  static Result<ChannelMemory> make(std::uint64_t area_bytes);
  ChannelMemory(ChannelMemory&& other) noexcept;
  ChannelMemory& operator=(ChannelMemory&&) = delete;
  // Gives the pages back to the system although the client may still map them: pages that it touches later are its own.
  ~ChannelMemory();

  // For the client; it cannot change the size.
  const device::UniqueFd& descriptor() const { return descriptor_; }
  void close_descriptor() { descriptor_.reset(); }

  channel::Header& header() const { return channel::header_in(start_); }
  channel::Slot& slot(unsigned index) const { return channel::slot_in(start_, index); }
  std::uint64_t area_bytes() const { return area_bytes_; }
  // A copy, of which no field changes any more.
  channel::Request copy_request(unsigned index) const;
  // The samples of the request; kInvalidArgument if they do not lie in the area.
  Result<MutableBytes> samples(const channel::Request& request) const;

 private:
  ChannelMemory(device::UniqueFd descriptor, std::byte* start, std::uint64_t area_bytes)
      : descriptor_(std::move(descriptor)), start_(start), area_bytes_(area_bytes) {}

  device::UniqueFd descriptor_;
  std::byte* start_;
  std::uint64_t area_bytes_;
};

}  // namespace mdfs::fuse
