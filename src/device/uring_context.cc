// Submission, completion and continuation of transfers through io_uring.
// SPDX-License-Identifier: Apache-2.0
#include "device/uring_context.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "device/request.h"
#include "device/ring_registration.h"

namespace mdfs::device {
namespace {

constexpr auto kStallPause = std::chrono::microseconds(200);
constexpr unsigned kReapBatch = 64;

bool is_transient(int result) { return result == -EAGAIN || result == -EINTR || result == -ECANCELED; }

Error refused(int posix_errno) {
  if (posix_errno == EPERM || posix_errno == EACCES || posix_errno == ENOSYS) {
    return {Errc::kNotSupported,
            "io_uring is not available here (see sysctl kernel.io_uring_disabled; containers may forbid it)"};
  }
  if (posix_errno == EINVAL) return {Errc::kNotSupported, "io_uring with restrictions, which Linux has since 5.10"};
  return {Errc::kNoMemory, std::string("cannot make an io_uring: ") + std::strerror(posix_errno)};
}

// All that a ring may be asked for. The timeout is liburing's, on kernels before 5.11.
constexpr std::array kOperations = {IORING_OP_NOP,    IORING_OP_READ,  IORING_OP_WRITE,     IORING_OP_READV,
                                    IORING_OP_WRITEV, IORING_OP_FSYNC, IORING_OP_FALLOCATE, IORING_OP_TIMEOUT};

}  // namespace

Status make_ring(io_uring& ring) {
  io_uring_params params{};
  params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED;
  params.cq_entries = UringContext::kMaxInFlight;
  if (const int result = io_uring_queue_init_params(UringContext::kSubmissionEntries, &ring, &params); result < 0)
    return refused(-result);
  int result = allow_only(ring, kOperations);
  if (result == 0) result = enable(ring);
  if (result == 0) return {};
  io_uring_queue_exit(&ring);
  return refused(-result);
}

Result<std::shared_ptr<UringContext>> UringContext::create() {
  std::shared_ptr<UringContext> context(new UringContext);
  MDFS_TRY(make_ring(context->ring_));
  context->completer_ = std::thread(&UringContext::complete_loop, context.get());
  return context;
}

UringContext::~UringContext() {
  if (!completer_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    MDFS_CHECK(in_flight_ == 0 && backlog_.empty());
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    MDFS_CHECK(sqe != nullptr);
    io_uring_prep_nop(sqe);
    io_uring_sqe_set_data(sqe, nullptr);
    enter(lock, true);
  }
  completer_.join();
  {
    std::lock_guard lock(slow_mutex_);
    MDFS_CHECK(slow_queue_.empty());
    stopping_ = true;
    slow_work_.notify_all();
  }
  if (slow_.joinable()) slow_.join();
  io_uring_queue_exit(&ring_);
}

void UringContext::start(std::span<std::unique_ptr<Transfer>> transfers) {
  if (transfers.empty()) return;
  std::unique_lock lock(mutex_);
  for (auto& transfer : transfers) backlog_.push_back(std::move(transfer));
  pump(lock, true);
}

void UringContext::prepare(io_uring_sqe& sqe, Transfer& transfer) {
  switch (transfer.io->op) {
    case Op::kRead:
    case Op::kWrite: {
      const auto* vectors = transfer.vectors.data() + transfer.next;
      const auto count = static_cast<unsigned>(transfer.vectors.size() - transfer.next);
      const bool reading = transfer.io->op == Op::kRead;
      if (count == 1 && reading) {
        io_uring_prep_read(&sqe, transfer.fd, vectors->iov_base, static_cast<unsigned>(vectors->iov_len),
                           transfer.offset);
      } else if (count == 1) {
        io_uring_prep_write(&sqe, transfer.fd, vectors->iov_base, static_cast<unsigned>(vectors->iov_len),
                            transfer.offset);
      } else if (reading) {
        io_uring_prep_readv(&sqe, transfer.fd, vectors, count, transfer.offset);
      } else {
        io_uring_prep_writev(&sqe, transfer.fd, vectors, count, transfer.offset);
      }
      break;
    }
    case Op::kFlush:
      io_uring_prep_fsync(&sqe, transfer.fd, transfer.block_device ? 0 : IORING_FSYNC_DATASYNC);
      break;
    case Op::kDiscard:
      // liburing 2.3 declares offset and length as off_t; both were checked against the size of the disk.
      io_uring_prep_fallocate(&sqe, transfer.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              static_cast<off_t>(transfer.offset), static_cast<off_t>(transfer.left));
      break;
  }
  io_uring_sqe_set_data(&sqe, &transfer);
}

void UringContext::pump(std::unique_lock<std::mutex>& lock, bool may_sleep) {
  while (!backlog_.empty() && in_flight_ < kMaxInFlight) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe == nullptr) {
      if (!enter(lock, may_sleep)) return;
      continue;
    }
    // Owned by the kernel's user_data until its completion is reaped.
    prepare(*sqe, *backlog_.front().release());
    backlog_.pop_front();
    ++in_flight_;
  }
  enter(lock, may_sleep);
}

