// The datagrams of mdfsfecenc and mdfsfecdec: a header before each RTP packet and before each repair symbol. Pure.
//
// Source packets are RTP packets. The sender puts them into blocks; each block also has repair packets, and any k of
// the datagrams of a block with k source packets are enough to get all of them (reed_solomon.h). A datagram begins
// with kFecHeaderBytes, numbers in big endian:
//
//   0  kFecMagic, which no RTP packet begins with     2  index in the block    4  stream, a random number
//   1  FecKind                                        3  k                     8  number of the block
//
// Sources have the indices 0 to k - 1, repair packets k to 254. The symbol of a source is its length in two bytes, the
// RTP packet, and zeros. An end packet has index 0, k = 1, the number of the block after the last, and behind the
// header the number of frames in four bytes. Any thread may call any function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mdfs::gst {

using Packet = std::vector<std::byte>;

inline constexpr std::size_t kFecHeaderBytes = 12;
inline constexpr std::size_t kSymbolLengthBytes = 2;  // of a symbol
inline constexpr std::size_t kEndPacketBytes = kFecHeaderBytes + 4;
inline constexpr std::byte kFecMagic{0x4D};
inline constexpr std::size_t kMaxBlockPackets = 255;  // sources and repair packets
inline constexpr std::size_t kMaxRtpBytes = 65'000;   // with headers a datagram has at most 65507
inline constexpr std::size_t kMinRtpBytes = 12;

enum class FecKind : std::uint8_t { kSource = 0, kRepair = 1, kEnd = 2 };

struct FecHeader {
  FecKind kind = FecKind::kSource;
  std::uint8_t index = 0;
  std::uint8_t sources = 0;  // k
  std::uint32_t stream = 0;
  std::uint32_t block = 0;
  bool operator==(const FecHeader&) const = default;
};

std::array<std::byte, kFecHeaderBytes> to_bytes(const FecHeader& header);
// Nothing: no datagram of a sender, by its header and its length.
std::optional<FecHeader> parse_fec_header(std::span<const std::byte> datagram);

std::uint32_t read_big_endian(std::span<const std::byte> bytes, std::size_t count);
void write_big_endian(std::uint32_t value, std::span<std::byte> bytes, std::size_t count);

}  // namespace mdfs::gst
