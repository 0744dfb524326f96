// Pointers: addresses and checksum of a block of metadata.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// A block of the volume: the index of a disk and the number of a block on it (at most 2^48 - 1).
struct Address {
  std::uint16_t disk = 0;
  std::uint64_t block = 0;

  auto operator<=>(const Address&) const = default;
  std::uint64_t packed() const { return (std::uint64_t{disk} << kBlockBits) | block; }
  static Address unpack(std::uint64_t packed) {
    return {static_cast<std::uint16_t>(packed >> kBlockBits), packed & kMaxBlock};
  }

  static constexpr unsigned kBlockBits = 48;
  static constexpr std::uint64_t kMaxBlock = (std::uint64_t{1} << kBlockBits) - 1;
};

// mdfs_pointer. The checksum is a CRC-32C, the only type in use.
struct Pointer {
  std::uint32_t crc32c = 0;
  std::uint32_t length = 0;  // bytes
  std::uint64_t birth = 0;   // generation; 0: null
  std::uint8_t copies = 0;   // 1..3
  std::array<Address, MDFS_MAX_COPIES> address{};

  bool operator==(const Pointer&) const = default;
  bool is_null() const { return birth == 0; }
  std::span<const Address> places() const { return {address.data(), copies}; }
};

// The pointer to `block`, which is about to be written at all of `places` (1..3) by generation `birth`.
Pointer make_pointer(ConstBytes block, std::uint64_t birth, std::span<const Address> places);

// `out` and `bytes` hold at least sizeof(mdfs_pointer) from `offset`.
void encode(const Pointer& pointer, MutableBytes out, std::size_t offset = 0);
// Checks: pointer.null (a null pointer is all zero), pointer.checksum-type (another than CRC-32C: kNewerFormat),
// pointer.copies, pointer.length, pointer.reserved, pointer.checksum (zero beyond its 4 bytes), pointer.address (zero
// beyond `copies`; disk index below 64; no address twice).
Result<Pointer> decode_pointer(ConstBytes bytes, std::size_t offset = 0);

// Checks a block that was read from one of its places. Checks: block.length, block.checksum.
Status verify(const Pointer& pointer, ConstBytes block);

}  // namespace mdfs::format
