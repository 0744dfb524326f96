// The thread that looks after late loads.
// SPDX-License-Identifier: Apache-2.0
#include "engine/late_loads.h"

#include <chrono>
#include <utility>

#include "device/read_pace.h"

namespace mdfs::engine {

LateLoads::LateLoads() : thread_([this] { run(); }) {}

LateLoads::~LateLoads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LateLoads::watch(std::weak_ptr<WatchedLoad> load, std::int64_t due_ns) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = entries_.empty() || due_ns < entries_.top().due_ns;
    entries_.push({due_ns, std::move(load)});
  }
  if (is_first) changed_.notify_one();
}

void LateLoads::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (entries_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const std::int64_t now_ns = device::ReadPace::now_ns();
    if (const std::int64_t left_ns = entries_.top().due_ns - now_ns; left_ns > 0) {
      changed_.wait_for(lock, std::chrono::nanoseconds(left_ns));
      continue;
    }
    const std::weak_ptr<WatchedLoad> weak = entries_.top().load;
    entries_.pop();
    lock.unlock();
    std::optional<std::int64_t> again;
    if (const std::shared_ptr<WatchedLoad> load = weak.lock()) again = load->help_late(now_ns);
    lock.lock();
    if (again) entries_.push({*again, weak});
  }
}

}  // namespace mdfs::engine
