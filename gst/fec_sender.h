// What a sender makes of RTP packets: blocks of source packets with repair packets (fec_packet.h). Pure.
//
// Packets are added to a group, a part of the movie of some tenths of a second. The packets of a group are dealt to as
// few blocks as possible in turn: neighbours lie in different blocks, and a large block survives more bursts of losses
// than several small ones with the same redundancy. Important packets have blocks of their own. One thread at a time
// calls the methods.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fec_packet.h"

namespace mdfs::gst {

inline constexpr int kMaxRedundancy = 200;  // percent
inline constexpr int kMaxIntervalMs = 10'000;
inline constexpr int kMaxImportantEvery = 10'000;
inline constexpr std::size_t kMaxGroupBytes = 64u << 20;  // a group ends when it has so many

struct FecSettings {
  int redundancy = 20;            // repair packets for 100 source packets
  int important_redundancy = -1;  // of important frames; -1: as others
  int important_every = 0;        // each n-th frame is important, from the first on; 0: none
  int interval_ms = 500;          // length of a group
  bool operator==(const FecSettings&) const = default;
};
// The property that is not allowed, its value, and what is allowed; empty if all are allowed.
std::string complaint_about(const FecSettings& settings);

// How many source packets a block has at most.
std::size_t max_sources(int redundancy);
// How many repair packets a block with so many source packets has.
std::size_t repairs_for(std::size_t sources, int redundancy);

class FecSender {
 public:
  struct Counters {
    std::uint64_t frames = 0, source_packets = 0, repair_packets = 0;
  };

  // Allowed settings. stream: a random number.
  FecSender(const FecSettings& settings, std::uint32_t stream) : settings_(settings), stream_(stream) {}

  // True if the packet begins another frame than the packet before it.
  bool begins_frame(std::span<const std::byte> rtp) const;
  // Adds an RTP packet to the group. False: it is none, or it is too long.
  bool add(std::span<const std::byte> rtp);
  bool is_empty() const { return ordinary_.empty() && important_.empty(); }
  // The group has as many bytes as it may have.
  bool is_full() const { return bytes_ >= kMaxGroupBytes; }
  // The datagrams of the group, in the order in which they are sent: the source packets as they were added, then the
  // repair packets of all blocks in turn. The next group begins.
  std::vector<Packet> finish_group();
  // Says how many frames the movie had. It is sent several times.
  Packet end() const;

  const Counters& counters() const { return counters_; }

 private:
  void add_blocks(std::vector<Packet>& all, const std::vector<std::size_t>& members, int redundancy,
                  std::vector<std::vector<Packet>>& repairs);

  const FecSettings settings_;
  const std::uint32_t stream_;
  std::uint32_t next_block_ = 0;
  std::uint32_t timestamp_ = 0;  // RTP, of the last packet
  std::size_t bytes_ = 0;
  std::vector<Packet> group_;                      // with room for the header
  std::vector<std::size_t> ordinary_, important_;  // places in group_
  Counters counters_;
};

}  // namespace mdfs::gst
