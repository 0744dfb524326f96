// The threads that decode and encode.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mdfs::engine {

// A fixed number of threads and one queue. Any thread may call any method, the pool's own threads included. The
// destructor runs all posted tasks.
class TaskPool {
 public:
  explicit TaskPool(unsigned threads);
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;
  ~TaskPool();

  unsigned threads() const { return static_cast<unsigned>(threads_.size()); }
  void post(std::function<void()> task);
  // Posts the task and returns true, unless `waiting` tasks wait already.
  bool post_if_fewer(std::size_t waiting, std::function<void()> task);
  // Returns when all tasks posted before have ended. Must not be called from a task.
  void drain();
  // Calls `work` for 0 .. count - 1 on at most `most` threads, the caller's included, and returns when all calls have
  // ended.
  void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work, std::size_t most = SIZE_MAX);

 private:
  void run();

  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable posted_;
  std::condition_variable idle_;
  std::size_t running_ = 0;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mdfs::engine
