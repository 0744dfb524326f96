// Frames ahead of their deadlines.
// SPDX-License-Identifier: Apache-2.0
#include "streams/frame_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mdfs::streams {

FrameQueue::FrameQueue(const Course& course, unsigned lookahead, bool drops)
    : course_(course), lookahead_(lookahead), drops_(drops) {
  MDFS_CHECK(lookahead >= 1 && check(course).ok());
}

std::optional<std::uint64_t> FrameQueue::next_frame() const {
  return places_.empty() ? frame_at(course_, next_n_) : std::optional(places_.front().frame);
}

std::optional<FrameQueue::Opening> FrameQueue::opening() const {
  if (paused_ || places_.size() >= lookahead_ || !frame_at(course_, next_n_)) return std::nullopt;
  const std::int64_t deadline = deadline_ns(course_, next_n_);
  return Opening{deadline - static_cast<std::int64_t>(lookahead_) * period_ns(course_), deadline};
}

std::optional<FrameRead> FrameQueue::begin_read(std::int64_t now_ns) {
  if (paused_ || places_.size() >= lookahead_) return std::nullopt;
  while (drops_ && frame_at(course_, next_n_) && deadline_ns(course_, next_n_) < now_ns) {
    ++next_n_;
    ++counts_.dropped;
  }
  const std::optional<std::uint64_t> frame = frame_at(course_, next_n_);
  if (!frame) return std::nullopt;
  Place& place = places_.emplace_back();
  place.ticket = next_ticket_++;
  place.n = next_n_;
  place.frame = *frame;
  place.deadline_ns = deadline_ns(course_, next_n_);
  ++next_n_;
  return FrameRead{place.ticket, place.frame, place.deadline_ns};
}

void FrameQueue::read_ended(std::uint64_t ticket, std::int64_t now_ns, Status status, FrameBytes bytes) {
  const auto place =
      std::find_if(places_.begin(), places_.end(), [&](const Place& one) { return one.ticket == ticket; });
  if (place == places_.end()) return;
  place->ended = true;
  place->ready_ns = now_ns;
  place->status = std::move(status);
  place->bytes = std::move(bytes);
  if (!place->status.ok()) {
    ++counts_.failed;
  } else if (now_ns <= place->deadline_ns) {
    ++counts_.in_time;
  } else {
    ++counts_.late;
  }
  if (place->status.ok()) counts_.latest_ns = std::max(counts_.latest_ns, now_ns - place->deadline_ns);
}

std::optional<Delivered> FrameQueue::deliver(std::int64_t now_ns) {
  if (paused_) return std::nullopt;
  // The client is late: it gets the newest frame whose time has come.
  while (drops_ && places_.size() >= 2 && places_[0].ended && places_[1].ended && places_[1].deadline_ns <= now_ns) {
    places_.pop_front();
    ++counts_.dropped;
  }
  if (places_.empty() || !places_.front().ended) return std::nullopt;
  Place place = std::move(places_.front());
  places_.pop_front();
  Delivered delivered;
  delivered.frame = place.frame;
  delivered.deadline_ns = place.deadline_ns;
  delivered.ready_ns = place.ready_ns;
  delivered.dropped = place.n - std::exchange(awaited_n_, place.n + 1);
  delivered.status = std::move(place.status);
  delivered.bytes = std::move(place.bytes);
  return delivered;
}

bool FrameQueue::at_end() const { return places_.empty() && !frame_at(course_, next_n_); }

void FrameQueue::give_up() {
  places_.clear();
  next_n_ = awaited_n_ = 0;
}

void FrameQueue::change(const Course& course) {
  MDFS_CHECK(check(course).ok());
  give_up();
  course_ = course;
}

void FrameQueue::pause() { paused_ = true; }

void FrameQueue::resume(std::int64_t start_ns) {
  if (!std::exchange(paused_, false)) return;
  const std::optional<std::uint64_t> frame = next_frame();
  if (!frame) return;  // at the end
  Course course = course_;
  course.first = *frame;
  course.start_ns = start_ns;
  change(course);
}

}  // namespace mdfs::streams
