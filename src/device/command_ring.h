// An io_uring for commands of a character device, such as /dev/fuse.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"

namespace mdfs::device {

// One thread uses a ring: the thread that called enable(). Another thread may create and destroy the ring, before
// enable() and after the end of the user's last call. io_uring bypasses filters of system calls, so the ring allows
// commands and reads only. create() makes the system calls that a filter may refuse later.
//
// The kernel touches the memory of a command in calls of wait() and submit() of the ring's thread, and at no other
// time: in submit() for commands that are in this submission, in wait() for all.
class CommandRing {
 public:
  static constexpr std::size_t kMaxArgumentBytes = 80;
  static constexpr unsigned kSubmissionEntries = 16;
  static constexpr unsigned kCompletionEntries = 64;  // the kernel keeps more where they do not fit

  // kNotSupported, with the cause, if the kernel or a sandbox refuses such a ring.
  static Result<CommandRing> create();
  CommandRing(CommandRing&& other) noexcept;
  CommandRing& operator=(CommandRing&&) = delete;
  ~CommandRing();

  Status enable();

  // Both queue a request; `token` names its completion. The memory of `vectors` must last until the submission.
  // False, and nothing is queued, if the kernel takes no submission now.
  bool command(int fd, std::uint32_t operation, ConstBytes arguments, std::span<const iovec> vectors,
               std::uint64_t token);
  bool read(int fd, MutableBytes into, std::uint64_t token);

  void submit();
  // Submits and waits for a completion; a signal ends the wait, too.
  void wait();

  // A completion that submit() or wait() has found.
  bool has_next() const { return io_uring_cq_ready(&ring_) > 0; }
  // The next completion, as its token and its result. False: there is none now.
  bool next(std::uint64_t& token, int& result);

 private:
  CommandRing() = default;
  io_uring_sqe* entry();

  io_uring ring_{};
  bool open_ = false;
};

}  // namespace mdfs::device
