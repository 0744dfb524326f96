// A thread that takes requests from the ring queue of one processor, and handles them there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "device/command_ring.h"
#include "fuse/ring_entry.h"

namespace mdfs::fuse {

// One entry on a ring of its own: while the thread handles a request, or the request is being handled elsewhere, the
// kernel has nothing to give to this thread and gives requests to others. A thread therefore may wait for disks.
//
// The thread runs on the queue's processor, where the caller waits. A caller that reads ahead does not wait: the thread
// may run on all processors then, and until its next other request.
class RingThread final : public RingEntryOwner {
 public:
  static Result<std::unique_ptr<RingThread>> create(std::uint16_t queue, const std::vector<unsigned>& processors,
                                                    KeptPayloads& kept);
  ~RingThread();
  RingThread(const RingThread&) = delete;
  RingThread& operator=(const RingThread&) = delete;

  void start(const RingConnection& connection);
  // The thread takes no more requests; it may be handling one. Wakes it by `signal`, which must have a handler.
  void stop(int signal);
  // After stop(), and the answer of the last request.
  void join();
  // False: the thread has ended, or waits for another thread's answer.
  bool busy() const { return state_ == State::kWaiting || state_ == State::kServing; }

  bool waiting() const { return state_ == State::kWaiting; }

  RingEntry& entry() { return *entry_; }
  void deliver(RingEntry& entry, bool in_serve) override;

 private:
  RingThread(device::CommandRing ring, const std::vector<unsigned>& processors)
      : ring_(std::move(ring)), processors_(processors) {}
  enum class State : std::uint8_t { kWaiting, kServing, kAnswerPending, kGone };
  void run(const RingConnection& connection);
  // False: the ring is of no more use.
  bool take(const RingConnection& connection);
  void serve(const RingConnection& connection);
  void run_near_caller(bool near);

  device::CommandRing ring_;
  std::unique_ptr<RingEntry> entry_;
  const std::vector<unsigned> processors_;  // all that the daemon may run on
  bool near_caller_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<State> state_{State::kGone};
  std::atomic<bool> delivered_{false};
  std::thread thread_;
};

}  // namespace mdfs::fuse
