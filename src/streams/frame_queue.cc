// Frames ahead of their deadlines.
// SPDX-License-Identifier: Apache-2.0
#include "streams/frame_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mdfs::streams {

namespace {

constexpr std::int64_t kMeanOf = 8, kFadesIn = 16;  // reads

}  // namespace

unsigned levels_coarser(std::int64_t left_ns, std::int64_t usual_ns, unsigned most) {
  unsigned levels = 0;
  for (; levels < most && left_ns < usual_ns; ++levels) usual_ns /= 4;
  return levels;
}

FrameQueue::FrameQueue(const Course& course, unsigned lookahead, bool drops, unsigned most_coarser, const Slabs& slabs)
    : course_(course), lookahead_(lookahead), drops_(drops), most_coarser_(most_coarser), slabs_(slabs) {
  MDFS_CHECK(lookahead >= 1 && check(course).ok() && slabs.frame_length >= 1 && slabs.extent_length >= 1);
}

unsigned FrameQueue::most_together() const {
  const std::uint64_t in_slab = std::max<std::uint64_t>(1, slabs_.extent_length / slabs_.frame_length);
  return static_cast<unsigned>(std::min<std::uint64_t>(in_slab, std::max(1u, lookahead_ / 2)));
}

// Of those that are read next; 0 at the end.
unsigned FrameQueue::frames_together() const {
  const std::optional<std::uint64_t> first = frame_at(course_, next_n_);
  if (!first) return 0;
  if (course_.step != 1 && course_.step != -1) return 1;
  unsigned count = 1;
  for (; count < most_together(); ++count) {
    const std::optional<std::uint64_t> frame = frame_at(course_, next_n_ + count);
    if (!frame || slabs_.of(*frame) != slabs_.of(*first)) break;
  }
  return count;
}

std::optional<std::uint64_t> FrameQueue::next_frame() const {
  return places_.empty() ? frame_at(course_, next_n_) : std::optional(places_.front().frame);
}

std::optional<FrameQueue::Opening> FrameQueue::opening() const {
  const unsigned count = frames_together();
  if (paused_ || count == 0 || places_.size() + count > lookahead_) return std::nullopt;
  const std::int64_t last = deadline_ns(course_, next_n_ + count - 1);
  return Opening{last - static_cast<std::int64_t>(lookahead_) * period_ns(course_), deadline_ns(course_, next_n_)};
}

std::optional<FrameRead> FrameQueue::begin_read(std::int64_t now_ns) {
  if (!opening()) return std::nullopt;
  while (drops_ && frame_at(course_, next_n_) && deadline_ns(course_, next_n_) < now_ns) {
    ++next_n_;
    ++counts_.dropped;
  }
  const unsigned count = std::min<unsigned>(frames_together(), lookahead_ - static_cast<unsigned>(places_.size()));
  if (count == 0) return std::nullopt;
  const std::int64_t deadline = deadline_ns(course_, next_n_);
  const FrameRead read{next_ticket_, *frame_at(course_, next_n_),
                       deadline,     levels_coarser(deadline - now_ns, usual_ns_, most_coarser_),
                       count,        course_.step};
  for (unsigned i = 0; i < count; ++i) {
    Place& place = places_.emplace_back();
    place.ticket = next_ticket_++;
    place.n = next_n_;
    place.frame = *frame_at(course_, next_n_);
    place.deadline_ns = deadline_ns(course_, next_n_);
    place.begun_ns = now_ns;
    ++next_n_;
  }
  return read;
}

void FrameQueue::note_time(std::int64_t ns, unsigned coarser) {
  if (coarser > 0)
    usual_ns_ -= usual_ns_ / kFadesIn;
  else
    usual_ns_ = std::max(ns, usual_ns_ + (ns - usual_ns_) / kMeanOf);
}

void FrameQueue::read_ended(std::uint64_t ticket, std::int64_t now_ns, Status status, FrameBytes bytes,
                            unsigned coarser) {
  const auto place =
      std::find_if(places_.begin(), places_.end(), [&](const Place& one) { return one.ticket == ticket; });
  if (place == places_.end()) return;
  place->ended = true;
  place->ready_ns = now_ns;
  place->coarser = coarser;
  if (status.ok()) note_time(now_ns - place->begun_ns, coarser);
  place->status = std::move(status);
  place->bytes = std::move(bytes);
}

void FrameQueue::count(const Place& place) {
  if (!place.status.ok()) {
    ++counts_.failed;
    return;
  }
  ++(place.ready_ns <= place.deadline_ns ? counts_.in_time : counts_.late);
  if (place.coarser > 0) ++counts_.coarser;
  counts_.latest_ns = std::max(counts_.latest_ns, place.ready_ns - place.deadline_ns);
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
  count(place);
  Delivered delivered;
  delivered.frame = place.frame;
  delivered.deadline_ns = place.deadline_ns;
  delivered.ready_ns = place.ready_ns;
  delivered.dropped = place.n - std::exchange(awaited_n_, place.n + 1);
  delivered.coarser = place.coarser;
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

void FrameQueue::skip_first() { next_n_ = awaited_n_ = 1; }

geometry::Window window_of(const FrameWindows& windows, const FrameRead& read) {
  geometry::Window all = windows.at(read.frame_number(read.step < 0 ? read.count - 1 : 0));
  all.length[windows.axis] *= read.count;
  return all;
}

std::optional<std::size_t> next_to_read(std::span<const FrameQueue* const> queues, std::int64_t now_ns,
                                        std::int64_t& until_ns) {
  std::optional<std::size_t> chosen;
  std::int64_t deadline_ns = INT64_MAX;
  until_ns = INT64_MAX;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const std::optional<FrameQueue::Opening> opening = queues[i]->opening();
    if (!opening) continue;
    if (opening->from_ns > now_ns) {
      until_ns = std::min(until_ns, opening->from_ns);
    } else if (!chosen || opening->deadline_ns < deadline_ns) {
      chosen = i;
      deadline_ns = opening->deadline_ns;
    }
  }
  return chosen;
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
