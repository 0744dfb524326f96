// Writes of one disk that a commit may have to rely on before a flush has followed them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "device/disk.h"

namespace mdfs::store {

// Of what a request writes, all its buffers one after another.
std::uint32_t checksum_of(const device::Io& io);

// Remembers where and what was written since the last call of take(), as long as it is little: more than that is
// flushed before a commit anyway, and then its checksums would be for nothing. Any thread may call any method.
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

  // Of a write that is about to be given to the disk; nothing if it is too much to be remembered.
  std::optional<std::uint32_t> checksum(const device::Io& io) const;
  // A write has ended, with this checksum if it was good; before anybody is told.
  void note(std::uint64_t offset, std::uint64_t bytes, bool good, std::optional<std::uint32_t> crc32c);
  // All good writes that ended since the last call, none over another; nothing if there were too many, if one is not
  // known, or if one covers a part of another.
  std::optional<std::vector<Write>> take();

 private:
  mutable std::mutex mutex_;
  std::vector<Write> writes_;
  std::uint64_t bytes_ = 0;
  bool incomplete_ = false;
};

}  // namespace mdfs::store
