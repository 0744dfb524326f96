// The event loop of simulator and modelled disks: stations with FIFO queues, jobs that visit them in turn, and alarms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/machine.h"
#include "model/random.h"

namespace mdfs::model {

// One visit of a job to a station.
struct Step {
  std::uint32_t station = 0;
  double service_s = 0;
  // For stations with a head: where on the disk, and how much; an address below 0 does not move the head.
  double address_bytes = -1;
  double length_bytes = 0;
};

// Statistics of a station since they were last cleared.
struct StationStatistics {
  double busy_s = 0;        // summed over its servers
  double queue_area_s = 0;  // waiting jobs, integrated over time
  std::uint64_t started = 0;
  std::uint64_t served = 0;
  std::uint64_t max_queue = 0;  // waiting, not in service
};

// Events at the same time happen in the order of their creation, or (to test that nothing depends on it) in the
// reverse order.
enum class TieOrder { kInsertion, kReversed };

class Engine;
// Receives the events of an engine, on the thread that runs it. The functions may start jobs and set alarms. `token` is
// that of the job or alarm.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void job_done(Engine& engine, std::uint64_t token) = 0;
  virtual void alarm(Engine& engine, std::uint64_t token) = 0;
};

// The simulated clock and the stations. Times are in seconds from 0. Deterministic: the same calls and the same seed
// give the same times, bit for bit. One thread.
class Engine {
 public:
  // No job has more steps than max_steps (abort).
  Engine(unsigned max_steps, std::uint64_t seed, TieOrder ties = TieOrder::kInsertion);

  // Adds a station and returns its index, from 0 on. A station has one queue, first come first served, and `servers`
  // identical servers.
  std::uint32_t add_station(unsigned servers, const std::optional<Head>& head = std::nullopt);

  double now_s() const { return now_s_; }
  std::uint64_t events() const { return events_; }
  Random& random() { return random_; }

  // Starts a job now; copies its steps. Tokens are below 2^63.
  void start(std::span<const Step> steps, std::uint64_t token);
  // Calls Listener::alarm at that time, not before now.
  void alarm(double at_s, std::uint64_t token);
  // Runs until no event is left.
  void run(Listener& listener);
  // Runs all events up to `until_s` (not before now), and sets the time to it; for an external clock.
  void run_until(double until_s, Listener& listener);
  // Time of the next event; absent: there is none.
  std::optional<double> next_s() const;

  void clear_statistics();
  double cleared_s() const { return cleared_s_; }  // time of the last clearing
  // Statistics of a station up to now.
  StationStatistics statistics(std::uint32_t station) const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint64_t kAlarm = std::uint64_t{1} << 63;
  struct Event {
    double time_s;
    std::uint64_t order;
    std::uint64_t what;  // a job, or kAlarm + token
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time_s != b.time_s ? a.time_s > b.time_s : a.order > b.order;
    }
  };
  struct Job {
    std::uint64_t token = 0;
    std::uint32_t next = kNone;  // in the queue, or in the list of free jobs
    std::uint16_t step = 0;
    std::uint16_t steps = 0;
  };
  struct Station {
    std::uint32_t servers = 1;
    std::uint32_t busy = 0;
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint64_t waiting = 0;
    double changed_s = 0;
    StationStatistics statistics;
    std::optional<Head> head;
    double head_at_bytes = 0;
  };

  void push(double time_s, std::uint64_t what);
  void happen(Listener& listener);
  void arrive(std::uint32_t job);
  void serve(Station& station, std::uint32_t job);
  void finish(std::uint32_t job, Listener& listener);
  void account(Station& station) const;
  double head_s(Station& station, const Step& step);
  Step& step_of(std::uint32_t job) { return steps_[std::size_t{job} * max_steps_ + jobs_[job].step]; }

  const unsigned max_steps_;
  const TieOrder ties_;
  Random random_;
  double now_s_ = 0;
  double cleared_s_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t order_ = 0;
  std::vector<Event> heap_;
  std::vector<Job> jobs_;
  std::vector<Step> steps_;  // max_steps_ for each job
  std::uint32_t free_ = kNone;
  std::vector<Station> stations_;
};

}  // namespace mdfs::model
