// Questions and answers.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/shared_look.h"

#include <algorithm>
#include <utility>

namespace mdfs::device {

SharedLook::SharedLook(Ask ask, const Condition& first, std::chrono::milliseconds patience)
    : ask_(std::move(ask)), patience_(patience), last_(first), thread_([this] { run(); }) {}

SharedLook::~SharedLook() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<Condition> SharedLook::condition() {
  std::unique_lock lock(mutex_);
  const std::uint64_t mine = begun_ + 1;
  wanted_ = std::max(wanted_, mine);
  changed_.notify_all();
  changed_.wait_for(lock, patience_, [&] { return answered_ >= mine; });
  return last_;
}

void SharedLook::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || wanted_ > begun_; });
    if (stopping_) return;
    const std::uint64_t number = ++begun_;
    lock.unlock();
    Result<Condition> answer = ask_();
    lock.lock();
    last_ = std::move(answer);
    answered_ = number;
    changed_.notify_all();
  }
}

}  // namespace mdfs::device
