// SPDX-License-Identifier: Apache-2.0
#include "imagefile/picture_exif.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/check.h"
#include "imagefile/jpeg_walk.h"

namespace mdfs::imagefile {
namespace {

constexpr std::string_view kExifName{"Exif\0\0", 6};
constexpr std::uint64_t kMarkerBytes = 2, kLengthBytes = 2, kExifHead = kLengthBytes + kExifName.size();

Result<std::string> text_at(ByteSource& bytes, std::uint64_t at, std::uint64_t length) {
  std::string text(static_cast<std::size_t>(length), '\0');
  MDFS_TRY(bytes.read_at(at, std::as_writable_bytes(std::span(text))));
  return text;
}

// The segment with EXIF before the first scan of a JPEG file, whole. Nothing: there is none.
Result<std::optional<JpegSegment>> find_exif(ByteSource& bytes) {
  const std::string name;
  JpegWalk walk(bytes, name);
  for (;;) {
    const Result<JpegSegment> segment = walk.next();
    if (!segment.ok() && segment.error().code != Errc::kBadData) return segment.error();
    if (!segment.ok() || segment->marker == kJpegEnd || segment->marker == kJpegScan) break;
    if (segment->marker != kJpegExif || segment->length < kExifHead) continue;
    if (!inside(segment->at, segment->length, bytes.size())) break;
    MDFS_TRY_ASSIGN(const std::string head, text_at(bytes, segment->at + kLengthBytes, kExifName.size()));
    if (head == kExifName) return std::optional(*segment);
  }
  return std::optional<JpegSegment>();
}

}  // namespace

Result<std::string> read_jpeg_exif(ByteSource& bytes) {
  MDFS_TRY_ASSIGN(const std::optional<JpegSegment> segment, find_exif(bytes));
  return segment ? text_at(bytes, segment->at + kExifHead, segment->length - kExifHead) : std::string();
}

std::string with_exif(ConstBytes start, std::string_view exif) {
  MDFS_CHECK(start.size() >= kMarkerBytes && exif.size() <= kMostJpegExifBytes);
  const std::size_t length = kExifHead + exif.size();
  std::string made(as_text(start));
  MemoryBytes bytes(start);
  const auto old = find_exif(bytes);
  MDFS_CHECK(old.ok());  // memory can be read
  if (*old) made.erase((*old)->at - kMarkerBytes, kMarkerBytes + (*old)->length);
  std::string segment = {'\xff', '\xe1', static_cast<char>(length >> 8), static_cast<char>(length)};
  segment += kExifName;
  segment += exif;
  return made.insert(kMarkerBytes, segment);  // behind the start of the image
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
