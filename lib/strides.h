// Copies between packed windows and buffers with strides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"

namespace mdfs::client {

// Layout of a window in a caller's buffer: lengths in samples and strides in bytes, slowest axis first.
struct StridedLayout {
  std::span<const std::uint64_t> lengths;
  std::span<const std::int64_t> strides;
  std::size_t sample_bytes = 0;
};

// Bytes from the start of the first sample to the end of the last; kInvalidArgument for negative strides, kOverflow.
Result<std::uint64_t> reach(const StridedLayout& layout);

// Samples [first, first + packed.size() / sample_bytes) of the canonical order; the caller has checked reach().
void scatter(const StridedLayout& layout, std::uint64_t first, ConstBytes packed, std::byte* buffer);
void gather(const StridedLayout& layout, std::uint64_t first, const std::byte* buffer, MutableBytes packed);

}  // namespace mdfs::client
