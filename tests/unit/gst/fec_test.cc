// Senders and receivers of packets with forward error correction, with networks between them that lose, repeat, reorder
// and damage datagrams.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "fec_receiver.h"
#include "fec_sender.h"

namespace mdfs::gst {
namespace {

constexpr std::uint32_t kStream = 0x01020304;

// An RTP packet of a frame, of this length, with bytes of its own.
Packet rtp(std::uint32_t frame, std::uint32_t number, std::size_t bytes = 100) {
  Packet packet(bytes);
  packet[0] = std::byte{0x80};
  write_big_endian(number, std::span(packet).subspan(2), 2);
  write_big_endian(3600 * frame, std::span(packet).subspan(4), 4);
  std::mt19937 random(number);
  for (std::size_t i = kMinRtpBytes; i < bytes; ++i) packet[i] = static_cast<std::byte>(random());
  return packet;
}

// Frames of so many packets, of various lengths.
std::vector<Packet> movie(std::uint32_t frames, std::uint32_t packets) {
  std::vector<Packet> all;
  for (std::uint32_t frame = 0; frame < frames; ++frame)
    for (std::uint32_t i = 0; i < packets; ++i)
      all.push_back(rtp(frame, frame * packets + i, i + 1 == packets ? 40 : 100));
  return all;
}

std::vector<Packet> sent(FecSender& sender, const std::vector<Packet>& packets) {
  for (const Packet& packet : packets) EXPECT_TRUE(sender.add(packet));
  return sender.finish_group();
}

std::vector<Packet> sent(const FecSettings& settings, const std::vector<Packet>& packets) {
  FecSender sender(settings, kStream);
  return sent(sender, packets);
}

void take_all(FecReceiver& receiver, const std::vector<Packet>& datagrams, std::vector<Packet>& received) {
  for (const Packet& datagram : datagrams) std::ranges::move(receiver.take(datagram), std::back_inserter(received));
}

std::vector<Packet> sorted(std::vector<Packet> packets) {
  std::ranges::sort(packets);
  return packets;
}

// Loses datagrams in bursts, as often as `share` says.
std::vector<Packet> after_bursts(const std::vector<Packet>& datagrams, double share, unsigned length,
                                 std::mt19937& random) {
  std::vector<Packet> left;
  std::bernoulli_distribution begins(share / length);
  unsigned still = 0;
  for (const Packet& datagram : datagrams) {
    if (still == 0 && begins(random)) still = length;
    if (still > 0)
      --still;
    else
      left.push_back(datagram);
  }
  return left;
}

TEST(FecPacketTest, HeadersComeBackAndOthersAreRefused) {
  const FecHeader header{FecKind::kRepair, 210, 200, 0xFFEEDDCC, 0x01020304};
  const auto bytes = to_bytes(header);
  Packet datagram(bytes.begin(), bytes.end());
  EXPECT_FALSE(parse_fec_header(datagram));  // without a symbol
  datagram.resize(100);
  EXPECT_EQ(parse_fec_header(datagram), header);
  const auto refused = [&](std::size_t place, std::uint8_t value) {
    Packet other = datagram;
    other[place] = std::byte{value};
    return !parse_fec_header(other).has_value();
  };
  EXPECT_TRUE(refused(0, 0x80));  // RTP
  EXPECT_TRUE(refused(1, 3));     // no kind
  EXPECT_TRUE(refused(2, 199));   // a repair packet in the place of a source
  EXPECT_TRUE(refused(2, 255));
  EXPECT_TRUE(refused(3, 0));
  EXPECT_TRUE(refused(1, 0));  // a source in the place of a repair packet
  EXPECT_TRUE(refused(1, 2));  // an end packet of another length
  EXPECT_FALSE(parse_fec_header({}));
}

TEST(FecSenderTest, WhatIsNotAllowedIsNamedWithItsValue) {
  const auto complaint = [](auto change) {
    FecSettings settings;
    change(settings);
    return complaint_about(settings);
  };
  EXPECT_EQ(complaint([](FecSettings&) {}), "");
  EXPECT_EQ(complaint([](FecSettings& s) { s.redundancy = 201; }), "redundancy is 201: allowed are 0 to 200 percent");
  EXPECT_EQ(complaint([](FecSettings& s) { s.important_redundancy = -2; }),
            "important-redundancy is -2: allowed are 0 to 200 percent, and -1 for that of other frames");
  EXPECT_EQ(complaint([](FecSettings& s) { s.important_every = -1; }),
            "important-every is -1: allowed are 0 to 10000 frames");
  EXPECT_EQ(complaint([](FecSettings& s) { s.interval_ms = 0; }), "interval is 0: allowed are 1 to 10000 milliseconds");
}

TEST(FecSenderTest, EachBlockHasRoomForItsRepairPackets) {
  for (int redundancy = 0; redundancy <= kMaxRedundancy; ++redundancy) {
    const std::size_t most = max_sources(redundancy);
    EXPECT_GE(most, 85u);
    for (std::size_t sources = 1; sources <= most; ++sources) {
      EXPECT_LE(sources + repairs_for(sources, redundancy), kMaxBlockPackets);
      EXPECT_GE(repairs_for(sources, redundancy) * 100, sources * static_cast<std::size_t>(redundancy));
    }
  }
  EXPECT_EQ(max_sources(20), 212u);
}

TEST(FecSenderTest, SourcesAreSentInTheirOrderAndRepairPacketsOfAllBlocksInTurn) {
  const std::vector<Packet> packets = movie(10, 50);
  const std::vector<Packet> datagrams = sent(FecSettings{}, packets);
  ASSERT_EQ(datagrams.size(), 602u);  // three blocks of 167, 167, 166 sources, with 34 repair packets each
  std::map<std::uint32_t, int> blocks;
  for (std::size_t i = 0; i < datagrams.size(); ++i) {
    const auto header = parse_fec_header(datagrams[i]);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->block, i < 500 ? i % 3 : (i - 500) % 3);
    EXPECT_EQ(header->kind, i < 500 ? FecKind::kSource : FecKind::kRepair);
    if (i < 500) {
      EXPECT_TRUE(std::ranges::equal(std::span(datagrams[i]).subspan(kFecHeaderBytes), packets[i]));
    }
  }
}

TEST(FecSenderTest, FramesAreCountedByTheirTimeStamps) {
  FecSender sender(FecSettings{}, kStream);
  sent(sender, movie(7, 3));
  EXPECT_EQ(sender.counters().frames, 7u);
  EXPECT_FALSE(sender.add(Packet(100)));  // no RTP
  EXPECT_FALSE(sender.add(Packet(5)));
  FecReceiver receiver;
  EXPECT_TRUE(receiver.take(sender.end()).empty());
  EXPECT_EQ(receiver.frames_sent(), 7u);
}

TEST(FecTest, WithoutLossesEachPacketIsHandedOnAtOnce) {
  for (const int redundancy : {0, 20, 200}) {
    const std::vector<Packet> packets = movie(4, 60);
    FecReceiver receiver;
    std::vector<Packet> received;
    take_all(receiver, sent(FecSettings{redundancy}, packets), received);
    EXPECT_EQ(received, packets);
    EXPECT_EQ(receiver.counters().recovered, 0u);
    EXPECT_EQ(receiver.counters().lost, 0u);
  }
}

TEST(FecTest, WithoutRedundancyLostPacketsAreCounted) {
  std::vector<Packet> datagrams = sent(FecSettings{0}, movie(4, 60));
  datagrams.erase(datagrams.begin() + 10, datagrams.begin() + 18);
  FecReceiver receiver;
  std::vector<Packet> received;
  take_all(receiver, datagrams, received);
  EXPECT_EQ(received.size(), 232u);
  EXPECT_EQ(receiver.counters().lost, 8u);
}

TEST(FecTest, AllFramesArriveAtFivePercentInBurstsOfEight) {
  std::mt19937 random(23);
  FecSender sender(FecSettings{}, kStream);
  FecReceiver receiver;
  std::vector<Packet> packets, received;
  for (std::uint32_t group = 0; group < 40; ++group) {
    std::vector<Packet> own;
    for (std::uint32_t i = 0; i < 1000; ++i) own.push_back(rtp(group * 10 + i / 100, group * 1000 + i, 60));
    take_all(receiver, after_bursts(sent(sender, own), 0.05, 8, random), received);
    std::ranges::move(own, std::back_inserter(packets));
  }
  EXPECT_EQ(sorted(received), sorted(packets));
  EXPECT_GT(receiver.counters().recovered, 1000u);
  EXPECT_EQ(receiver.counters().lost, 0u);
}

TEST(FecTest, ImportantFramesArriveWhereOthersAreLost) {
  FecSettings settings;
  settings.redundancy = 0;
  settings.important_redundancy = 100;
  settings.important_every = 3;
  std::mt19937 random(5);
  FecReceiver receiver;
  std::vector<Packet> received;
  const std::vector<Packet> packets = movie(30, 20);
  take_all(receiver, after_bursts(sent(settings, packets), 0.2, 8, random), received);
  const std::set<Packet> all(received.begin(), received.end());
  std::size_t others = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (i / 20 % 3 == 0) {
      EXPECT_TRUE(all.contains(packets[i])) << i;
    } else {
      others += all.contains(packets[i]) ? 0 : 1;
    }
  }
  EXPECT_GT(others, 0u);
}

