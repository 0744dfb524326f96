// Which contents have bytes in strips, and when somebody last read or wrote.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/environment.h"

namespace mdfs::engine {

class Content;

// Any thread. A content is worked on by one thread at a time, and by none once forget() has returned.
class SettleQueue {
 public:
  void note_activity(Environment& environment) {
    last_activity_ns_.store(environment.monotonic_ns(), std::memory_order_relaxed);
  }
  bool is_quiet(Environment& environment) const {
    return environment.monotonic_ns() - last_activity_ns_.load(std::memory_order_relaxed) >= kQuietNs;
  }

  // The content has strips that may be complete.
  void note(std::weak_ptr<Content> content);
  // Waits for whoever works on it.
  void forget(const Content& content);

  // Waits for a content to work on, `wait_ms` at most; null if there is none. Ended by done().
  std::shared_ptr<Content> take(unsigned wait_ms);
  // `again`: it stays in the queue, behind the others.
  void done(const std::shared_ptr<Content>& content, bool again);
  // Until stop(), `wait_ms` at most.
  void pause(unsigned wait_ms);
  void stop();
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }

 private:
  static constexpr std::int64_t kQuietNs = 200'000'000;  // since anybody read or wrote

  std::atomic<std::int64_t> last_activity_ns_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Content>> waiting_;
  const Content* at_work_ = nullptr;
};

}  // namespace mdfs::engine
