// A few threads for work that must not block the threads that serve the kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mdfs::fuse {

// Jobs start in the order of their posting. Any thread may post. The queue is bounded by the requests that the kernel
// keeps waiting, and by the slots of channels: each job answers one.
class WorkQueue {
 public:
  explicit WorkQueue(unsigned threads) : WorkQueue(threads, threads) {}
  // Begins with `threads`. A job that finds all of them at work gets one more, up to `most`; it stays.
  WorkQueue(unsigned threads, unsigned most);
  // Runs the queued jobs, then ends.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void post(std::function<void()> job);

 private:
  void run();

  // Both under mutex_.
  void add_thread();
  void try_to_add_thread();

  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool ending_ = false;
  unsigned idle_ = 0;  // threads without a job
  const unsigned most_;
  std::vector<std::thread> threads_;
};

}  // namespace mdfs::fuse
