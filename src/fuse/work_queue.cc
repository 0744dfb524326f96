// Work queues.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/work_queue.h"

#include <system_error>
#include <utility>

namespace mdfs::fuse {

WorkQueue::WorkQueue(unsigned threads, unsigned most) : most_(most) {
  const std::lock_guard lock(mutex_);
  for (unsigned i = 0; i < threads; ++i) add_thread();
}

void WorkQueue::add_thread() {
  threads_.emplace_back([this] { run(); });
  ++idle_;
}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkQueue::try_to_add_thread() {
  try {
    add_thread();
  } catch (const std::system_error&) {
    // The machine has no more threads: the job waits for one of the others.
  }
}

void WorkQueue::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_ && threads_.size() < most_ && !ending_) try_to_add_thread();
  }
  wake_.notify_one();
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    --idle_;
    lock.unlock();
    job();
    lock.lock();
    ++idle_;
  }
}

}  // namespace mdfs::fuse
