// SPDX-License-Identifier: Apache-2.0
#include "imagefile/picture_exif.h"

#include <array>
#include <span>
#include <string_view>

#include "base/check.h"

namespace mdfs::imagefile {
namespace {

constexpr std::string_view kExifName{"Exif\0\0", 6};
constexpr unsigned kExifSegment = 0xe1, kScanSegment = 0xda, kMarkerFill = 0xff;
constexpr std::uint64_t kSegmentHead = 4;  // marker and length

Result<std::string> text_at(ByteSource& bytes, std::uint64_t at, std::uint64_t length) {
  std::string text(static_cast<std::size_t>(length), '\0');
  MDFS_TRY(bytes.read_at(at, std::as_writable_bytes(std::span(text))));
  return text;
}

// Calls seen(marker, place of the 0xff, bytes with the marker) for each segment before the first scan, until it returns
// false.
template <typename Seen>
Status walk_segments(ByteSource& bytes, const Seen& seen) {
  std::array<std::byte, 4> head{};
  for (std::uint64_t at = 2; inside(at, head.size(), bytes.size());) {
    MDFS_TRY(bytes.read_at(at, head));
    const auto first = std::to_integer<unsigned>(head[0]), marker = std::to_integer<unsigned>(head[1]);
    if (first != kMarkerFill || marker == kMarkerFill) {  // bytes between segments
      ++at;
      continue;
    }
    const std::uint64_t length = to_integer(ConstBytes(head).subspan(2), true);
    if (marker == kScanSegment || length < 2 || !inside(at + 2, length, bytes.size())) break;
    MDFS_TRY_ASSIGN(const bool more, seen(marker, at, length + 2));
    if (!more) break;
    at += length + 2;
  }
  return {};
}

}  // namespace

Result<std::string> read_jpeg_exif(ByteSource& bytes) {
  std::string exif;
  const auto look = [&](unsigned marker, std::uint64_t at, std::uint64_t length) -> Result<bool> {
    if (marker != kExifSegment) return true;
    MDFS_TRY_ASSIGN(const std::string segment, text_at(bytes, at + kSegmentHead, length - kSegmentHead));
    if (segment.starts_with(kExifName)) exif = segment.substr(kExifName.size());
    return exif.empty();
  };
  MDFS_TRY(walk_segments(bytes, look));
  return exif;
}

std::string with_exif(ConstBytes start, std::string_view exif) {
  MDFS_CHECK(start.size() >= 2 && exif.size() <= kMostJpegExifBytes);
  const std::size_t length = kExifName.size() + exif.size() + 2;
  std::string made(as_text(start.first(2)));
  made += {'\xff', '\xe1', static_cast<char>(length >> 8), static_cast<char>(length)};
  made += kExifName;
  made += exif;
  std::string rest(as_text(start.subspan(2)));
  MemoryBytes bytes(start);
  const auto cut = [&](unsigned marker, std::uint64_t at, std::uint64_t all) -> Result<bool> {
    if (marker != kExifSegment || !as_text(start.subspan(at + kSegmentHead)).starts_with(kExifName)) return true;
    rest.erase(at - 2, all);
    return false;
  };
  (void)walk_segments(bytes, cut);  // reads memory
  return made + rest;
}

Result<std::string> read_png_exif(ByteSource& bytes) {
  constexpr std::uint64_t kMagicBytes = 8, kAroundChunk = 12;
  constexpr std::uint64_t kMostBytes = 16u << 20;
  std::array<std::byte, 8> head{};
  for (std::uint64_t at = kMagicBytes; inside(at, kAroundChunk, bytes.size());) {
    MDFS_TRY(bytes.read_at(at, head));
    const std::uint64_t length = to_integer(ConstBytes(head).first(4), true);
    const std::string_view type = as_text(ConstBytes(head).subspan(4));
    if (!inside(at + head.size(), length, bytes.size()) || type == "IEND") break;
    if (type == "eXIf" && length <= kMostBytes) return text_at(bytes, at + head.size(), length);
    at += kAroundChunk + length;
  }
  return std::string();
}

}  // namespace mdfs::imagefile
