// A buffer aligned for O_DIRECT.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/bytes.h"

namespace mdfs {

inline constexpr std::size_t kBufferAlignment = 4096;  // bytes

// Owns `size` bytes that begin at a multiple of kBufferAlignment and are not initialised. Movable; no thread contract.
// Without memory the constructor ends the program (out_of_memory).
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size);

  MutableBytes bytes() { return {data_.get(), size_}; }
  ConstBytes bytes() const { return {data_.get(), size_}; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace mdfs
