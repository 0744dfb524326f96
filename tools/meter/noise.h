// Bytes to write: none of their blocks is like another, so that no filesystem stores them smaller.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/aligned_buffer.h"
#include "base/bytes.h"

namespace mdfs::tools {

// Random bytes, aligned for O_DIRECT. Each 4 KiB begin with another number, so that equal blocks are rare and a
// filesystem finds none to share. One thread.
class Noise {
 public:
  // `writer`: other numbers than other writers have.
  Noise(std::uint64_t most_bytes, std::uint64_t writer);

  // Bytes that differ from those before; valid until the next call. At most `most_bytes`.
  ConstBytes next(std::uint64_t bytes);
  // The same memory, to read into.
  MutableBytes room() { return buffer_.bytes(); }

 private:
  AlignedBuffer buffer_;
  std::uint64_t number_;
};

}  // namespace mdfs::tools
