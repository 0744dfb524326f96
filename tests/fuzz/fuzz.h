// What fuzz targets share: the entry point that libFuzzer and the replayer call, and the input as a row of numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"

// One input. Whatever it holds: no crash, no claim broken (MDFS_CHECK), no report of a sanitizer. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace mdfs::fuzz {

inline ConstBytes input(const std::uint8_t* data, std::size_t size) {
  return as_bytes(std::string_view(reinterpret_cast<const char*>(data), size));
}

// Takes numbers from the front of the input; zero where it ends.
class Reader {
 public:
  explicit Reader(ConstBytes bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  ConstBytes rest() const { return rest_; }
  ConstBytes take_bytes(std::size_t count) {
    const ConstBytes taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  template <typename T>
  T take() {
    std::array<std::byte, sizeof(T)> number{};
    const ConstBytes taken = take_bytes(sizeof(T));
    std::copy(taken.begin(), taken.end(), number.begin());
    return load_le<T>(number, 0);
  }

 private:
  ConstBytes rest_;
};

// The input in a structure of fixed size: cut off, or filled with zeros.
inline ByteVector padded(ConstBytes bytes, std::size_t size) {
  ByteVector out(size);
  std::copy_n(bytes.begin(), std::min(size, bytes.size()), out.begin());
  return out;
}

}  // namespace mdfs::fuzz
