// What a receiver makes of the datagrams of a FecSender: the RTP packets, also those that the network has lost. Pure.
//
// A source packet is handed on at once, a lost one when enough datagrams of its block have arrived: behind later ones,
// so a jitter buffer follows. Datagrams may come in any order, more than once, damaged, or from elsewhere. One thread
// at a time calls the methods.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fec_packet.h"

namespace mdfs::gst {

// Of blocks that lack datagrams. Beyond these the oldest are dropped.
inline constexpr std::int64_t kMaxOpenBlocks = 4096;
inline constexpr std::size_t kMaxOpenBytes = 256u << 20;

class FecReceiver {
 public:
  struct Counters {
    std::uint64_t source_packets = 0;    // that arrived
    std::uint64_t repair_packets = 0;    // that arrived
    std::uint64_t recovered = 0;         // source packets
    std::uint64_t lost = 0;              // source packets of blocks that were dropped, or are open at the end
    std::uint64_t late = 0;              // datagrams of dropped or complete blocks, and those that came twice
    std::uint64_t refused = 0;           // datagrams that no sender sends, or that contradict others of their block
    std::uint64_t of_other_streams = 0;  // datagrams of another sender than the first
  };

  // Takes a datagram; returns the RTP packets that are handed on now.
  std::vector<Packet> take(std::span<const std::byte> datagram);
  // The sender has said that the movie ends. What has not arrived by then counts as lost.
  bool has_ended() const { return frames_sent_.has_value(); }
  // How many frames the movie had; nothing before its end.
  std::optional<std::uint32_t> frames_sent() const { return frames_sent_; }
  // Those of blocks that are still open count as lost.
  Counters counters() const;

 private:
  struct Block {
    std::uint8_t sources = 0;
    std::size_t symbol_bytes = 0;            // 0: no repair packet yet
    bool done = false;                       // all sources were handed on
    std::map<std::uint8_t, Packet> symbols;  // by the index: symbols of sources without zeros at their ends
    std::size_t bytes = 0;
  };

  Block* block_of(const FecHeader& header);
  void drop_oldest();
  std::vector<Packet> recover(Block& block);
  void close(Block& block);

  std::optional<std::uint32_t> stream_;
  std::int64_t newest_ = -1;  // number of a block, which does not wrap
  std::map<std::int64_t, Block> blocks_;
  std::size_t open_bytes_ = 0;
  std::int64_t dropped_to_ = 0;  // blocks below it were dropped
  std::optional<std::uint32_t> frames_sent_;
  Counters counters_;
};

}  // namespace mdfs::gst
