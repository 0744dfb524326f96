// SPDX-License-Identifier: Apache-2.0
#include "imagefile/jpeg_walk.h"

#include <algorithm>
#include <array>

#include "imagefile/picture_end.h"

namespace mdfs::imagefile {
namespace {

constexpr unsigned kStartOfImage = 0xd8, kFill = 0xff, kTemporary = 0x01;
bool is_restart(unsigned marker) { return marker >= 0xd0 && marker <= 0xd7; }

}  // namespace

Result<JpegSegment> JpegWalk::next() {
  for (;;) {
    MDFS_TRY_ASSIGN(const unsigned marker, next_marker());
    if (marker == kStartOfImage || marker == kTemporary || is_restart(marker)) continue;
    JpegSegment segment{marker, at_, 0};
    if (marker == kJpegEnd) return segment;
    std::array<std::byte, 2> length{};
    if (!inside(at_, length.size(), bytes_.size())) return cut_short(name_, "JPEG", bytes_.size()).error();
    MDFS_TRY(bytes_.read_at(at_, length));
    segment.length = to_integer(length, true);
    at_ += segment.length;
    return segment;
  }
}

Result<unsigned> JpegWalk::next_marker() {
  for (bool fill = false;;) {
    std::array<std::byte, 1> byte{};
    if (at_ >= bytes_.size()) return cut_short(name_, "JPEG", bytes_.size()).error();
    MDFS_TRY(bytes_.read_at(at_++, byte));
    const auto value = std::to_integer<unsigned>(byte[0]);
    if (fill && value != kFill && value != 0) return value;
    fill = value == kFill;
  }
}

// Within a scan a 0xff is followed by 0, or is part of a restart marker.
Status JpegWalk::skip_scan() {
  std::array<std::byte, 4096> block{};
  for (bool fill = false; at_ < bytes_.size();) {
    const MutableBytes part = MutableBytes(block).first(std::min<std::uint64_t>(block.size(), bytes_.size() - at_));
    MDFS_TRY(bytes_.read_at(at_, part));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto byte = std::to_integer<unsigned>(part[i]);
      if (fill && byte != 0 && byte != kFill && !is_restart(byte)) {
        at_ += i;
        at_ -= 1;  // the marker begins with the 0xff before, of this block or the last one
        return {};
      }
      fill = byte == kFill;
    }
    at_ += part.size();
  }
  return cut_short(name_, "JPEG", bytes_.size());
}

}  // namespace mdfs::imagefile
