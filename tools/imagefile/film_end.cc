// SPDX-License-Identifier: Apache-2.0
#include "imagefile/film_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::imagefile {
namespace {

constexpr std::uint64_t kWordBits = 32, kWordBytes = 4;
constexpr std::uint32_t kUndefined = 0xffffffff;  // in a field of a DPX file

// The integers of a header, in the byte order of its magic.
class FilmHeader {
 public:
  // Refuses a file that is shorter than `size`.
  static Result<FilmHeader> read(ByteSource& bytes, std::size_t size, bool big_endian, const std::string& name,
                                 const char* format) {
    if (bytes.size() < size)
      return Error{Errc::kBadData,
                   fmt::format("{}: the file is truncated: a header of {} has {} bytes, the file has {}", name, format,
                               size, bytes.size())};
    FilmHeader header(size, big_endian);
    MDFS_TRY(bytes.read_at(0, header.bytes_));
    return header;
  }

  // Inside the header.
  std::uint32_t number(std::size_t at, std::size_t length) const {
    MDFS_CHECK(inside(at, length, bytes_.size()));
    return static_cast<std::uint32_t>(to_integer(ConstBytes(bytes_).subspan(at, length), big_endian_));
  }
  std::uint32_t u8(std::size_t at) const { return number(at, 1); }
  std::uint32_t u16(std::size_t at) const { return number(at, 2); }
  std::uint32_t u32(std::size_t at) const { return number(at, 4); }

 private:
  FilmHeader(std::size_t size, bool big_endian) : bytes_(size), big_endian_(big_endian) {}
  ByteVector bytes_;
  bool big_endian_;
};

// Rows of samples behind the header.
struct Samples {
  std::uint64_t offset = 0, rows = 0, row_bytes = 0;
};

Status check_inside(const Samples& samples, std::uint64_t size, const std::string& name, const char* format) {
  const std::uint64_t there = size - std::min(size, samples.offset);
  if (samples.rows == 0 || samples.row_bytes <= there / samples.rows) return {};
  return {Errc::kBadData,
          fmt::format("{}: the file is truncated: its {} header requires {} rows of {} bytes from byte {} on, the file "
                      "has {} bytes",
                      name, format, samples.rows, samples.row_bytes, samples.offset, size)};
}

// OpenImageIO exchanges width and height of a picture whose first direction is down or up, and leaves the samples in
// the order of the file.
Status check_orientation(std::uint32_t orientation, const std::string& name, const char* format) {
  constexpr std::uint32_t kFirstTurned = 4, kLastTurned = 7;
  if (orientation < kFirstTurned || orientation > kLastTurned) return {};
  return {Errc::kNotSupported,
          fmt::format("{}: a {} picture that is stored by columns (orientation {}), whose rows its reader mixes up; "
                      "convert the file to TIFF",
                      name, format, orientation)};
}

// How many samples a pixel of an element has, by the element's descriptor.
std::uint64_t dpx_components(std::uint32_t descriptor) {
  constexpr std::uint32_t kRgb = 50, kRgba = 51, kAbgr = 52, kCbYCrY = 100, kCbYACrYA = 101, kCbYCr = 102,
                          kCbYCrA = 103, kUser2 = 150, kUser8 = 156;
  if (descriptor >= kUser2 && descriptor <= kUser8) return descriptor - kUser2 + 2;
  if (descriptor == kRgba || descriptor == kAbgr || descriptor == kCbYCrA) return 4;
  if (descriptor == kRgb || descriptor == kCbYCr || descriptor == kCbYACrYA) return 3;
  return descriptor == kCbYCrY ? 2 : 1;
}

std::uint64_t whole_words(std::uint64_t bits) { return ceil_div(bits, kWordBits) * kWordBytes; }

// Rows of whole bytes are not padded, as OpenImageIO writes and reads them; the others fill words of 32 bits.
std::uint64_t dpx_row_bytes(std::uint64_t samples, std::uint32_t bits, bool filled) {
  if (bits % 8 == 0) return samples * (bits / 8);
  if (filled && bits == 10) return ceil_div(samples, 3) * kWordBytes;
  if (filled && bits == 12) return samples * 2;
  return whole_words(samples * bits);
}

}  // namespace

bool is_dpx(ConstBytes start) { return as_text(start).starts_with("SDPX") || as_text(start).starts_with("XPDS"); }

Status check_dpx(ByteSource& bytes, const std::string& name) {
  constexpr std::size_t kFirstElement = 780, kElementBytes = 72, kMaxElements = 8;
  constexpr std::size_t kHeaderBytes = kFirstElement + kElementBytes * kMaxElements;
  char magic = 0;
  if (bytes.size() > 0) MDFS_TRY(bytes.read_at(0, std::as_writable_bytes(std::span(&magic, 1))));
  MDFS_TRY_ASSIGN(const FilmHeader header, FilmHeader::read(bytes, kHeaderBytes, magic == 'S', name, "DPX"));
  const std::size_t elements = header.u16(770);
  if (elements < 1 || elements > kMaxElements)
    return {Errc::kBadData, fmt::format("{}: a DPX file has 1 to 8 elements, not {}", name, elements)};
  for (std::size_t at = kFirstElement; at < kFirstElement + elements * kElementBytes; at += kElementBytes) {
    const std::uint32_t bits = header.u8(at + 23), packing = header.u16(at + 24), encoding = header.u16(at + 26);
    if (encoding == 1) return {Errc::kNotSupported, name + ": a run-length encoded DPX file"};
    const std::uint32_t own_offset = header.u32(at + 28), padding = header.u32(at + 32);
    Samples samples;
    samples.offset = own_offset == 0 || own_offset == kUndefined ? header.u32(4) : own_offset;
    samples.rows = header.u32(776);
    samples.row_bytes = dpx_row_bytes(header.u32(772) * dpx_components(header.u8(at + 20)), bits, packing != 0) +
                        (padding == kUndefined ? 0 : padding);
    MDFS_TRY(check_inside(samples, bytes.size(), name, "DPX"));
  }
  return check_orientation(header.u16(768), name, "DPX");
}

bool is_cineon(ConstBytes start) {
  return as_text(start).starts_with("\x80\x2a\x5f\xd7") || as_text(start).starts_with("\xd7\x5f\x2a\x80");
}

Status check_cineon(ByteSource& bytes, const std::string& name) {
  constexpr std::size_t kHeaderBytes = 1024;
  constexpr std::uint32_t kLongWordLeft = 5, kLongWordRight = 6;
  std::byte magic{};
  if (bytes.size() > 0) MDFS_TRY(bytes.read_at(0, MutableBytes(&magic, 1)));
  MDFS_TRY_ASSIGN(const FilmHeader header,
                  FilmHeader::read(bytes, kHeaderBytes, magic == std::byte{0x80}, name, "Cineon"));
  const std::uint32_t channels = header.u8(193), bits = header.u8(198), packing = header.u8(681);
  if (bits != 10 || (packing != kLongWordLeft && packing != kLongWordRight) || header.u8(680) != 0)
    return {Errc::kNotSupported, name + ": a Cineon file whose samples are not 10 bits, three in a word, by pixels"};
  const std::uint32_t padding = header.u32(684);
  const std::uint64_t row = dpx_row_bytes(std::uint64_t{header.u32(200)} * channels, bits, true);
  const Samples samples{header.u32(4), header.u32(204), row + (padding == kUndefined ? 0 : padding)};
  MDFS_TRY(check_inside(samples, bytes.size(), name, "Cineon"));
  return check_orientation(header.u8(192), name, "Cineon");
}

}  // namespace mdfs::imagefile
