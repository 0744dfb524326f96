// The order of requests.
// SPDX-License-Identifier: Apache-2.0
#include "device/request_schedule.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace mdfs::device {

void RequestSchedule::add(Io* request, const Urgency& urgency, std::int64_t cost_ns, std::int64_t now_ns) {
  save_up(now_ns);
  const Waiting waiting{request, std::max<std::int64_t>(1, cost_ns)};
  if (urgency.kind == Urgency::Kind::kReserved)
    reserved_.emplace(urgency.deadline_ns, waiting);
  else
    of(urgency.kind).waiting.push_back(waiting);
}

void RequestSchedule::hurry(const std::function<bool(const Io&)>& is_meant, const Urgency& urgency,
                            std::int64_t now_ns) {
  save_up(now_ns);
  std::vector<Waiting> hurried;
  for (Others* const others : {&ordinary_, &background_})
    for (auto one = others->waiting.begin(); one != others->waiting.end();) {
      if (!is_meant(*one->request)) {
        ++one;
        continue;
      }
      hurried.push_back(*one);
      one = others->waiting.erase(one);
    }
  for (auto one = reserved_.upper_bound(urgency.deadline_ns); one != reserved_.end();) {
    if (!is_meant(*one->second.request)) {
      ++one;
      continue;
    }
    hurried.push_back(one->second);
    one = reserved_.erase(one);
  }
  for (const Waiting& one : hurried) reserved_.emplace(urgency.deadline_ns, one);
}

bool RequestSchedule::is_waiting() const {
  return !reserved_.empty() || !ordinary_.waiting.empty() || !background_.waiting.empty();
}

// Time counts while others wait for it; what has been saved ends with the waiting.
void RequestSchedule::save_up(std::int64_t now_ns) {
  const auto elapsed = static_cast<double>(std::max<std::int64_t>(0, now_ns - saved_until_ns_));
  saved_until_ns_ = std::max(saved_until_ns_, now_ns);
  const auto save = [&](Others& others, double share) {
    if (others.waiting.empty()) {
      others.saved_ns = 0;
      return;
    }
    // At least what the next one costs can be saved.
    const double most = static_cast<double>(std::max(kMostSavedNs, others.waiting.front().cost_ns));
    others.saved_ns = std::min(most, others.saved_ns + share * elapsed);
  };
  save(ordinary_, kOrdinaryShare);
  save(background_, kBackgroundShare);
}

bool RequestSchedule::has_room(std::int64_t cost_ns) const {
  return under_way_.size() < kLeastUnderWay || under_way_ns_ + cost_ns <= kUnderWayNs;
}

RequestSchedule::Others* RequestSchedule::choose() {
  for (Others* const others : {&ordinary_, &background_})
    if (!others->waiting.empty() && others->saved_ns >= static_cast<double>(others->waiting.front().cost_ns))
      return others;
  if (!reserved_.empty()) return nullptr;
  return !ordinary_.waiting.empty() ? &ordinary_ : &background_;
}

Io* RequestSchedule::next(std::int64_t now_ns) { return start_next(now_ns, true); }

Io* RequestSchedule::next_of_all(std::int64_t now_ns) { return start_next(now_ns, false); }

Io* RequestSchedule::start_next(std::int64_t now_ns, bool limited) {
  if (!is_waiting()) return nullptr;
  save_up(now_ns);
  Others* const others = choose();
  const Waiting next = others == nullptr ? reserved_.begin()->second : others->waiting.front();
  if (limited && !has_room(next.cost_ns)) return nullptr;
  if (others == nullptr) {
    reserved_.erase(reserved_.begin());
  } else {
    others->waiting.pop_front();
    others->saved_ns = std::max(0.0, others->saved_ns - static_cast<double>(next.cost_ns));
  }
  under_way_.emplace(next.request, UnderWay{next.cost_ns, now_ns});
  under_way_ns_ += next.cost_ns;
  return next.request;
}

std::int64_t RequestSchedule::ended(const Io* request, std::int64_t now_ns) {
  const auto found = under_way_.find(request);
  MDFS_CHECK(found != under_way_.end());
  const std::int64_t took_ns = std::max<std::int64_t>(0, now_ns - std::max(last_end_ns_, found->second.started_ns));
  last_end_ns_ = std::max(last_end_ns_, now_ns);
  under_way_ns_ -= found->second.cost_ns;
  under_way_.erase(found);
  return took_ns;
}

}  // namespace mdfs::device
