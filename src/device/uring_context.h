// One io_uring with its completion thread, shared by all disks of a volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "device/disk.h"

namespace mdfs::device {

// Makes a ring that allows only the operations of disks, because io_uring bypasses filters of system calls.
// kNotSupported, with the cause, if the kernel or a sandbox refuses io_uring.
Status make_ring(io_uring& ring);

// One ring for all disks: bench/micro/device_bench shows that a ring for each disk is not faster and takes a fifth more
// CPU time, as long as completion handlers only hand work on. Any thread may call start(). Short transfers are
// continued, interrupted ones repeated.
// At most kMaxInFlight transfers are with the kernel, the others wait in a queue here, so the completion queue cannot
// overflow and start() does not wait for room.
class UringContext {
 public:
  static constexpr unsigned kSubmissionEntries = 256;
  static constexpr unsigned kMaxInFlight = 2048;
  static constexpr unsigned kMaxRepeats = 1000;  // of one transfer after EAGAIN, EINTR or ECANCELED without progress

  // A request on its way. Made by the disk, deleted by the context before `done` of the Io is called.
  struct Transfer {
    Io* io = nullptr;
    int fd = -1;
    const std::string* disk = nullptr;  // its name
    bool block_device = false;
    std::vector<iovec> vectors;  // remaining buffers, from `next` on
    std::size_t next = 0;
    std::uint64_t offset = 0;
    std::uint64_t left = 0;  // bytes
    unsigned repeats = 0;
  };

  // kNotSupported as make_ring().
  static Result<std::shared_ptr<UringContext>> create();
  // All transfers must have completed.
  ~UringContext();
  UringContext(const UringContext&) = delete;
  UringContext& operator=(const UringContext&) = delete;

  // Starts all requests with the fewest system calls (one, unless there are more than kSubmissionEntries).
  void start(std::span<std::unique_ptr<Transfer>> transfers);

 private:
  UringContext() = default;
  void prepare(io_uring_sqe& sqe, Transfer& transfer);
  // Both hold the lock on mutex_ on entry and return.
  void pump(std::unique_lock<std::mutex>& lock, bool may_sleep);
  bool enter(std::unique_lock<std::mutex>& lock, bool may_sleep);
  void complete_loop();
  // True if the transfer is over, with its result in `status`; false if it must continue.
  static bool advance(Transfer& transfer, int result, Status& status);
  void finish(std::unique_ptr<Transfer> transfer, Status status);
  // Slow calls that io_uring cannot do: discards of block devices without fast zeroing.
  void discard_later(std::unique_ptr<Transfer> transfer);
  void slow_loop();

  io_uring ring_{};  // submission side guarded by mutex_, completion side by its only reader, completer_

  std::mutex mutex_;  // guards the three below
  std::deque<std::unique_ptr<Transfer>> backlog_;
  unsigned in_flight_ = 0;
  bool stalled_ = false;  // prepared entries that the kernel would not take yet

  std::mutex slow_mutex_;  // guards the four below
  std::condition_variable slow_work_;
  std::deque<std::unique_ptr<Transfer>> slow_queue_;
  bool stopping_ = false;
  std::thread slow_;  // started when first needed

  std::thread completer_;
};

}  // namespace mdfs::device
