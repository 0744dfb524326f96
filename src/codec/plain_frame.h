// A zstd frame that is not compressed: its size follows from the size of its content.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "base/result.h"

namespace mdfs::codec {

// One frame of raw blocks (RFC 8878, section 3.1.1.2.2), with its content size and without a checksum. The content has
// 1 byte or more, and less than 4 GiB.
std::uint64_t plain_frame_bytes(std::uint64_t content_bytes);

// Gives bytes [offset, offset + into.size()) of the content.
using FrameContent = std::function<Status(std::uint64_t offset, MutableBytes into)>;
// Bytes [offset, offset + into.size()) of the frame, which lie within it (abort). Asks for the content in ascending
// order, and for no other bytes than these.
Status read_plain_frame(std::uint64_t content_bytes, std::uint64_t offset, MutableBytes into,
                        const FrameContent& content);

}  // namespace mdfs::codec
