// The threads that decode and encode.
// SPDX-License-Identifier: Apache-2.0
#include "engine/task_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>

namespace mdfs::engine {

TaskPool::TaskPool(unsigned threads) {
  threads_.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

TaskPool::~TaskPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// The pool is told under the lock: once the task has run, its end may be the end of the pool.
void TaskPool::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  posted_.notify_one();
}

bool TaskPool::post_if_fewer(std::size_t waiting, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (tasks_.size() >= waiting) return false;
  tasks_.push_back(std::move(task));
  posted_.notify_one();
  return true;
}

void TaskPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    lock.unlock();
    task();
    task = nullptr;  // releases the captures of the task before its end is announced
    lock.lock();
    if (--running_ == 0 && tasks_.empty()) idle_.notify_all();
  }
}

void TaskPool::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return running_ == 0 && tasks_.empty(); });
}

void TaskPool::parallel_for(std::size_t count, const std::function<void(std::size_t)>& work, std::size_t most) {
  if (count == 0) return;
  if (count == 1 || most <= 1 || threads_.empty()) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  // A task that starts late finds no number left and touches nothing of the caller's.
  struct Shared {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;  // guards finished
    std::condition_variable all_finished;
    std::size_t finished = 0;
  };
  const auto shared = std::make_shared<Shared>();
  const auto take_part = [shared, count, &work] {
    std::size_t done = 0;
    for (std::size_t i = shared->next.fetch_add(1); i < count; i = shared->next.fetch_add(1)) {
      work(i);
      ++done;
    }
    if (done == 0) return;
    const std::lock_guard lock(shared->mutex);
    shared->finished += done;
    if (shared->finished == count) shared->all_finished.notify_all();
  };
  const std::size_t helpers = std::min({threads_.size(), count - 1, most - 1});
  for (std::size_t i = 0; i < helpers; ++i) post(take_part);
  take_part();
  std::unique_lock lock(shared->mutex);
  shared->all_finished.wait(lock, [&] { return shared->finished == count; });
}

}  // namespace mdfs::engine
