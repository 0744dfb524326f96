// Random bytes with numbers in them.
// SPDX-License-Identifier: Apache-2.0
#include "meter/noise.h"

#include <cstring>

#include "meter/profile.h"
#include "model/random.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kWriterBits = 40;  // numbers of a writer: 2^40 blocks of 4 KiB are 4 PiB

}  // namespace

Noise::Noise(std::uint64_t most_bytes, std::uint64_t writer) : buffer_(most_bytes), number_(writer << kWriterBits) {
  model::Random random(writer + 1);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= buffer_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t bits = random.bits();
    std::memcpy(buffer_.data() + at, &bits, sizeof bits);
  }
}

ConstBytes Noise::next(std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += meter::kAlignment, ++number_)
    std::memcpy(buffer_.data() + at, &number_, sizeof number_);
  return buffer_.bytes().first(bytes);
}

}  // namespace mdfs::tools
