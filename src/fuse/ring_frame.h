// The memory of a ring entry, in which the kernel leaves a request and finds the answer (FUSE over io_uring).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/fuse.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"

namespace mdfs::fuse {

// Of the kernel's interface since Linux 6.14; the headers of Debian 12 lack them.
constexpr std::uint64_t kOverIoUring = 1ull << 41;  // FUSE_OVER_IO_URING, of the INIT flags
constexpr std::uint32_t kRegisterEntry = 1;         // FUSE_IO_URING_CMD_REGISTER
constexpr std::uint32_t kCommitAndFetch = 2;        // FUSE_IO_URING_CMD_COMMIT_AND_FETCH

struct RingEntryHeader {  // struct fuse_uring_req_header
  std::byte in_out[128];  // fuse_in_header of a request, fuse_out_header of an answer
  std::byte operation[128];
  std::uint64_t flags;
  std::uint64_t commit_id;
  std::uint32_t payload_bytes;
  std::uint32_t padding;
  std::uint64_t reserved;
};
static_assert(sizeof(RingEntryHeader) == 288);

struct RingCommand {  // struct fuse_uring_cmd_req
  std::uint64_t flags;
  std::uint64_t commit_id;
  std::uint16_t queue;
  std::uint8_t padding[6];
};
static_assert(sizeof(RingCommand) == 24);

// The room before the payload, for the headers of a contiguous request.
constexpr std::size_t kFrameRoomBytes = sizeof(fuse_in_header) + sizeof(RingEntryHeader::operation);

// Makes the request contiguous, as read(2) of /dev/fuse gives it: copies the headers right before `payload`. `before`
// is the memory that ends where `payload` begins. The result lies in both. kInvalidArgument if the lengths in the
// header do not agree with each other or with the room.
Result<MutableBytes> frame_request(const RingEntryHeader& header, MutableBytes before, MutableBytes payload);

// True for a read that fills pages of the page cache with 64 KiB or more: the caller reads ahead and does not wait.
bool reads_ahead(const RingEntryHeader& header);

// Writes an answer as libfuse makes it: parts[0] is the fuse_out_header. A part that already lies at its place in the
// payload is not copied. kInvalidArgument, and an answer of EIO, if the parts are not an answer or do not fit.
Status frame_answer(std::span<const iovec> parts, std::uint64_t unique, RingEntryHeader& header, MutableBytes payload);

}  // namespace mdfs::fuse
