// Headers of datagrams.
// SPDX-License-Identifier: Apache-2.0
#include "fec_packet.h"

namespace mdfs::gst {

std::uint32_t read_big_endian(std::span<const std::byte> bytes, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

void write_big_endian(std::uint32_t value, std::span<std::byte> bytes, std::size_t count) {
  for (std::size_t i = count; i-- > 0; value >>= 8) bytes[i] = static_cast<std::byte>(value & 0xFF);
}

std::array<std::byte, kFecHeaderBytes> to_bytes(const FecHeader& header) {
  std::array<std::byte, kFecHeaderBytes> bytes{};
  bytes[0] = kFecMagic;
  bytes[1] = static_cast<std::byte>(header.kind);
  bytes[2] = static_cast<std::byte>(header.index);
  bytes[3] = static_cast<std::byte>(header.sources);
  write_big_endian(header.stream, std::span(bytes).subspan(4), 4);
  write_big_endian(header.block, std::span(bytes).subspan(8), 4);
  return bytes;
}

std::optional<FecHeader> parse_fec_header(std::span<const std::byte> datagram) {
  if (datagram.size() < kFecHeaderBytes || datagram[0] != kFecMagic) return std::nullopt;
  FecHeader header;
  header.kind = static_cast<FecKind>(datagram[1]);
  header.index = std::to_integer<std::uint8_t>(datagram[2]);
  header.sources = std::to_integer<std::uint8_t>(datagram[3]);
  header.stream = read_big_endian(datagram.subspan(4), 4);
  header.block = read_big_endian(datagram.subspan(8), 4);
  const std::size_t bytes = datagram.size() - kFecHeaderBytes;
  if (header.sources == 0 || header.index >= kMaxBlockPackets) return std::nullopt;
  switch (header.kind) {
    case FecKind::kSource:
      if (header.index >= header.sources || bytes < kMinRtpBytes || bytes > kMaxRtpBytes) return std::nullopt;
      return header;
    case FecKind::kRepair:
      if (header.index < header.sources || bytes < kSymbolLengthBytes + kMinRtpBytes ||
          bytes > kSymbolLengthBytes + kMaxRtpBytes)
        return std::nullopt;
      return header;
    case FecKind::kEnd:
      if (header.index != 0 || header.sources != 1 || datagram.size() != kEndPacketBytes) return std::nullopt;
      return header;
  }
  return std::nullopt;
}

}  // namespace mdfs::gst
