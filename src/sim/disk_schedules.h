// Requests to the disks of a simulated machine, in the order of the schedules that a mount keeps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "device/disk.h"
#include "device/read_pace.h"
#include "device/request_schedule.h"
#include "device/urgency.h"
#include "sim/system.h"

namespace mdfs::sim {

// Over an engine that runs nothing else. One thread.
class DiskSchedules {
 public:
  // Without schedules requests go straight to the disks. `trial_ns_per_byte`: by disk, as a trial has found.
  DiskSchedules(const System& system, Engine& engine, bool keeps, const std::vector<double>& trial_ns_per_byte);

  // `owner` comes back from ended(); below 2^32.
  void submit(const Request& request, const device::Urgency& urgency, bool is_write, std::uint64_t owner);
  // A job of the engine has ended; returns the owner of the request.
  std::uint64_t ended(std::uint64_t token);
  // Requests that no stage holds up end at once: owners, to be asked for after each submit() and ended().
  std::vector<std::uint64_t> take_ended_at_once() { return std::exchange(at_once_, {}); }

 private:
  struct Op {
    device::Io io;  // its address is the name of the request in the schedule
    Request request;
    bool is_write = false;
    std::uint64_t owner = 0;
  };
  struct Disk {
    device::RequestSchedule schedule;
    std::unique_ptr<device::ReadPace> pace = std::make_unique<device::ReadPace>();
    double trial_ns_per_byte = 0;
  };

  std::int64_t now_ns() const { return static_cast<std::int64_t>(engine_.now_s() * 1e9); }
  void start(std::uint32_t op);
  void start_scheduled(unsigned disk);
  std::uint64_t end(std::uint32_t op);

  const System& system_;
  Engine& engine_;
  const bool keeps_;
  std::vector<Disk> disks_;
  std::deque<Op> ops_;  // stay where they are
  std::vector<std::uint32_t> free_;
  std::vector<Step> steps_;
  std::vector<std::uint64_t> at_once_;
};

}  // namespace mdfs::sim