// The kernel refuses entries only while it lacks memory (the completion queue has room for all); they stay in the
// ring and are offered again. A submitter waits here; the completion thread must continue to reap and comes back.
bool UringContext::enter(std::unique_lock<std::mutex>& lock, bool may_sleep) {
  while (io_uring_sq_ready(&ring_) > 0) {
    const int result = io_uring_submit(&ring_);
    if (result >= 0 || result == -EINTR) continue;
    MDFS_CHECK(result == -EAGAIN || result == -EBUSY || result == -ENOMEM);
    if (!stalled_) spdlog::warn("io_uring takes no more requests for now: {}", std::strerror(-result));
    stalled_ = true;
    if (!may_sleep) return false;
    lock.unlock();
    std::this_thread::sleep_for(kStallPause);
    lock.lock();
  }
  stalled_ = false;
  return true;
}

void UringContext::complete_loop() {
  std::array<std::pair<Transfer*, int>, kReapBatch> reaped;
  bool retry_soon = false;
  for (bool stop = false; !stop;) {
    io_uring_cqe* cqe = nullptr;
    __kernel_timespec pause{0, std::chrono::nanoseconds(kStallPause).count()};
    const int result = retry_soon ? io_uring_wait_cqe_timeout(&ring_, &cqe, &pause) : io_uring_wait_cqe(&ring_, &cqe);
    MDFS_CHECK(result == 0 || result == -EINTR || result == -ETIME || result == -EAGAIN);
    unsigned count = 0;
    while (count < kReapBatch && io_uring_peek_cqe(&ring_, &cqe) == 0) {
      auto* transfer = static_cast<Transfer*>(io_uring_cqe_get_data(cqe));
      if (transfer == nullptr) {
        stop = true;
      } else {
        reaped[count++] = {transfer, cqe->res};
      }
      io_uring_cqe_seen(&ring_, cqe);
    }
    std::deque<std::pair<std::unique_ptr<Transfer>, Status>> finished;
    {
      // Also orders this thread after the submitters, for the contents of the transfers.
      std::unique_lock lock(mutex_);
      in_flight_ -= count;
      for (unsigned i = 0; i < count; ++i) {
        std::unique_ptr<Transfer> transfer(reaped[i].first);
        Status status;
        if (advance(*transfer, reaped[i].second, status)) {
          finished.emplace_back(std::move(transfer), std::move(status));
        } else {
          backlog_.push_front(std::move(transfer));
        }
      }
      pump(lock, false);
      retry_soon = stalled_;
    }
    for (auto& [transfer, status] : finished) finish(std::move(transfer), std::move(status));
  }
}

bool UringContext::advance(Transfer& transfer, int result, Status& status) {
  const Io& io = *transfer.io;
  if (is_transient(result) && ++transfer.repeats <= kMaxRepeats) return false;
  if (result < 0) {
    const Errc code = io.op == Op::kDiscard && result == -EOPNOTSUPP ? Errc::kNotSupported : Errc::kIo;
    status = io_error(*transfer.disk, io, std::strerror(-result), code);
    return true;
  }
  if (io.op == Op::kFlush || io.op == Op::kDiscard) return true;
  std::uint64_t moved = static_cast<std::uint64_t>(result);
  if (moved == 0 || moved > transfer.left || moved % 512 != 0) {
    status = io_error(*transfer.disk, io,
                      fmt::format("only {} bytes were transferred",
                                  io.bytes() - transfer.left + (moved <= transfer.left ? moved : 0)));
    return true;
  }
  transfer.repeats = 0;
  transfer.left -= moved;
  transfer.offset += moved;
  while (moved > 0) {
    iovec& vector = transfer.vectors[transfer.next];
    const std::size_t part = std::min<std::uint64_t>(moved, vector.iov_len);
    vector.iov_base = static_cast<std::byte*>(vector.iov_base) + part;
    vector.iov_len -= part;
    moved -= part;
    if (vector.iov_len == 0) ++transfer.next;
  }
  return transfer.left == 0;
}

void UringContext::finish(std::unique_ptr<Transfer> transfer, Status status) {
  if (transfer->block_device && !status.ok() && status.error().code == Errc::kNotSupported) {
    discard_later(std::move(transfer));
    return;
  }
  Io& io = *transfer->io;
  transfer.reset();
  complete(io, std::move(status));
}

void UringContext::discard_later(std::unique_ptr<Transfer> transfer) {
  std::lock_guard lock(slow_mutex_);
  slow_queue_.push_back(std::move(transfer));
  if (!slow_.joinable()) slow_ = std::thread(&UringContext::slow_loop, this);
  slow_work_.notify_one();
}

void UringContext::slow_loop() {
  std::unique_lock lock(slow_mutex_);
  for (;;) {
    slow_work_.wait(lock, [this] { return stopping_ || !slow_queue_.empty(); });
    if (slow_queue_.empty()) return;
    auto transfer = std::move(slow_queue_.front());
    slow_queue_.pop_front();
    lock.unlock();
    std::array<std::uint64_t, 2> range = {transfer->offset, transfer->left};
    Status status;
    if (::ioctl(transfer->fd, BLKDISCARD, range.data()) != 0) {
      const Errc code = errno == EOPNOTSUPP ? Errc::kNotSupported : Errc::kIo;
      status = io_error(*transfer->disk, *transfer->io, std::strerror(errno), code);
    }
    Io& io = *transfer->io;
    transfer.reset();
    complete(io, std::move(status));
    lock.lock();
  }
}

}  // namespace mdfs::device
