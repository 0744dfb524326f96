// Groups and blocks of a sender.
// SPDX-License-Identifier: Apache-2.0
#include "fec_sender.h"

#include <algorithm>
#include <utility>

#include "reed_solomon.h"

namespace mdfs::gst {
namespace {

constexpr std::size_t kTimestampOffset = 4;  // in an RTP packet

std::uint32_t timestamp_of(std::span<const std::byte> rtp) { return read_big_endian(rtp.subspan(kTimestampOffset), 4); }

bool is_rtp(std::span<const std::byte> packet) {
  return packet.size() >= kMinRtpBytes && packet.size() <= kMaxRtpBytes && packet[0] >> 6 == std::byte{2};
}

std::string out_of_range(const char* name, int value, int least, int most, const char* also = "") {
  return std::string(name) + " is " + std::to_string(value) + ": allowed are " + std::to_string(least) + " to " +
         std::to_string(most) + also;
}

}  // namespace

std::string complaint_about(const FecSettings& settings) {
  if (settings.redundancy < 0 || settings.redundancy > kMaxRedundancy)
    return out_of_range("redundancy", settings.redundancy, 0, kMaxRedundancy, " percent");
  if (settings.important_redundancy < -1 || settings.important_redundancy > kMaxRedundancy)
    return out_of_range("important-redundancy", settings.important_redundancy, 0, kMaxRedundancy,
                        " percent, and -1 for that of other frames");
  if (settings.important_every < 0 || settings.important_every > kMaxImportantEvery)
    return out_of_range("important-every", settings.important_every, 0, kMaxImportantEvery, " frames");
  if (settings.interval_ms < 1 || settings.interval_ms > kMaxIntervalMs)
    return out_of_range("interval", settings.interval_ms, 1, kMaxIntervalMs, " milliseconds");
  return {};
}

std::size_t repairs_for(std::size_t sources, int redundancy) {
  return (sources * static_cast<std::size_t>(redundancy) + 99) / 100;
}

std::size_t max_sources(int redundancy) {
  std::size_t most = kMaxBlockPackets * 100 / (100 + static_cast<std::size_t>(redundancy));
  while (most + repairs_for(most, redundancy) > kMaxBlockPackets) --most;
  return most;
}

bool FecSender::begins_frame(std::span<const std::byte> rtp) const {
  return is_rtp(rtp) && (counters_.frames == 0 || timestamp_of(rtp) != timestamp_);
}

bool FecSender::add(std::span<const std::byte> rtp) {
  if (!is_rtp(rtp)) return false;
  if (begins_frame(rtp)) ++counters_.frames;
  timestamp_ = timestamp_of(rtp);
  const auto every = static_cast<std::uint64_t>(settings_.important_every);
  const bool is_important = every > 0 && (counters_.frames - 1) % every == 0;
  (is_important ? important_ : ordinary_).push_back(group_.size());
  Packet packet(kFecHeaderBytes);
  packet.insert(packet.end(), rtp.begin(), rtp.end());
  bytes_ += packet.size();
  group_.push_back(std::move(packet));
  return true;
}

// The members become sources of new blocks, whose repair packets are appended.
void FecSender::add_blocks(std::vector<Packet>& all, const std::vector<std::size_t>& members, int redundancy,
                           std::vector<std::vector<Packet>>& repairs) {
  const std::size_t most = max_sources(redundancy);
  const std::size_t blocks = (members.size() + most - 1) / most;
  for (std::size_t block = 0; block < blocks; ++block) {
    std::vector<std::size_t> own;
    for (std::size_t i = block; i < members.size(); i += blocks) own.push_back(members[i]);
    FecHeader header{FecKind::kSource, 0, static_cast<std::uint8_t>(own.size()), stream_, next_block_++};
    std::size_t longest = 0;
    for (const std::size_t place : own) {
      std::ranges::copy(to_bytes(header), all[place].begin());
      ++header.index;
      longest = std::max(longest, all[place].size() - kFecHeaderBytes);
    }
    const std::size_t bytes = kSymbolLengthBytes + longest;
    std::vector<Packet> symbols;
    std::vector<const std::byte*> inputs;
    for (const std::size_t place : own) {
      Packet symbol(bytes);
      const std::span<const std::byte> rtp = std::span(all[place]).subspan(kFecHeaderBytes);
      write_big_endian(static_cast<std::uint32_t>(rtp.size()), symbol, kSymbolLengthBytes);
      std::ranges::copy(rtp, symbol.begin() + kSymbolLengthBytes);
      inputs.push_back(symbols.emplace_back(std::move(symbol)).data());
    }
    header.kind = FecKind::kRepair;
    std::vector<Packet>& made = repairs.emplace_back();
    for (const Packet& symbol : repair_symbols(inputs, repairs_for(own.size(), redundancy), bytes)) {
      const auto head = to_bytes(header);
      Packet packet(head.begin(), head.end());
      packet.insert(packet.end(), symbol.begin(), symbol.end());
      ++header.index;
      made.push_back(std::move(packet));
    }
  }
}

std::vector<Packet> FecSender::finish_group() {
  std::vector<Packet> all = std::exchange(group_, {});
  counters_.source_packets += all.size();
  const int important = settings_.important_redundancy < 0 ? settings_.redundancy : settings_.important_redundancy;
  std::vector<std::vector<Packet>> repairs;
  add_blocks(all, std::exchange(important_, {}), important, repairs);
  add_blocks(all, std::exchange(ordinary_, {}), settings_.redundancy, repairs);
  for (std::size_t turn = 0, added = 1; added > 0; ++turn) {
    added = 0;
    for (auto& block : repairs) {
      if (turn >= block.size()) continue;
      all.push_back(std::move(block[turn]));
      ++added;
    }
    counters_.repair_packets += added;
  }
  bytes_ = 0;
  return all;
}

Packet FecSender::end() const {
  const auto head = to_bytes({FecKind::kEnd, 0, 1, stream_, next_block_});
  Packet packet(head.begin(), head.end());
  packet.resize(kEndPacketBytes);
  write_big_endian(static_cast<std::uint32_t>(counters_.frames), std::span(packet).subspan(kFecHeaderBytes), 4);
  return packet;
}

}  // namespace mdfs::gst
