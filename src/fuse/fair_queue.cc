// Queues that users share.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/fair_queue.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace mdfs::fuse {
namespace {

// How often callers are looked at: a caller that is killed is to end within a second.
constexpr std::chrono::milliseconds kLook{200};

}  // namespace

FairQueue::FairQueue(unsigned threads, unsigned share, int niceness) : share_(share) {
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this, niceness] {
      if (niceness > 0) [[maybe_unused]]
        const int now = ::nice(niceness);  // of this thread; more is always allowed
      run();
    });
  }
  watcher_ = std::thread([this] { cancel_ended(); });
}

FairQueue::~FairQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  watch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  watcher_.join();
}

void FairQueue::post(Job job) {
  bool must_wait = false;
  {
    const std::lock_guard lock(mutex_);
    User& user = users_[job.user];
    user.waiting.push_back(std::move(job));
    must_wait = user.jobs() > share_ || jobs() > threads_.size();
  }
  work_.notify_one();
  if (must_wait) watch_.notify_one();
}

std::size_t FairQueue::jobs() const {
  std::size_t jobs = 0;
  for (const auto& [id, user] : users_) jobs += user.jobs();
  return jobs;
}

bool FairQueue::may_start(const User& user) const { return !user.waiting.empty() && user.running < share_; }

bool FairQueue::has_waiting() const {
  return std::any_of(users_.begin(), users_.end(), [](const auto& user) { return !user.second.waiting.empty(); });
}

FairQueue::Users::iterator FairQueue::next_user() {
  const auto ready = [this](const auto& user) { return may_start(user.second); };
  const auto after = users_.upper_bound(last_);
  if (const auto found = std::find_if(after, users_.end(), ready); found != users_.end()) return found;
  const auto found = std::find_if(users_.begin(), after, ready);
  return found == after ? users_.end() : found;
}

void FairQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto user = users_.end();
    work_.wait(lock, [&] { return (user = next_user()) != users_.end() || (ending_ && !has_waiting()); });
    if (user == users_.end()) return;
    const Job job = std::move(user->second.waiting.front());
    user->second.waiting.pop_front();
    ++user->second.running;
    last_ = user->first;
    lock.unlock();
    job.work();
    lock.lock();
    user = users_.find(job.user);
    if (--user->second.running == 0 && user->second.waiting.empty()) users_.erase(user);
    if (ending_) work_.notify_all();  // else this thread takes the job that may start now
  }
}

void FairQueue::cancel_ended() {
  std::unique_lock lock(mutex_);
  for (;;) {
    watch_.wait(lock, [&] { return ending_ || has_waiting(); });
    if (ending_) return;
    watch_.wait_for(lock, kLook, [&] { return ending_; });
    std::vector<Job> ended;
    for (auto user = users_.begin(); user != users_.end();) {
      std::deque<Job>& waiting = user->second.waiting;
      const auto keep = [](const Job& job) { return !job.is_ended || !job.is_ended(); };
      const auto first = std::stable_partition(waiting.begin(), waiting.end(), keep);
      std::move(first, waiting.end(), std::back_inserter(ended));
      waiting.erase(first, waiting.end());
      user = waiting.empty() && user->second.running == 0 ? users_.erase(user) : std::next(user);
    }
    if (ended.empty()) continue;
    lock.unlock();
    for (const Job& job : ended) job.cancel();
    ended.clear();
    lock.lock();
  }
}

}  // namespace mdfs::fuse
