// Writes of one disk that no flush has followed yet, for the checksum records of commits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "device/disk.h"

namespace mdfs::store {

// Of the bytes that a request writes, all its buffers one after another.
std::uint32_t checksum_of(const device::Io& io);

// Remembers the places and checksums of writes since the last take(), up to a bound. A commit flushes more than that
// anyway, and needs no checksums then. Any thread may call any method.
class Unflushed {
 public:
  static constexpr std::size_t kMaxWrites = 256;
  static constexpr std::uint64_t kMaxBytes = 1u << 20;

  struct Write {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint32_t crc32c = 0;
    std::uint64_t end() const { return offset + bytes; }
  };

  // Of a write that is about to be submitted; nothing if it is too large to be remembered.
  std::optional<std::uint32_t> checksum(const device::Io& io) const;
  // A write has ended, with its checksum if it was good. Called before its caller learns of the end.
  void note(std::uint64_t offset, std::uint64_t bytes, bool good, std::optional<std::uint32_t> crc32c);
  // All good writes that ended since the last call, disjoint. Nothing if there were too many, if one is unknown, or if
  // one partly covers another.
  std::optional<std::vector<Write>> take();

 private:
  mutable std::mutex mutex_;
  std::vector<Write> writes_;
  std::uint64_t bytes_ = 0;
  bool incomplete_ = false;
};

}  // namespace mdfs::store
