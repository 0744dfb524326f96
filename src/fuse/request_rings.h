// The kernel's requests through rings, one queue for each processor, beside /dev/fuse (FUSE over io_uring, Linux 6.14).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "fuse/ring_entry.h"
#include "fuse/ring_overflow.h"
#include "fuse/ring_thread.h"

namespace mdfs::fuse {

// The thread of a queue runs on the processor of the caller: a request costs one system call of the daemon, and wakes
// no other processor. FORGET, INTERRUPT, INIT and notifications use /dev/fuse as without rings.
class RequestRings {
 public:
  // Threads of one queue, and of all. A machine with more processors has fewer threads a queue, kMinThreads at least.
  static constexpr unsigned kThreads = 16, kMinThreads = 2, kAllThreads = 256;

  // Makes the system calls that the filter refuses later. kNotSupported if the kernel or a sandbox refuses rings.
  static Result<std::unique_ptr<RequestRings>> create();
  ~RequestRings();
  RequestRings(const RequestRings&) = delete;
  RequestRings& operator=(const RequestRings&) = delete;

  // After the answer to INIT, once: until then the kernel refuses rings, from then on it waits for them.
  // `overflow_threads`, more while all of them wait, handle requests of queues whose threads are all in use.
  void start(RingConnection connection, unsigned overflow_threads, unsigned most_overflow_threads);
  // Afterwards no request is handled. Those under way may still wait for answers of other threads. `wake_signal` must
  // have a handler, which does nothing.
  void quiesce(int wake_signal);
  // After the last answer.
  void end();

  // Any thread. False: the answer is none to a request of a ring, and belongs to /dev/fuse.
  bool answer(std::span<const iovec> parts);
  // True if a ring's request with this `unique` is being handled, or is about to be. Any thread.
  bool holds(std::uint64_t unique);

 private:
  RequestRings() = default;
  RingEntry* find(std::uint64_t unique);

  KeptPayloads kept_;
  RingConnection connection_;
  std::vector<std::unique_ptr<RingThread>> threads_;
  std::unique_ptr<RingOverflow> overflow_;
  bool started_ = false;
};

}  // namespace mdfs::fuse