TEST(FecTest, DatagramsThatContradictTheirBlockAreRefused) {
  const std::vector<Packet> datagrams = sent(FecSettings{}, movie(1, 10));
  FecReceiver receiver;
  std::vector<Packet> received;
  take_all(receiver, {datagrams[0], datagrams[10]}, received);
  Packet other = datagrams[1];
  other[3] = std::byte{11};  // another number of sources
  EXPECT_TRUE(receiver.take(other).empty());
  other = datagrams[11];
  other.push_back(std::byte{0});  // a longer symbol
  EXPECT_TRUE(receiver.take(other).empty());
  other = datagrams[1];
  other.resize(other.size() + 8);  // a packet longer than the symbols
  EXPECT_TRUE(receiver.take(other).empty());
  EXPECT_EQ(receiver.counters().refused, 3u);
  take_all(receiver, {datagrams.begin() + 1, datagrams.end()}, received);
  EXPECT_EQ(received.size(), 10u);
}

TEST(FecTest, DatagramsOfAnotherStreamAreCountedAndLeftOut) {
  FecSender other(FecSettings{}, kStream + 1);
  FecReceiver receiver;
  std::vector<Packet> received;
  take_all(receiver, sent(FecSettings{}, movie(1, 10)), received);
  take_all(receiver, sent(other, movie(2, 10)), received);
  receiver.take(other.end());
  EXPECT_EQ(received.size(), 10u);
  EXPECT_EQ(receiver.counters().of_other_streams, 25u);
  EXPECT_FALSE(receiver.has_ended());
}

