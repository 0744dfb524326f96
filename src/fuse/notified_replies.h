// Replies that wait until the kernel has dropped its pages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "fuse/work_queue.h"

namespace mdfs::fuse {

// A notification waits for pages that the kernel reads. Those reads, asynchronous direct writes, and pages of mappings
// that are written back share a bounded number of requests that the kernel has outstanding. Writes that hold all of
// them, and wait for a notification, would wait for ever. A reply therefore waits for its notification only for so
// long; the notification then follows the reply. Any thread.
class NotifiedReplies {
 public:
  static constexpr std::chrono::milliseconds kPatience{500};

  // Notifications are jobs of the queue, which ends before this.
  explicit NotifiedReplies(WorkQueue& queue, std::chrono::milliseconds patience = kPatience);
  ~NotifiedReplies();
  NotifiedReplies(const NotifiedReplies&) = delete;
  NotifiedReplies& operator=(const NotifiedReplies&) = delete;

  // Calls `notify` once and `reply` once, in this order unless `notify` takes too long.
  void post(std::function<void()> notify, std::function<void()> reply);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Clock::time_point since;
    std::function<void()> reply;  // empty: given
  };
  using Place = std::list<Waiting>::iterator;

  void finish(Place place);
  void run();

  WorkQueue& queue_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::list<Waiting> waiting_;  // in the order of their posting, until their notifications end
  bool sleeps_ = false;         // the thread waits for a post
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace mdfs::fuse
