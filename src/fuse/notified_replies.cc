// SPDX-License-Identifier: Apache-2.0
#include "fuse/notified_replies.h"

#include <algorithm>
#include <utility>

namespace mdfs::fuse {

NotifiedReplies::NotifiedReplies(WorkQueue& queue, std::chrono::milliseconds patience)
    : queue_(queue), patience_(patience), thread_([this] { run(); }) {}

NotifiedReplies::~NotifiedReplies() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void NotifiedReplies::post(std::function<void()> notify, std::function<void()> reply) {
  Place place;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    place = waiting_.insert(waiting_.end(), {Clock::now(), std::move(reply)});
    wake = std::exchange(sleeps_, false);
  }
  if (wake) wake_.notify_one();
  queue_.post([this, place, notify = std::move(notify)] {
    notify();
    finish(place);
  });
}

void NotifiedReplies::finish(Place place) {
  std::function<void()> reply;
  {
    const std::lock_guard lock(mutex_);
    reply = std::move(place->reply);
    waiting_.erase(place);
  }
  if (reply) reply();
}

// Looks at the list once in a while as long as there is one: replies that come in time need no wake-up.
void NotifiedReplies::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (waiting_.empty()) {
      sleeps_ = true;
      wake_.wait(lock, [&] { return ending_ || !sleeps_; });
      continue;
    }
    const auto late =
        std::find_if(waiting_.begin(), waiting_.end(), [](const Waiting& one) { return bool(one.reply); });
    const Clock::time_point due = (late == waiting_.end() ? Clock::now() : late->since) + patience_;
    if (Clock::now() < due) {
      wake_.wait_until(lock, due, [&] { return ending_; });
      continue;
    }
    const auto reply = std::exchange(late->reply, nullptr);
    lock.unlock();
    reply();
    lock.lock();
  }
}

}  // namespace mdfs::fuse
