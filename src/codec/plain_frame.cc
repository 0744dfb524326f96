// The layout of frames of raw blocks.
// SPDX-License-Identifier: Apache-2.0
#include "codec/plain_frame.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::codec {
namespace {

constexpr std::uint64_t kBlock = 128u << 10;  // the largest that the format allows
constexpr std::uint64_t kBlockHeader = 3, kFrameHeader = 9;

std::array<std::byte, kFrameHeader> frame_header(std::uint64_t content_bytes) {
  constexpr std::uint64_t kMagic = 0xFD2FB528;
  constexpr std::uint64_t kDescriptor = 2u << 6 | 1u << 5;  // four bytes of content size, and a single segment
  std::array<std::byte, kFrameHeader> header{};
  for (unsigned i = 0; i < 4; ++i) {
    header[i] = static_cast<std::byte>(kMagic >> 8 * i);
    header[5 + i] = static_cast<std::byte>(content_bytes >> 8 * i);
  }
  header[4] = static_cast<std::byte>(kDescriptor);
  return header;
}

std::array<std::byte, kBlockHeader> block_header(std::uint64_t bytes, bool is_last) {
  const std::uint64_t fields = bytes << 3 | (is_last ? 1u : 0u);  // of the type raw, which is 0
  return {static_cast<std::byte>(fields), static_cast<std::byte>(fields >> 8), static_cast<std::byte>(fields >> 16)};
}

std::size_t copy_from(ConstBytes header, std::uint64_t offset, MutableBytes into) {
  const ConstBytes rest = header.subspan(static_cast<std::size_t>(offset));
  const std::size_t count = std::min(rest.size(), into.size());
  std::copy_n(rest.begin(), count, into.begin());
  return count;
}

}  // namespace

std::uint64_t plain_frame_bytes(std::uint64_t content_bytes) {
  MDFS_CHECK(content_bytes > 0 && content_bytes <= std::numeric_limits<std::uint32_t>::max());
  return kFrameHeader + ceil_div(content_bytes, kBlock) * kBlockHeader + content_bytes;
}

Status read_plain_frame(std::uint64_t content_bytes, std::uint64_t offset, MutableBytes into,
                        const FrameContent& content) {
  const std::uint64_t size = plain_frame_bytes(content_bytes);
  MDFS_CHECK(offset <= size && into.size() <= size - offset);
  while (!into.empty()) {
    std::size_t count = 0;
    if (offset < kFrameHeader) {
      count = copy_from(frame_header(content_bytes), offset, into);
    } else {
      const std::uint64_t begin = (offset - kFrameHeader) / (kBlockHeader + kBlock) * kBlock;
      const std::uint64_t within = (offset - kFrameHeader) % (kBlockHeader + kBlock);
      const std::uint64_t bytes = std::min(kBlock, content_bytes - begin);
      if (within < kBlockHeader) {
        count = copy_from(block_header(bytes, begin + bytes == content_bytes), within, into);
      } else {
        const std::uint64_t first = within - kBlockHeader;
        count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), bytes - first));
        MDFS_TRY(content(begin + first, into.first(count)));
      }
    }
    offset += count;
    into = into.subspan(count);
  }
  return {};
}

}  // namespace mdfs::codec
