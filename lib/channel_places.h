// Places for samples in the memory that the daemon shares: free parts of the data area, and buffers. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/bytes.h"

namespace mdfs::client {

// Free parts of a data area, in pages. One thread at a time.
class AreaAllocator {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;
  explicit AreaAllocator(std::uint64_t bytes) { free_.emplace(0, bytes); }

  // The first part that is large enough, so that the same few pages stay in the processor's cache. -1: none is.
  std::int64_t take(std::uint64_t bytes);
  void give_back(std::uint64_t offset, std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  // offset, bytes; no two touch
};

// The buffers that the daemon shares. One thread at a time.
class BufferTable {
 public:
  struct Place {
    std::uint32_t buffer;
    std::uint64_t offset;
  };
  void add(ConstBytes buffer, std::uint32_t number) { buffers_[buffer.data()] = {buffer.size(), number}; }
  // The number of the buffer that begins there, which leaves the table. 0: there is none.
  std::uint32_t remove(const std::byte* start);
  // The buffer and the offset of these bytes. Nothing: they lie in no buffer.
  std::optional<Place> find(const std::byte* start, std::uint64_t bytes) const;

 private:
  struct Entry {
    std::uint64_t bytes = 0;
    std::uint32_t number = 0;
  };
  std::map<const std::byte*, Entry, std::less<>> buffers_;
};

}  // namespace mdfs::client
