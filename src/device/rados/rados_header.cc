// Encodes, decodes and checks headers.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/rados_header.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <optional>

#include "device/disk.h"

namespace mdfs::device {
namespace {

constexpr std::string_view kHeaderMagic = "mdfs-disk ";
constexpr std::uint64_t kHeaderVersion = 1;

// Takes a number and the character behind it off the text; nothing if they are not there.
std::optional<std::uint64_t> take_number(std::string_view& text, char end) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(stop - text.data());
  if (error != std::errc() || digits == text.size() || text[digits] != end) return std::nullopt;
  text.remove_prefix(digits + 1);
  return number;
}

}  // namespace

std::string encode_rados_header(const RadosHeader& header) {
  return fmt::format("{}{} {} {}\n", kHeaderMagic, kHeaderVersion, header.size_bytes, header.object_bytes);
}

Status check_rados_header(const std::string& disk, const RadosHeader& header) {
  if (header.size_bytes == 0 || header.size_bytes % kAlignment != 0 || header.size_bytes > kMaxRadosDiskBytes)
    return {Errc::kInvalidArgument, fmt::format("{}: a disk of {} bytes: must be a multiple of {}, at most {}", disk,
                                                header.size_bytes, kAlignment, kMaxRadosDiskBytes)};
  if (!std::has_single_bit(header.object_bytes) || header.object_bytes < kMinRadosObjectBytes ||
      header.object_bytes > kMaxRadosObjectBytes)
    return {Errc::kInvalidArgument, fmt::format("{}: objects of {} bytes: must be a power of two from {} to {}", disk,
                                                header.object_bytes, kMinRadosObjectBytes, kMaxRadosObjectBytes)};
  return {};
}

Result<RadosHeader> decode_rados_header(const std::string& disk, std::string_view text) {
  const Error foreign{Errc::kForeignDisk, disk + ": the object of this name is not a disk of MDFS"};
  if (!text.starts_with(kHeaderMagic)) return foreign;
  text.remove_prefix(kHeaderMagic.size());
  const auto version = take_number(text, ' ');
  if (!version) return foreign;
  if (*version > kHeaderVersion)
    return Error{Errc::kNewerFormat,
                 fmt::format("{}: its header is of version {}, known is {}", disk, *version, kHeaderVersion)};
  const auto size = take_number(text, ' ');
  const auto object = size ? take_number(text, '\n') : std::nullopt;
  if (*version != kHeaderVersion || !object || !text.empty())
    return Error{Errc::kCorrupt, disk + ": its header cannot be read"};
  const RadosHeader header{*size, *object};
  if (const Status sound = check_rados_header(disk, header); !sound.ok())
    return Error{Errc::kCorrupt, sound.error().where};
  return header;
}

}  // namespace mdfs::device
