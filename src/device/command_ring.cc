// Set-up, submission and completion of commands.
// SPDX-License-Identifier: Apache-2.0
#include "device/command_ring.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "device/ring_registration.h"

namespace mdfs::device {
namespace {

constexpr std::array kCommandOperations = {IORING_OP_URING_CMD, IORING_OP_READ};

Error no_ring(int posix_errno) {
  return {Errc::kNotSupported, std::string("an io_uring for commands: ") + std::strerror(posix_errno)};
}

}  // namespace

Result<CommandRing> CommandRing::create() {
  CommandRing made;
  io_uring_params params{};
  // Deferred task work: the kernel copies requests while the thread waits, and at no other time.
  params.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER |
                 IORING_SETUP_DEFER_TASKRUN;
  params.cq_entries = kCompletionEntries;
  if (const int result = io_uring_queue_init_params(kSubmissionEntries, &made.ring_, &params); result < 0)
    return no_ring(-result);
  made.open_ = true;
  if (const int result = allow_only(made.ring_, kCommandOperations); result < 0) return no_ring(-result);
  return made;
}

CommandRing::CommandRing(CommandRing&& other) noexcept : ring_(other.ring_), open_(std::exchange(other.open_, false)) {}

CommandRing::~CommandRing() {
  if (open_) io_uring_queue_exit(&ring_);
}

Status CommandRing::enable() {
  if (const int result = device::enable(ring_); result < 0) return no_ring(-result);
  return {};
}

io_uring_sqe* CommandRing::entry() {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  if (sqe != nullptr) return sqe;
  submit();
  return io_uring_get_sqe(&ring_);
}

bool CommandRing::command(int fd, std::uint32_t operation, ConstBytes arguments, std::span<const iovec> vectors,
                          std::uint64_t token) {
  MDFS_CHECK(arguments.size() <= kMaxArgumentBytes);
  io_uring_sqe* const sqe = entry();
  if (sqe == nullptr) return false;
  std::memset(sqe, 0, 2 * sizeof *sqe);
  sqe->opcode = IORING_OP_URING_CMD;
  sqe->fd = fd;
  sqe->cmd_op = operation;
  sqe->addr = reinterpret_cast<std::uintptr_t>(vectors.data());
  sqe->len = static_cast<std::uint32_t>(vectors.size());
  sqe->user_data = token;
  std::memcpy(sqe->cmd, arguments.data(), arguments.size());
  return true;
}

bool CommandRing::read(int fd, MutableBytes into, std::uint64_t token) {
  io_uring_sqe* const sqe = entry();
  if (sqe == nullptr) return false;
  std::memset(sqe, 0, 2 * sizeof *sqe);
  io_uring_prep_read(sqe, fd, into.data(), static_cast<unsigned>(into.size()), 0);
  sqe->user_data = token;
  return true;
}

// What the kernel does not take stays in the ring and is offered again.
void CommandRing::submit() { io_uring_submit(&ring_); }

void CommandRing::wait() { io_uring_submit_and_wait(&ring_, 1); }

bool CommandRing::next(std::uint64_t& token, int& result) {
  io_uring_cqe* cqe = nullptr;
  unsigned head = 0;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    token = cqe->user_data;
    result = cqe->res;
    io_uring_cq_advance(&ring_, 1);
    return true;
  }
  return false;
}

}  // namespace mdfs::device
