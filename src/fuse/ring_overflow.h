// Takes the requests of ring queues whose threads are all in use, so that no queue is ever without a free entry.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "device/command_ring.h"
#include "device/unique_fd.h"
#include "fuse/ring_entry.h"
#include "fuse/work_queue.h"

namespace mdfs::fuse {

// One thread with an entry on each queue. The kernel gives it a request when all threads of a queue are busy or wait
// for answers. The thread hands the request to a work queue and registers another entry at once. The kernel needs this
// because a work queue's notification may wait for a page, whose read or write waits in the queue: without a free
// entry both would wait for ever. The kernel gives new entries to new requests only, so the thread then has the kernel
// send a request to the queue (FUSE_NOTIFY_RETRIEVE), whose answer fetches the next waiting one. The kernel does so for
// the inode of a regular file; requests whose answers wait for notifications are about regular files.
//
// The kernel prefers the entry that it got last. Before an entry of this thread goes back while threads of the queue
// wait, one of those gets such a request too, so that its entry follows and is preferred again.
class RingOverflow final : public RingEntryOwner {
 public:
  // Entries beyond one for each queue; further requests wait in the kernel until others have been answered.
  static constexpr std::size_t kMaxExtraEntries = 4096;
  // While so many requests wait for a thread of the work queue, the kernel gets no entry and copies no request. A step
  // of the overflow thread may add kMaxStep, and 20 that the kernel copies in one wait. The threads
  // of the work queue wait for no notification, so the number falls again.
  static constexpr unsigned kMaxQueued = 16, kMaxStep = 16;

  // For the queues of these processors. Makes the system calls that the filter refuses later.
  static Result<std::unique_ptr<RingOverflow>> create(const std::vector<unsigned>& queues, KeptPayloads& kept);
  ~RingOverflow();
  RingOverflow(const RingOverflow&) = delete;
  RingOverflow& operator=(const RingOverflow&) = delete;

  // True if a thread of the queue waits for requests. Any thread.
  using HasWaitingThread = std::function<bool(std::uint16_t queue)>;
  // `threads` handle requests, up to `most` while all of them wait.
  void start(const RingConnection& connection, unsigned threads, unsigned most, HasWaitingThread has_waiting_thread);
  // No more requests are handled; all under way have been, and were answered or wait for another thread's answer.
  void quiesce();
  // Passes the last answers on and ends the thread.
  void end();

  // The entry that has this request; null: none.
  RingEntry* find(std::uint64_t unique);
  bool holds(std::uint64_t unique);
  void deliver(RingEntry& entry, bool in_serve) override;

 private:
  RingOverflow(device::CommandRing ring, device::UniqueFd wake, KeptPayloads& kept);
  void run(const RingConnection& connection);
  void watch_wake();
  Status add_entry(std::uint16_t queue);
  void hand_over(RingEntry& entry, const RingConnection& connection);
  void take_completions(const RingConnection& connection);
  void take_request(RingEntry& entry, const RingConnection& connection);
  // False: there is no more to do. Waits until fewer than kMaxQueued requests are queued.
  bool wait_for_room();
  bool more_answers();
  void note_start();
  void commit_answers(const RingConnection& connection);
  // A request to send to a queue.
  struct Kick {
    std::uint16_t queue;
    std::uint64_t node;  // the kernel takes regular files only
  };
  void kick(const std::vector<Kick>& kicks, const RingConnection& connection);
  void wake();

  device::CommandRing ring_;
  const device::UniqueFd wake_;  // eventfd
  KeptPayloads& kept_;
  HasWaitingThread has_waiting_thread_;

  // ---- of the thread
  std::uint64_t woken_ = 0;  // what was read from wake_
  std::size_t most_entries_ = 0;
  std::unordered_map<std::uint16_t, unsigned> free_;  // entries of a queue that the kernel has
  std::vector<Kick> to_kick_;
  bool registered_ = false;  // the kernel has taken an entry, or fail() was called
  std::uint64_t next_kick_ = kKickUnique;

  std::mutex mutex_;  // guards the six below, changes of the entries only
  std::condition_variable room_;
  std::vector<std::unique_ptr<RingEntry>> entries_;
  unsigned queued_ = 0;
  bool quiet_ = false;
  bool ending_ = false;
  std::unordered_map<std::uint64_t, RingEntry*> by_unique_;
  std::vector<RingEntry*> answered_;

  std::unique_ptr<WorkQueue> work_;
  std::thread thread_;
};

}  // namespace mdfs::fuse
