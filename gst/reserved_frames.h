// Frames of a stream, whose rate the disks are reserved for. A thread waits for them, one after another.
//
// The stream delivers frames at its rate, as many periods early as it reads ahead. After a seek none is handed out
// before so many are there: the frames are then early by that time, whatever the clock is that shows them. Up to twice
// as many are kept, so that the deadlines can begin anew after a pause, which costs the same time again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "frame_supply.h"

namespace mdfs::gst {

// The stream of libmdfs, or one of a test. stop(), seek() and set_pace() are called while another thread waits in
// next(), at most one at a time.
template <typename Frame>
class FrameStream {
 public:
  struct Arrived {
    std::int64_t number = 0;
    Frame frame;
    std::string error;       // of the stream, which has no further frame: empty where there is a frame
    bool is_behind = false;  // it was ready in time, and taken so late that the deadlines should begin anew
  };
  virtual ~FrameStream() = default;
  // Nothing: there is no further frame, or stop() was called.
  virtual std::optional<Arrived> next() = 0;
  // next() returns, and does so from now on.
  virtual void stop() = 0;
  // The frame that comes next, soon. The answer is empty, or an error.
  virtual std::string seek(std::int64_t frame) = 0;
  // The answer is empty, or says which rate would fit.
  virtual std::string set_pace(double speed, std::int64_t step) = 0;
  virtual Frame failure(std::string error) const = 0;
};

template <typename Frame>
class ReservedFrames final : public FrameSupply<Frame> {
 public:
  // `ahead`: frames that the stream reads ahead. Throws std::system_error where no thread can be started.
  ReservedFrames(std::unique_ptr<FrameStream<Frame>> stream, std::int64_t ahead)
      : stream_(std::move(stream)), ahead_(ahead), thread_([this] { run(); }) {}
  ~ReservedFrames() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      changed_.notify_all();
    }
    {
      const std::lock_guard changing(changing_);
      stream_->stop();
    }
    thread_.join();
  }
  ReservedFrames(const ReservedFrames&) = delete;
  ReservedFrames& operator=(const ReservedFrames&) = delete;

  std::string set_speed(double speed) override {
    const std::lock_guard changing(changing_);
    if (speed == speed_) return {};
    const std::int64_t step = speed < 0 ? -1 : 1;
    if (std::string refused = stream_->set_pace(speed, step); !refused.empty()) return refused;
    speed_ = speed;
    const std::lock_guard lock(mutex_);
    step_ = step;
    return {};
  }

  void begin(const FrameOrder& order) override {
    if (!order.is_empty()) (void)seek_to(order.first);  // take() returns its error
  }

  std::optional<Frame> take(std::int64_t frame) override {
    std::unique_lock lock(mutex_);
    for (bool sought = false;;) {
      changed_.wait(lock, [&] { return !fills_ || at_end_ || interrupted_ || !failure_.empty(); });
      while (!ready_.empty() && ready_.front().number != frame) ready_.pop_front();
      if (!ready_.empty()) {
        std::optional<Frame> taken = std::move(ready_.front().frame);
        ready_.pop_front();
        changed_.notify_all();
        return taken;
      }
      changed_.notify_all();
      if (interrupted_) return std::nullopt;
      if (!failure_.empty()) return stream_->failure(failure_);
      if (sought && at_end_) return stream_->failure("frame " + std::to_string(frame) + " is missing");
      if (comes_soon(frame)) {
        changed_.wait(lock, [&] { return interrupted_ || !failure_.empty() || at_end_ || !ready_.empty(); });
        continue;
      }
      lock.unlock();
      sought = seek_to(frame);
      lock.lock();
    }
  }

  void interrupt(bool interrupted) override {
    const std::lock_guard lock(mutex_);
    interrupted_ = interrupted;
    changed_.notify_all();
  }

  // The deadlines of the frames that are left begin now.
  void resume() override {
    std::uint64_t course = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!wants_frames() || ready_.size() < most_ready()) return;  // the stream has lost no time
      course = course_;
    }
    keep_time(course);
  }

 private:
  using Arrived = typename FrameStream<Frame>::Arrived;
  struct Ready {
    std::int64_t number;
    Frame frame;
  };
  // Beside those that the stream reads ahead.
  std::size_t most_ready() const { return 2 * static_cast<std::size_t>(ahead_); }

  bool comes_soon(std::int64_t frame) const {
    const std::int64_t distance = (frame - expected_) * step_;
    return begun_ && !at_end_ && distance >= 0 && distance < ahead_;
  }

  bool wants_frames() const { return begun_ && !changes_ && !at_end_ && failure_.empty(); }

  // True: the stream continues with the frame. An error is kept for take().
  bool seek_to(std::int64_t frame) {
    const std::lock_guard changing(changing_);
    {
      const std::lock_guard lock(mutex_);
      ++course_;
      changes_ = true;
      ready_.clear();
      expected_ = frame;
      at_end_ = false;
      begun_ = fills_ = true;
    }
    const std::string error = stream_->seek(frame);
    const std::lock_guard lock(mutex_);
    changes_ = false;
    fail(error);
    return failure_.empty();
  }

  void fail(const std::string& error) {
    if (failure_.empty()) failure_ = error;
    changed_.notify_all();
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopped_ || (wants_frames() && ready_.size() < most_ready()); });
      if (stopped_) return;
      const std::uint64_t course = course_;
      lock.unlock();
      std::optional<Arrived> arrived = stream_->next();
      lock.lock();
      // Of the order before, unless the wait for it was longer than the change.
      if (course != course_ && (!arrived || !arrived->error.empty() || arrived->number != expected_)) continue;
      if (!arrived) {
        at_end_ = true;
      } else if (!arrived->error.empty()) {
        fail(arrived->error);
      } else {
        expected_ = arrived->number + step_;
        ready_.push_back({arrived->number, std::move(arrived->frame)});
        if (ready_.size() >= static_cast<std::size_t>(ahead_)) fills_ = false;
      }
      changed_.notify_all();
      if (!arrived || !arrived->is_behind) continue;
      lock.unlock();
      keep_time(course);
      lock.lock();
    }
  }

  // The deadlines begin anew with the frame that is next.
  void keep_time(std::uint64_t course) {
    const std::lock_guard changing(changing_);
    std::int64_t next = 0;
    {
      const std::lock_guard lock(mutex_);
      if (course != course_ || stopped_) return;
      next = expected_;
    }
    const std::string error = stream_->seek(next);
    const std::lock_guard lock(mutex_);
    fail(error);
  }

  const std::unique_ptr<FrameStream<Frame>> stream_;
  const std::int64_t ahead_;
  std::mutex changing_;  // before the next one; held while the stream is told what comes next
  double speed_ = 1;
  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable changed_;
  std::deque<Ready> ready_;
  std::uint64_t course_ = 0;   // of which frames are taken; another one since each seek
  std::int64_t expected_ = 0;  // the frame that the stream has next
  std::int64_t step_ = 1;
  std::string failure_;
  bool begun_ = false, fills_ = false, at_end_ = false, changes_ = false, interrupted_ = false, stopped_ = false;
  std::thread thread_;
};

}  // namespace mdfs::gst