TEST(FecTest, ASymbolThatHoldsNoPacketCountsAsLost) {
  std::vector<Packet> datagrams = sent(FecSettings{}, movie(1, 10));
  datagrams[10][kFecHeaderBytes] ^= std::byte{0xFF};  // of the length of the packet that it gives
  datagrams.erase(datagrams.begin() + 4);
  FecReceiver receiver;
  std::vector<Packet> received;
  take_all(receiver, datagrams, received);
  EXPECT_EQ(received.size(), 9u);
  EXPECT_EQ(receiver.counters().lost, 1u);
}

TEST(FecTest, WhatIsKeptHasABound) {
  FecSender sender(FecSettings{}, kStream);
  FecReceiver receiver;
  std::vector<Packet> received;
  std::uint64_t lost = 0;
  for (std::int64_t block = 0; block < 2 * kMaxOpenBlocks; ++block) {
    std::vector<Packet> datagrams = sent(sender, movie(1, 2));
    datagrams.erase(datagrams.begin() + 1, datagrams.end());  // one of two is left
    take_all(receiver, datagrams, received);
    ++lost;
  }
  EXPECT_EQ(received.size(), lost);
  EXPECT_EQ(receiver.counters().lost, lost);
}

// Each group lies within its redundancy, so all packets arrive, each once and unchanged.
RC_GTEST_PROP(FecTest, PacketsArriveOnceAndUnchangedInAnyOrder, (std::uint32_t seed)) {
  FecSettings settings;
  settings.redundancy = *rc::gen::inRange(0, 201);
  settings.important_redundancy = *rc::gen::inRange(-1, 201);
  settings.important_every = *rc::gen::inRange(0, 4);
  std::mt19937 random(seed);
  FecSender sender(settings, kStream);
  FecReceiver receiver;
  std::vector<Packet> packets, datagrams;
  std::uint32_t number = 0;
  for (int group = *rc::gen::inRange(1, 4); group > 0; --group) {
    std::vector<Packet> own;
    const std::uint32_t frames = *rc::gen::inRange(1, 5);
    for (std::uint32_t frame = 0; frame < frames; ++frame)
      for (auto i = 1 + random() % 80; i > 0; --i)
        own.push_back(rtp(number, number, kMinRtpBytes + random() % 90)), ++number;
    std::map<std::uint32_t, std::vector<Packet>> blocks;
    for (Packet& datagram : sent(sender, own)) blocks[parse_fec_header(datagram)->block].push_back(datagram);
    for (auto& [block, members] : blocks) {
      std::ranges::shuffle(members, random);
      const std::size_t sources = parse_fec_header(members[0])->sources;
      members.resize(sources + random() % (members.size() - sources + 1));
      std::ranges::move(members, std::back_inserter(datagrams));
    }
    std::ranges::move(own, std::back_inserter(packets));
  }
  for (int i = 0; i < 10; ++i) datagrams.push_back(datagrams[random() % datagrams.size()]);
  std::ranges::shuffle(datagrams, random);
  std::vector<Packet> received;
  take_all(receiver, datagrams, received);
  RC_ASSERT(sorted(received) == sorted(packets));
  RC_ASSERT(receiver.counters().lost == 0u);
}

RC_GTEST_PROP(FecTest, DamagedDatagramsDoNotEndTheReceiver, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  FecReceiver receiver;
  std::vector<Packet> datagrams = sent(FecSettings{50}, movie(2, 20));
  for (int turn = 0; turn < 200; ++turn) {
    Packet datagram = datagrams[random() % datagrams.size()];
    for (auto changes = random() % 3; changes > 0; --changes)
      datagram[random() % std::min<std::size_t>(datagram.size(), 16)] = static_cast<std::byte>(random());
    if (random() % 4 == 0) datagram.resize(random() % 200);
    if (datagram.size() > 8 && random() % 4 != 0) write_big_endian(kStream, std::span(datagram).subspan(4), 4);
    for (const Packet& packet : receiver.take(datagram)) RC_ASSERT(packet.size() >= kMinRtpBytes);
  }
}

}  // namespace
}  // namespace mdfs::gst
