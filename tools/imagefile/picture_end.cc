// SPDX-License-Identifier: Apache-2.0
#include "imagefile/picture_end.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "imagefile/jpeg_walk.h"

namespace mdfs::imagefile {
namespace {

constexpr std::string_view kCodestreamMagic = "\xff\x4f\xff\x51";
constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";

// Walks the blocks of a GIF file.
class GifWalk {
 public:
  GifWalk(ByteSource& bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Status run() {
    at_ = 10;  // behind the magic and the lengths of the screen
    MDFS_TRY_ASSIGN(const unsigned screen, next());
    at_ += 2 + palette_bytes(screen);
    for (;;) {
      MDFS_TRY_ASSIGN(const unsigned kind, next());
      if (kind == ';') return {};
      if (kind == ',') {
        at_ += 8;  // where the frame lies on the screen
        MDFS_TRY_ASSIGN(const unsigned frame, next());
        at_ += palette_bytes(frame);
      } else if (kind != '!') {
        return {Errc::kBadData, fmt::format("{}: GIF is damaged before byte {}", name_, at_)};
      }
      ++at_;  // what the extension is, or how wide the codes of the frame are
      MDFS_TRY(skip_blocks());
    }
  }

 private:
  static std::uint64_t palette_bytes(unsigned flags) { return (flags & 0x80) != 0 ? 3u << ((flags & 7) + 1) : 0; }

  Result<unsigned> next() {
    std::array<std::byte, 1> byte{};
    if (at_ >= bytes_.size()) return cut_short(name_, "GIF", bytes_.size()).error();
    MDFS_TRY(bytes_.read_at(at_++, byte));
    return std::to_integer<unsigned>(byte[0]);
  }
  Status skip_blocks() {
    for (;;) {
      MDFS_TRY_ASSIGN(const unsigned length, next());
      if (length == 0) return {};
      at_ += length;
    }
  }

  ByteSource& bytes_;
  const std::string& name_;
  std::uint64_t at_ = 0;
};

}  // namespace

Status cut_short(const std::string& name, const char* format, std::uint64_t size) {
  return {Errc::kBadData,
          fmt::format("{}: the file is truncated: the {} does not end within its {} bytes", name, format, size)};
}

bool is_gif(ConstBytes start) { return as_text(start).starts_with("GIF8"); }

Status check_gif(ByteSource& bytes, const std::string& name) { return GifWalk(bytes, name).run(); }

bool is_jpeg(ConstBytes start) { return as_text(start).starts_with("\xff\xd8\xff"); }

Status check_jpeg(ByteSource& bytes, const std::string& name) {
  JpegWalk walk(bytes, name);
  for (bool scanned = false;;) {
    MDFS_TRY_ASSIGN(const JpegSegment segment, walk.next());
    if (segment.marker == kJpegEnd && scanned) return {};
    if (segment.marker == kJpegEnd) return {Errc::kBadData, name + ": the JPEG file holds no picture"};
    if (segment.marker != kJpegScan) continue;
    scanned = true;
    MDFS_TRY(walk.skip_scan());
  }
}

bool is_jpeg2000(ConstBytes start) {
  return as_text(start).starts_with(kCodestreamMagic) ||
         as_text(start).starts_with(std::string_view("\0\0\0\x0cjP  \r\n\x87\n", 12));
}

// A codestream ends with its end mark. Source: ITU-T T.800, annexes A and I.
Status check_jpeg2000(ByteSource& bytes, const std::string& name) {
  constexpr std::uint64_t kBoxBytes = 8, kLongBoxBytes = 16;
  std::uint64_t at = 0, end = bytes.size();
  std::array<std::byte, 16> head{};
  if (!inside(0, head.size(), end)) return cut_short(name, "JPEG 2000", end);
  MDFS_TRY(bytes.read_at(0, head));
  for (bool found = as_text(head).starts_with(kCodestreamMagic); !found;) {
    if (!inside(at, kBoxBytes, bytes.size())) return cut_short(name, "JPEG 2000", bytes.size());
    MDFS_TRY(bytes.read_at(at, MutableBytes(head).first(kBoxBytes)));
    std::uint64_t length = to_integer(ConstBytes(head).first(4), true), before = kBoxBytes;
    found = as_text(ConstBytes(head).subspan(4, 4)) == "jp2c";
    if (length == 1) {
      before = kLongBoxBytes;
      if (!inside(at, before, bytes.size())) return cut_short(name, "JPEG 2000", bytes.size());
      MDFS_TRY(bytes.read_at(at + kBoxBytes, MutableBytes(head).first(kBoxBytes)));
      length = to_integer(ConstBytes(head).first(kBoxBytes), true);
    } else if (length == 0) {
      length = bytes.size() - at;  // the last box
    }
    if (length < before || !inside(at, length, bytes.size())) return cut_short(name, "JPEG 2000", bytes.size());
    end = at + length;
    at = found ? at + before : end;
  }
  std::array<std::byte, 2> mark{};
  if (end - at < kCodestreamMagic.size() + mark.size()) return cut_short(name, "JPEG 2000", bytes.size());
  MDFS_TRY(bytes.read_at(end - mark.size(), mark));
  return as_text(mark) == "\xff\xd9" ? Status() : cut_short(name, "JPEG 2000", bytes.size());
}

bool is_png(ConstBytes start) { return as_text(start).starts_with(kPngMagic); }

namespace {

// The checksum of a chunk is over its type and content. Without this libpng prints a line of its own before the error.
Status check_png_chunk(ByteSource& bytes, std::uint64_t at, std::uint64_t length, const std::string& name) {
  constexpr std::uint64_t kBlock = 64u << 10;
  uLong checksum = ::crc32(0, nullptr, 0);
  ByteVector block;
  for (std::uint64_t done = 0; done < length; done += block.size()) {
    block.resize(static_cast<std::size_t>(std::min(kBlock, length - done)));
    MDFS_TRY(bytes.read_at(at + done, block));
    checksum = ::crc32(checksum, reinterpret_cast<const Bytef*>(block.data()), static_cast<uInt>(block.size()));
  }
  std::array<std::byte, 4> expected{};
  MDFS_TRY(bytes.read_at(at + length, expected));
  if (to_integer(expected, true) == checksum) return {};
  return {Errc::kBadData, fmt::format("{}: PNG is damaged: wrong checksum of the chunk at byte {}", name, at - 4)};
}

}  // namespace

Status check_png(ByteSource& bytes, const std::string& name) {
  constexpr std::uint64_t kAround = 12;  // length and type before the content of a chunk, the checksum behind it
  for (std::uint64_t at = kPngMagic.size();;) {
    std::array<std::byte, 8> head{};
    if (!inside(at, kAround, bytes.size())) return cut_short(name, "PNG", bytes.size());
    MDFS_TRY(bytes.read_at(at, head));
    const std::uint64_t length = kAround + to_integer(ConstBytes(head).first(4), true);
    if (!inside(at, length, bytes.size())) return cut_short(name, "PNG", bytes.size());
    MDFS_TRY(check_png_chunk(bytes, at + 4, length - 8, name));
    if (as_text(ConstBytes(head).subspan(4)) == "IEND") return {};
    at += length;
  }
}

}  // namespace mdfs::imagefile
