// Requests out of ring entries, and answers into them.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ring_frame.h"

#include <cerrno>
#include <cstring>

namespace mdfs::fuse {
namespace {

// All structures of the kernel's interface have sizes of this.
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kLargeFillBytes = 64u << 10;

void set_answer(RingEntryHeader& header, const fuse_out_header& out, std::size_t payload_bytes) {
  std::memcpy(header.in_out, &out, sizeof out);
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
}

}  // namespace

Result<MutableBytes> frame_request(const RingEntryHeader& header, MutableBytes before, MutableBytes payload) {
  MDFS_CHECK(before.size() >= kFrameRoomBytes && before.data() + before.size() == payload.data());
  fuse_in_header in{};
  std::memcpy(&in, header.in_out, sizeof in);
  const std::size_t payload_bytes = header.payload_bytes;
  if (payload_bytes > payload.size()) return Error{Errc::kInvalidArgument, "request of a ring: payload too long"};
  if (in.len < sizeof in || in.len - sizeof in < payload_bytes)
    return Error{Errc::kInvalidArgument, "request of a ring: shorter than its payload"};
  const std::size_t operation_bytes = in.len - sizeof in - payload_bytes;
  if (operation_bytes > sizeof header.operation || operation_bytes % kAlignment != 0)
    return Error{Errc::kInvalidArgument, "request of a ring: length of the operation's header"};
  std::byte* const begin = payload.data() - operation_bytes - sizeof in;
  std::memcpy(begin, &in, sizeof in);
  if (operation_bytes > 0) std::memcpy(begin + sizeof in, header.operation, operation_bytes);
  return MutableBytes{begin, in.len};
}

bool reads_ahead(const RingEntryHeader& header) {
  fuse_in_header in{};
  fuse_read_in read{};
  std::memcpy(&in, header.in_out, sizeof in);
  std::memcpy(&read, header.operation, sizeof read);
  // Reads made for a caller name the owner of its locks.
  return in.opcode == FUSE_READ && read.size >= kLargeFillBytes && (read.read_flags & FUSE_READ_LOCKOWNER) == 0;
}

Status frame_answer(std::span<const iovec> parts, std::uint64_t unique, RingEntryHeader& header, MutableBytes payload) {
  fuse_out_header out{};
  const auto fill = [&]() -> Result<std::size_t> {
    if (parts.empty() || parts[0].iov_len != sizeof out)
      return Error{Errc::kInvalidArgument, "answer to a ring: no header"};
    std::memcpy(&out, parts[0].iov_base, sizeof out);
    std::size_t at = 0;
    for (const iovec& part : parts.subspan(1)) {
      if (part.iov_len > payload.size() - at)
        return Error{Errc::kInvalidArgument, "answer to a ring: longer than the payload"};
      std::byte* const to = payload.data() + at;
      if (part.iov_len > 0 && part.iov_base != to) std::memmove(to, part.iov_base, part.iov_len);
      at += part.iov_len;
    }
    return at;
  };
  const Result<std::size_t> bytes = fill();
  if (!bytes.ok()) {
    set_answer(header, {.len = sizeof out, .error = -EIO, .unique = unique}, 0);
    return bytes.error();
  }
  out.unique = unique;
  set_answer(header, out, *bytes);
  return {};
}

}  // namespace mdfs::fuse
