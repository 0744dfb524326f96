// Reads the frames that are shown next, by threads of its own.
//
// `Frame` is the result of a read, errors included. At most `depth` frames are ready or being read for the caller of
// take(). A frame that is skipped while a thread reads it is dropped when the read ends: at most one a thread. Any
// thread may call interrupt(); one thread at a time calls the other methods.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "frame_times.h"

namespace mdfs::gst {

template <typename Frame>
class Lookahead {
 public:
  // Several threads call it at the same time. It does not throw.
  using Read = std::function<Frame(std::int64_t)>;

  // Throws std::system_error where no thread can be started.
  Lookahead(Read read, std::size_t depth, std::size_t threads) : read_(std::move(read)), depth_(depth) {
    try {
      for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  // Waits for the reads that are under way.
  ~Lookahead() { stop(); }
  Lookahead(const Lookahead&) = delete;
  Lookahead& operator=(const Lookahead&) = delete;

  // Begins to read these frames, and drops those of the order before.
  void begin(const FrameOrder& order) {
    const std::lock_guard lock(mutex_);
    slots_.clear();
    order_ = order;
    changed_.notify_all();
  }

  // Waits for a frame of the order. Frames of the order before it are dropped, and not read if no read has begun.
  // Nothing: interrupted.
  std::optional<Frame> take(std::int64_t frame) {
    std::unique_lock lock(mutex_);
    while (!slots_.empty() && slots_.front()->number != frame) slots_.pop_front();
    if (slots_.empty()) order_.first = frame;
    changed_.notify_all();
    changed_.wait(lock, [&] { return interrupted_ || (!slots_.empty() && slots_.front()->frame.has_value()); });
    if (interrupted_) return std::nullopt;
    std::optional<Frame> taken = std::move(slots_.front()->frame);
    slots_.pop_front();
    changed_.notify_all();
    return taken;
  }

  // While it is true take() returns at once.
  void interrupt(bool interrupted) {
    const std::lock_guard lock(mutex_);
    interrupted_ = interrupted;
    changed_.notify_all();
  }

 private:
  struct Slot {
    std::int64_t number;
    std::optional<Frame> frame;  // nothing: being read
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopped_ || (slots_.size() < depth_ && !order_.is_empty()); });
      if (stopped_) return;
      const auto slot = std::make_shared<Slot>(Slot{order_.first, std::nullopt});
      slots_.push_back(slot);
      order_.first += order_.step;
      lock.unlock();
      Frame frame = read_(slot->number);
      lock.lock();
      slot->frame = std::move(frame);
      changed_.notify_all();
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  const Read read_;
  const std::size_t depth_;
  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable changed_;
  FrameOrder order_{0, -1, 1};               // that no read has begun for
  std::deque<std::shared_ptr<Slot>> slots_;  // in the order of the frames; a dropped one belongs to its reader alone
  bool interrupted_ = false;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mdfs::gst
