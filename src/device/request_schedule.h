// The order in which a disk gets its requests while rates are reserved on it. Pure: times are given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "device/urgency.h"

namespace mdfs::device {

struct Io;

// Reserved requests start before all others, the earliest deadline first. Ordinary ones start when no reserved one
// waits, and background ones when nothing else waits. None of these starves: while they wait, kOrdinaryShare and
// kBackgroundShare of the time are saved up for them. A disk has few requests at a time, so that an urgent one waits
// for no more than these. One thread at a time.
class RequestSchedule {
 public:
  // Of the time, while reserved requests keep others waiting.
  static constexpr double kOrdinaryShare = 0.05, kBackgroundShare = 0.01;
  // What the disk has at a time: two requests, or more that take so long together.
  static constexpr std::int64_t kUnderWayNs = 10'000'000;
  static constexpr unsigned kLeastUnderWay = 2;
  static constexpr std::int64_t kMostSavedNs = 20'000'000;

  // `cost_ns`: the time that the request is expected to take.
  void add(Io* request, const Urgency& urgency, std::int64_t cost_ns, std::int64_t now_ns);
  // What waits and is meant becomes reserved, with the deadline of `urgency` (kReserved), or gets that deadline if it
  // is earlier than its own.
  void hurry(const std::function<bool(const Io&)>& is_meant, const Urgency& urgency, std::int64_t now_ns);
  // The request that starts now, if one may. Call it until it returns null.
  Io* next(std::int64_t now_ns);
  // A request that next() has returned has ended. Returns the time that it took of the disk: since the end of the one
  // before it, or since its start.
  std::int64_t ended(const Io* request, std::int64_t now_ns);
  bool is_waiting() const;
  // As next(), without a limit to what the disk has at a time.
  Io* next_of_all(std::int64_t now_ns);

 private:
  struct Waiting {
    Io* request = nullptr;
    std::int64_t cost_ns = 0;
  };
  struct UnderWay {
    std::int64_t cost_ns = 0, started_ns = 0;
  };
  // What waits behind reserved requests, and the time saved up for it.
  struct Others {
    std::deque<Waiting> waiting;
    double saved_ns = 0;
  };

  void save_up(std::int64_t now_ns);
  bool has_room(std::int64_t cost_ns) const;
  Others& of(Urgency::Kind kind) { return kind == Urgency::Kind::kBackground ? background_ : ordinary_; }
  // The queue from which the next request comes; null: the reserved ones.
  Others* choose();
  Io* start_next(std::int64_t now_ns, bool limited);

  std::multimap<std::int64_t, Waiting> reserved_;  // by deadline; equal ones in the order of arrival
  Others ordinary_, background_;
  std::map<const Io*, UnderWay> under_way_;
  std::int64_t under_way_ns_ = 0;  // what they cost together
  std::int64_t saved_until_ns_ = 0;
  std::int64_t last_end_ns_ = 0;
};

}  // namespace mdfs::device
