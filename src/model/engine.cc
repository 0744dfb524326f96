// A binary heap of events over stations with intrusive queues.
// SPDX-License-Identifier: Apache-2.0
#include "model/engine.h"

#include <algorithm>

#include "base/check.h"

namespace mdfs::model {

Engine::Engine(unsigned max_steps, std::uint64_t seed, TieOrder ties)
    : max_steps_(std::max(max_steps, 1u)), ties_(ties), random_(seed) {}

std::uint32_t Engine::add_station(unsigned servers, const std::optional<Head>& head) {
  MDFS_CHECK(servers >= 1);
  Station station;
  station.servers = servers;
  station.head = head;
  station.changed_s = now_s_;
  stations_.push_back(station);
  return static_cast<std::uint32_t>(stations_.size() - 1);
}

void Engine::push(double time_s, std::uint64_t what) {
  const std::uint64_t order = order_++;
  heap_.push_back({time_s, ties_ == TieOrder::kInsertion ? order : ~order, what});
  std::push_heap(heap_.begin(), heap_.end(), Later{});
}

void Engine::alarm(double at_s, std::uint64_t token) {
  MDFS_CHECK(at_s >= now_s_ && token < kAlarm);
  push(at_s, kAlarm | token);
}

void Engine::start(std::span<const Step> steps, std::uint64_t token) {
  MDFS_CHECK(!steps.empty() && steps.size() <= max_steps_ && token < kAlarm);
  std::uint32_t job = free_;
  if (job == kNone) {
    job = static_cast<std::uint32_t>(jobs_.size());
    jobs_.emplace_back();
    steps_.resize(steps_.size() + max_steps_);
  } else {
    free_ = jobs_[job].next;
  }
  jobs_[job] = {token, kNone, 0, static_cast<std::uint16_t>(steps.size())};
  std::copy(steps.begin(), steps.end(), steps_.begin() + static_cast<std::ptrdiff_t>(std::size_t{job} * max_steps_));
  arrive(job);
}

// Integrates what was constant since the last change.
void Engine::account(Station& station) const {
  const double elapsed = now_s_ - station.changed_s;
  station.statistics.busy_s += elapsed * station.busy;
  station.statistics.queue_area_s += elapsed * static_cast<double>(station.waiting);
  station.changed_s = now_s_;
}

void Engine::arrive(std::uint32_t job) {
  Station& station = stations_[step_of(job).station];
  account(station);
  if (station.busy < station.servers) {
    serve(station, job);
    return;
  }
  jobs_[job].next = kNone;
  if (station.last == kNone) {
    station.first = job;
  } else {
    jobs_[station.last].next = job;
  }
  station.last = job;
  ++station.waiting;
  station.statistics.max_queue = std::max(station.statistics.max_queue, station.waiting);
}

double Engine::head_s(Station& station, const Step& step) {
  if (!station.head || step.address_bytes < 0) return 0;
  const double distance = step.address_bytes - station.head_at_bytes;
  station.head_at_bytes = step.address_bytes + step.length_bytes;
  if (distance == 0) return 0;
  return station.head->seek_s(distance) + random_.uniform(0, station.head->rotation_s);
}

void Engine::serve(Station& station, std::uint32_t job) {
  const Step& step = step_of(job);
  ++station.busy;
  ++station.statistics.started;
  push(now_s_ + step.service_s + head_s(station, step), job);
}

void Engine::finish(std::uint32_t job, Listener& listener) {
  Station& station = stations_[step_of(job).station];
  account(station);
  --station.busy;
  ++station.statistics.served;
  if (station.first != kNone) {
    const std::uint32_t next = station.first;
    station.first = jobs_[next].next;
    if (station.first == kNone) station.last = kNone;
    --station.waiting;
    serve(station, next);
  }
  Job& done = jobs_[job];
  if (++done.step < done.steps) {
    arrive(job);
    return;
  }
  const std::uint64_t token = done.token;
  done.next = free_;
  free_ = job;
  listener.job_done(*this, token);
}

// The first event of the heap.
void Engine::happen(Listener& listener) {
  std::pop_heap(heap_.begin(), heap_.end(), Later{});
  const Event event = heap_.back();
  heap_.pop_back();
  now_s_ = event.time_s;
  ++events_;
  if ((event.what & kAlarm) != 0) {
    listener.alarm(*this, event.what & ~kAlarm);
  } else {
    finish(static_cast<std::uint32_t>(event.what), listener);
  }
}

void Engine::run(Listener& listener) {
  while (!heap_.empty()) happen(listener);
}

void Engine::run_until(double until_s, Listener& listener) {
  MDFS_CHECK(until_s >= now_s_);
  while (!heap_.empty() && heap_.front().time_s <= until_s) happen(listener);
  now_s_ = until_s;
}

std::optional<double> Engine::next_s() const {
  if (heap_.empty()) return std::nullopt;
  return heap_.front().time_s;
}

void Engine::clear_statistics() {
  for (Station& station : stations_) {
    station.statistics = {};
    station.statistics.max_queue = station.waiting;
    station.changed_s = now_s_;
  }
  cleared_s_ = now_s_;
}

StationStatistics Engine::statistics(std::uint32_t station) const {
  Station copy = stations_[station];
  account(copy);
  return copy.statistics;
}

}  // namespace mdfs::model
