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

// A fixed number of threads and one queue. Any thread may call it, its own included. Destruction runs what was posted.
class TaskPool {
 public:
  explicit TaskPool(unsigned threads);
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;
  ~TaskPool();

  unsigned threads() const { return static_cast<unsigned>(threads_.size()); }
  void post(std::function<void()> task);
  // Unless so many tasks wait already: then false.
  bool post_if_fewer(std::size_t waiting, std::function<void()> task);
  // Returns when all tasks posted before have ended. Not from a task.
  void drain();
  // Calls `work` for 0 .. count - 1, on all threads and the caller's, but at most `most` of them, and returns when all
  // calls have.
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
