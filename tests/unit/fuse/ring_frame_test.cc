// Requests out of ring entries, and answers into them.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ring_frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <cstring>
#include <numeric>
#include <vector>

namespace mdfs::fuse {
namespace {

constexpr std::size_t kPayloadBytes = 4096;

// The memory of an entry: room for headers, and the payload behind it.
struct Entry {
  RingEntryHeader header{};
  std::vector<std::byte> memory = std::vector<std::byte>(kFrameRoomBytes + kPayloadBytes);

  MutableBytes before() { return MutableBytes(memory).first(kFrameRoomBytes); }
  MutableBytes payload() { return MutableBytes(memory).subspan(kFrameRoomBytes); }
  void set_request(std::size_t length, std::size_t payload_bytes) {
    fuse_in_header in{};
    in.len = static_cast<std::uint32_t>(length);
    in.opcode = FUSE_WRITE;
    in.unique = 6;
    std::memcpy(header.in_out, &in, sizeof in);
    header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  }
  fuse_out_header answer() const {
    fuse_out_header out{};
    std::memcpy(&out, header.in_out, sizeof out);
    return out;
  }
};

void number(MutableBytes bytes, unsigned first) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(first++);
}

RC_GTEST_PROP(RingFrame, ARequestIsItsHeadersAndItsPayloadInARow, ()) {
  Entry entry;
  const std::size_t operation = 8 * *rc::gen::inRange<std::size_t>(0, sizeof entry.header.operation / 8 + 1);
  const std::size_t payload = *rc::gen::inRange<std::size_t>(0, kPayloadBytes + 1);
  entry.set_request(sizeof(fuse_in_header) + operation + payload, payload);
  number(entry.header.operation, 1);
  number(entry.payload(), 7);
  std::vector<std::byte> expected(entry.header.in_out, entry.header.in_out + sizeof(fuse_in_header));
  expected.insert(expected.end(), entry.header.operation, entry.header.operation + operation);
  expected.insert(expected.end(), entry.payload().begin(),
                  entry.payload().begin() + static_cast<std::ptrdiff_t>(payload));
  const auto request = frame_request(entry.header, entry.before(), entry.payload());
  RC_ASSERT(request.ok());
  RC_ASSERT(std::vector<std::byte>(request->begin(), request->end()) == expected);
  RC_ASSERT(reinterpret_cast<std::uintptr_t>(request->data()) % alignof(fuse_in_header) == 0u);
}

TEST(RingFrame, RequestsWhoseLengthsDoNotAgreeAreRefused) {
  constexpr std::size_t kHeader = sizeof(fuse_in_header);
  struct Case {
    std::size_t length, payload;
  };
  for (const Case& one : std::initializer_list<Case>{{0, 0},
                                                     {kHeader - 1, 0},
                                                     {kHeader, 1},
                                                     {kHeader + 16, 24},
                                                     {kHeader + 4, 0},
                                                     {kHeader + 136, 0},
                                                     {kHeader + kPayloadBytes + 8, kPayloadBytes + 8},
                                                     {0xffffffff, 0},
                                                     {kHeader, 0xffffffff}}) {
    Entry entry;
    entry.set_request(one.length, one.payload);
    const auto request = frame_request(entry.header, entry.before(), entry.payload());
    EXPECT_TRUE(!request.ok() && request.error().code == Errc::kInvalidArgument) << one.length << ' ' << one.payload;
  }
}

TEST(RingFrame, LargeReadsOfThePageCacheReadAhead) {
  const auto reads_ahead_with = [](std::uint32_t opcode, std::uint32_t size, std::uint32_t flags) {
    RingEntryHeader header{};
    fuse_in_header in{};
    in.opcode = opcode;
    fuse_read_in read{};
    read.size = size;
    read.read_flags = flags;
    std::memcpy(header.in_out, &in, sizeof in);
    std::memcpy(header.operation, &read, sizeof read);
    return reads_ahead(header);
  };
  EXPECT_TRUE(reads_ahead_with(FUSE_READ, 128 << 10, 0));
  EXPECT_TRUE(reads_ahead_with(FUSE_READ, 64 << 10, 0));
  EXPECT_FALSE(reads_ahead_with(FUSE_READ, 16 << 10, 0));
  EXPECT_FALSE(reads_ahead_with(FUSE_READ, 1 << 20, FUSE_READ_LOCKOWNER));
  EXPECT_FALSE(reads_ahead_with(FUSE_WRITE, 128 << 10, 0));
}

TEST(RingFrame, AnAnswerIsCopiedBehindItsHeader) {
  Entry entry;
  fuse_out_header out{.len = sizeof out + 5, .error = 0, .unique = 99};
  char first[] = "ab", second[] = "cde";
  const std::vector<iovec> parts = {{&out, sizeof out}, {first, 2}, {second, 3}};
  ASSERT_TRUE(frame_answer(parts, 6, entry.header, entry.payload()).ok());
  EXPECT_EQ(entry.answer().unique, 6u);
  EXPECT_EQ(entry.answer().error, 0);
  EXPECT_EQ(entry.header.payload_bytes, 5u);
  EXPECT_EQ(std::memcmp(entry.payload().data(), "abcde", 5), 0);
}

TEST(RingFrame, AnAnswerMayLieInThePayloadAlready) {
  Entry entry;
  fuse_out_header out{.len = sizeof out + kPayloadBytes, .error = 0, .unique = 6};
  std::uint64_t status[2] = {1, 2};
  number(entry.payload(), 3);
  const std::vector<std::byte> expected(entry.payload().begin() + sizeof status, entry.payload().end());
  const std::vector<iovec> parts = {
      {&out, sizeof out}, {status, sizeof status}, {entry.payload().data() + sizeof status, expected.size()}};
  ASSERT_TRUE(frame_answer(parts, 6, entry.header, entry.payload()).ok());
  EXPECT_EQ(entry.header.payload_bytes, kPayloadBytes);
  EXPECT_EQ(std::memcmp(entry.payload().data(), status, sizeof status), 0);
  EXPECT_EQ(std::memcmp(entry.payload().data() + sizeof status, expected.data(), expected.size()), 0);
}

TEST(RingFrame, AnswersThatAreNoneOrDoNotFitBecomeAnError) {
  std::vector<char> large(kPayloadBytes + 1);
  fuse_out_header out{.len = sizeof out, .error = 0, .unique = 6};
  for (const std::vector<iovec>& parts :
       {std::vector<iovec>{}, std::vector<iovec>{{&out, sizeof out - 1}},
        std::vector<iovec>{{&out, sizeof out}, {large.data(), large.size()}},
        std::vector<iovec>{{&out, sizeof out}, {large.data(), kPayloadBytes}, {large.data(), 1}}}) {
    Entry entry;
    EXPECT_FALSE(frame_answer(parts, 6, entry.header, entry.payload()).ok());
    EXPECT_EQ(entry.answer().error, -EIO);
    EXPECT_EQ(entry.answer().unique, 6u);
    EXPECT_EQ(entry.header.payload_bytes, 0u);
  }
}

}  // namespace
}  // namespace mdfs::fuse
