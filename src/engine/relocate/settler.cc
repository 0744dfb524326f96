// The thread that settles strips.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/settler.h"

#include <algorithm>
#include <chrono>

namespace mdfs::engine {

void SettleQueue::note(std::weak_ptr<Content> content) {
  const std::lock_guard lock(mutex_);
  const bool known = std::any_of(waiting_.begin(), waiting_.end(), [&](const std::weak_ptr<Content>& other) {
    return !other.owner_before(content) && !content.owner_before(other);
  });
  if (!known) waiting_.push_back(std::move(content));
  changed_.notify_all();
}

void SettleQueue::forget(const Content& content) {
  std::unique_lock lock(mutex_);
  std::erase_if(waiting_, [&](const std::weak_ptr<Content>& other) {
    const std::shared_ptr<Content> alive = other.lock();
    return alive == nullptr || alive.get() == &content;
  });
  changed_.wait(lock, [&] { return at_work_ != &content; });
}

std::shared_ptr<Content> SettleQueue::take(unsigned wait_ms) {
  std::unique_lock lock(mutex_);
  if (waiting_.empty() && !stopping()) changed_.wait_for(lock, std::chrono::milliseconds(wait_ms));
  while (!waiting_.empty() && !stopping()) {
    std::shared_ptr<Content> content = waiting_.front().lock();
    waiting_.erase(waiting_.begin());
    if (content == nullptr) continue;
    at_work_ = content.get();
    return content;
  }
  return nullptr;
}

void SettleQueue::done(const std::shared_ptr<Content>& content, bool again) {
  const std::lock_guard lock(mutex_);
  at_work_ = nullptr;
  if (again) waiting_.push_back(content);
  changed_.notify_all();
}

void SettleQueue::pause(unsigned wait_ms) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(wait_ms), [this] { return stopping(); });
}

void SettleQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopping_.store(true, std::memory_order_release);
  changed_.notify_all();
}

Settler::Settler(Core& core, Replacer& replacer) : core_(core), replacer_(replacer), thread_([this] { run(); }) {}

Settler::~Settler() {
  core_.settle.stop();
  thread_.join();
}

void Settler::run() {
  while (!core_.settle.stopping()) {
    // While a disk is missing nothing is written that nobody asked for.
    if (!core_.is_quiet() || !core_.store.is_whole()) {
      core_.settle.pause(kLookMs);
      continue;
    }
    const std::shared_ptr<Content> content = core_.settle.take(20 * kLookMs);
    if (content == nullptr) continue;
    // An error is left to whoever reads those bytes; the next strips of the content make us look again.
    const Result<std::uint64_t> settled = core_.is_quiet() ? replacer_.settle(*content, kStepBytes, false) : kStepBytes;
    core_.settle.done(content, settled.ok() && *settled > 0 && !core_.settle.stopping());
  }
}

}  // namespace mdfs::engine
