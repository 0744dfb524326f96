// Remembering writes until a flush.
// SPDX-License-Identifier: Apache-2.0
#include "store/unflushed.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"

namespace mdfs::store {

std::uint32_t checksum_of(const device::Io& io) {
  std::uint32_t crc = 0;
  for (const MutableBytes& buffer : io.buffers) crc = crc32c(buffer, crc);
  return crc;
}

std::optional<std::uint32_t> Unflushed::checksum(const device::Io& io) const {
  {
    const std::lock_guard lock(mutex_);
    if (incomplete_ || bytes_ + io.bytes() > kMaxBytes) return std::nullopt;
  }
  return checksum_of(io);
}

void Unflushed::note(std::uint64_t offset, std::uint64_t bytes, bool good, std::optional<std::uint32_t> crc32c) {
  const std::lock_guard lock(mutex_);
  if (incomplete_) return;
  const Write write{offset, bytes, crc32c.value_or(0)};
  std::erase_if(writes_, [&](const Write& older) {
    if (!good || older.offset < write.offset || older.end() > write.end()) return false;
    bytes_ -= older.bytes;
    return true;
  });
  const bool clash = std::any_of(writes_.begin(), writes_.end(), [&](const Write& older) {
    return older.offset < write.end() && write.offset < older.end();
  });
  incomplete_ = clash || !good || !crc32c || writes_.size() == kMaxWrites || bytes_ + bytes > kMaxBytes;
  if (incomplete_) return;
  writes_.push_back(write);
  bytes_ += bytes;
}

std::optional<std::vector<Unflushed::Write>> Unflushed::take() {
  const std::lock_guard lock(mutex_);
  std::vector<Write> writes = std::exchange(writes_, {});
  bytes_ = 0;
  if (std::exchange(incomplete_, false)) return std::nullopt;
  return writes;
}

}  // namespace mdfs::store
