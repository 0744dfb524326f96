// SPDX-License-Identifier: Apache-2.0
#include "engine/requests.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace mdfs::engine {
namespace {

constexpr std::uint64_t kBlock = device::kAlignment;
using Blocks = std::set<std::pair<unsigned, std::uint64_t>>;  // disk and number

struct Wanted {
  unsigned disk = 0;
  std::uint64_t first = 0, blocks = 0;
  std::uint32_t owner = 0;
};

// Segments with memory of their own.
struct Memory {
  explicit Memory(const std::vector<Wanted>& wanted) {
    for (const Wanted& one : wanted) bytes.emplace_back(one.blocks * kBlock);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      segments.push_back({static_cast<std::uint16_t>(wanted[i].disk), wanted[i].first * kBlock,
                          wanted[i].blocks * kBlock, bytes[i].data(), wanted[i].owner});
  }
  std::vector<ByteVector> bytes;
  std::vector<Segment> segments;
};

std::byte byte_of(unsigned disk, std::uint64_t offset) {
  return static_cast<std::byte>(disk * 61 + offset / kBlock * 7 + offset);
}

void read(const Request& request) {
  std::uint64_t offset = request.offset;
  for (const MutableBytes& buffer : request.buffers)
    for (std::byte& byte : buffer) byte = byte_of(request.disk, offset++);
  copy_shared(request.shared);
}

bool has_its_bytes(const Wanted& wanted, const ByteVector& bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != byte_of(wanted.disk, wanted.first * kBlock + i)) return false;
  return true;
}

std::uint64_t bytes_of(const Request& request) {
  std::uint64_t bytes = 0;
  for (const MutableBytes& buffer : request.buffers) bytes += buffer.size();
  return bytes;
}

Blocks blocks_of(const Request& request) {
  Blocks blocks;
  for (std::uint64_t block = 0; block < bytes_of(request) / kBlock; ++block)
    blocks.insert({request.disk, request.offset / kBlock + block});
  return blocks;
}

TEST(RequestsTest, BytesOfTwoSegmentsAreReadOnceAndCopied) {
  const std::vector<Wanted> wanted = {{0, 0, 4, 7}, {0, 2, 4, 9}};
  Memory memory(wanted);
  const std::vector<Request> requests = merge_segments(memory.segments, 1u << 20);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(bytes_of(requests[0]), 6 * kBlock);
  EXPECT_EQ(requests[0].owners, (std::vector<std::uint32_t>{7, 9}));
  ASSERT_EQ(requests[0].shared.size(), 1U);
  EXPECT_EQ(requests[0].shared[0].from.size(), 2 * kBlock);
  read(requests[0]);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(has_its_bytes(wanted[i], memory.bytes[i])) << i;
}

TEST(RequestsTest, ASharedByteBelongsToTheRequestThatReadsIt) {
  // More pieces than a request takes buffers, and a segment that wants them all.
  std::vector<Wanted> wanted;
  const auto many = static_cast<std::uint32_t>(device::kMaxIoVectors + 10);
  for (std::uint32_t i = 0; i < many; ++i) wanted.push_back({0, many - 1 - i, 1, i});
  wanted.push_back({0, 0, many, many});
  Memory memory(wanted);
  const std::vector<Request> requests = merge_segments(memory.segments, device::kMaxIoBytes);
  std::uint64_t bytes = 0;
  for (const Request& request : requests) {
    EXPECT_LE(request.buffers.size(), device::kMaxIoVectors);
    bytes += bytes_of(request);
    read(request);
  }
  EXPECT_EQ(bytes, many * kBlock);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(has_its_bytes(wanted[i], memory.bytes[i])) << i;
}

std::vector<Wanted> any_wanted() {
  std::vector<Wanted> wanted;
  const int count = *rc::gen::inRange(0, 40);
  for (int i = 0; i < count; ++i)
    wanted.push_back({*rc::gen::inRange(0U, 3U), *rc::gen::inRange<std::uint64_t>(0, 60),
                      *rc::gen::inRange<std::uint64_t>(1, 20), *rc::gen::inRange(0U, 12U)});
  return wanted;
}

RC_GTEST_PROP(RequestsTest, EverySegmentGetsItsBytesAndNoByteIsReadTwice, ()) {
  const std::vector<Wanted> wanted = any_wanted();
  Memory memory(wanted);
  const std::uint64_t largest = kBlock * *rc::gen::inRange<std::uint64_t>(1, 30);
  const std::vector<Request> requests = merge_segments(memory.segments, largest);
  Blocks seen, expected;
  std::map<std::uint32_t, Blocks> of_owner;  // in its requests
  for (const Request& request : requests) {
    RC_ASSERT(bytes_of(request) <= largest);
    RC_ASSERT(std::is_sorted(request.owners.begin(), request.owners.end()));
    RC_ASSERT(std::set(request.owners.begin(), request.owners.end()).size() == request.owners.size());
    for (const auto& block : blocks_of(request)) {
      RC_ASSERT(seen.insert(block).second);
      for (const std::uint32_t owner : request.owners) of_owner[owner].insert(block);
    }
    read(request);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    RC_ASSERT(has_its_bytes(wanted[i], memory.bytes[i]));
    for (std::uint64_t block = 0; block < wanted[i].blocks; ++block) {
      expected.insert({wanted[i].disk, wanted[i].first + block});
      RC_ASSERT(of_owner[wanted[i].owner].contains({wanted[i].disk, wanted[i].first + block}));
    }
  }
  RC_ASSERT(seen == expected);
}

// Each owner hears of exactly the requests that have bytes for it.
RC_GTEST_PROP(RequestsTest, NobodyWaitsForARequestThatHasNoByteForHim, ()) {
  const std::vector<Wanted> wanted = any_wanted();
  Memory memory(wanted);
  for (const Request& request : merge_segments(memory.segments, 8 * kBlock)) {
    const Blocks blocks = blocks_of(request);
    for (const std::uint32_t owner : request.owners)
      RC_ASSERT(std::any_of(wanted.begin(), wanted.end(), [&](const Wanted& one) {
        if (one.owner != owner) return false;
        for (std::uint64_t block = 0; block < one.blocks; ++block)
          if (blocks.contains({one.disk, one.first + block})) return true;
        return false;
      }));
  }
}

}  // namespace
}  // namespace mdfs::engine
