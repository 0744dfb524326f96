// The header of a disk in RADOS: its size and the size of its objects, in an attribute of one object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mdfs::device {

// Objects of new disks; doc/DESIGN.md has the measurement.
inline constexpr std::uint64_t kRadosObjectBytes = std::uint64_t{4} << 20;
inline constexpr std::uint64_t kMinRadosObjectBytes = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kMaxRadosObjectBytes = std::uint64_t{32} << 20;
inline constexpr std::uint64_t kMaxRadosDiskBytes = std::uint64_t{1} << 60;

struct RadosHeader {
  std::uint64_t size_bytes = 0;    // of the disk: a multiple of kAlignment
  std::uint64_t object_bytes = 0;  // a power of two
  bool operator==(const RadosHeader&) const = default;
};

// "mdfs-disk 1 SIZE OBJECT_BYTES\n"
std::string encode_rados_header(const RadosHeader& header);
// kForeignDisk: no header of MDFS. kNewerFormat: of a later version. kCorrupt: a number out of its range.
Result<RadosHeader> decode_rados_header(const std::string& disk, std::string_view text);
// kInvalidArgument names the number and its range.
Status check_rados_header(const std::string& disk, const RadosHeader& header);

}  // namespace mdfs::device
