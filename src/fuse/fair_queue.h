// A few threads for long work of many users, none of whom has all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace mdfs::fuse {

// Users take turns. Jobs of one user start in the order of their posting, and at most `share` of them run at once: a
// job of another user waits for no more than the jobs that have begun. Any thread may post. The queue is bounded by the
// requests that the kernel keeps waiting, and by the slots of channels: each job answers one.
class FairQueue {
 public:
  struct Job {
    uid_t user = 0;
    engine::Stop is_ended;         // its caller has ended; empty: never
    std::function<void()> work;    // also answers
    std::function<void()> cancel;  // answers instead of work(), if the caller ends before the job has begun
  };

  // `niceness` is added to that of its threads (setpriority(2)): work that is to leave the processors to others.
  FairQueue(unsigned threads, unsigned share, int niceness = 0);
  // Runs the queued jobs, then ends.
  ~FairQueue();
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  void post(Job job);

 private:
  struct User {
    std::deque<Job> waiting;
    unsigned running = 0;

    std::size_t jobs() const { return waiting.size() + running; }
  };
  using Users = std::map<uid_t, User>;

  void run();
  void cancel_ended();
  // The next user with a job that may start; the end: none. Under mutex_, as all below.
  Users::iterator next_user();
  bool may_start(const User& user) const;
  bool has_waiting() const;
  std::size_t jobs() const;

  const unsigned share_;
  std::mutex mutex_;  // guards all below
  std::condition_variable work_, watch_;
  Users users_;     // that have jobs
  uid_t last_ = 0;  // whose job has started last
  bool ending_ = false;
  std::vector<std::thread> threads_;
  std::thread watcher_;  // looks for callers that have ended while their jobs wait
};

}  // namespace mdfs::fuse
