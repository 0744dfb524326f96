// The buffers of one client of the channels: memory into which windows go at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "channel/layout.h"
#include "fuse/shared_memory.h"

namespace mdfs::fuse {

// Any thread. Requests under way hold their buffer, also one that was removed.
class ChannelBuffers {
 public:
  // The number of the buffer; kTooManyFiles.
  Result<std::uint32_t> add(std::shared_ptr<SharedMemory> memory);
  // Null: there is none of this number.
  std::shared_ptr<SharedMemory> find(std::uint32_t number) const;
  void remove(std::uint32_t number);

  // Frees removed buffers that no request holds any more. Returns their bytes.
  std::uint64_t reap();
  bool has_removed() const;
  std::uint64_t bytes() const;  // of all that are not freed

 private:
  mutable std::mutex mutex_;  // guards all below
  std::array<std::shared_ptr<SharedMemory>, channel::kMostBuffers> buffers_;
  std::vector<std::shared_ptr<SharedMemory>> removed_;
};

}  // namespace mdfs::fuse
