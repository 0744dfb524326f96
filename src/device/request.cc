// Checks and completion of requests.
// SPDX-License-Identifier: Apache-2.0
#include "device/request.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "device/disk_counters.h"

namespace mdfs::device {
namespace {

bool aligned(std::uint64_t value) { return value % kAlignment == 0; }

}  // namespace

const char* op_name(Op op) {
  switch (op) {
    case Op::kRead:
      return "read";
    case Op::kWrite:
      return "write";
    case Op::kFlush:
      return "flush";
    case Op::kDiscard:
      return "discard";
  }
  return "?";
}

void check_shape(const Io& io) {
  MDFS_CHECK(io.done != nullptr);
  if (io.op == Op::kFlush) {
    MDFS_CHECK(io.buffers.empty());
    return;
  }
  MDFS_CHECK(aligned(io.offset));
  if (io.op == Op::kDiscard) {
    MDFS_CHECK(io.buffers.empty() && io.discard_bytes > 0 && aligned(io.discard_bytes));
    return;
  }
  MDFS_CHECK(!io.buffers.empty() && io.buffers.size() <= kMaxIoVectors && io.bytes() <= kMaxIoBytes);
  for (const auto& buffer : io.buffers) {
    MDFS_CHECK(!buffer.empty() && aligned(buffer.size()) && aligned(reinterpret_cast<std::uintptr_t>(buffer.data())));
  }
}

Status check_request(const Disk& disk, const Io& io) {
  check_shape(io);
  if (io.op == Op::kFlush) return {};
  if (io.op != Op::kRead && !disk.writable()) {
    return io_error(disk.name(), io, "the disk is open for reading only", Errc::kReadOnly);
  }
  if (!inside(io.offset, io.bytes(), disk.size_bytes())) {
    return io_error(disk.name(), io, fmt::format("past the end of the disk at {}", disk.size_bytes()));
  }
  return {};
}

Error io_error(const std::string& disk, const Io& io, const std::string& why, Errc code) {
  if (io.op == Op::kFlush) return {code, fmt::format("{}: flush: {}", disk, why)};
  return {code, fmt::format("{}: {} of {} bytes at {}: {}", disk, op_name(io.op), io.bytes(), io.offset, why)};
}

void complete(Io& io, Status status) {
  io.status = std::move(status);
  if (io.counters != nullptr) io.counters->ended(io, io.status.ok());
  io.done(io);
}

}  // namespace mdfs::device
