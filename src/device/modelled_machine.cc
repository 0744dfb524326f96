// The engine of the simulator, kept to the clock.
// SPDX-License-Identifier: Apache-2.0
#include "device/modelled_machine.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "device/request.h"

namespace mdfs::device {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kFarSeconds = 4e9;  // 127 years: no wait is as long, and it fits the clock
constexpr unsigned long kTimerSlackNs = 1;

}  // namespace

void ModelledMachine::Collector::job_done(model::Engine& engine, std::uint64_t token) {
  auto* pending = reinterpret_cast<Pending*>(token);
  pending->due_s = engine.now_s();
  ended.push_back(pending);
}

Result<std::shared_ptr<ModelledMachine>> ModelledMachine::start(const model::Machine& machine, unsigned disks,
                                                                std::uint64_t seed, Waiter& waiter) {
  std::shared_ptr<ModelledMachine> made(new ModelledMachine(machine, disks, seed, waiter));
  if (!made->route_.has(model::Route::Phase::kExtent))
    return Error{Errc::kInvalidArgument,
                 fmt::format("machine {}: all its stages are per window, and disks see no windows", machine.name)};
  made->thread_ = std::thread([raw = made.get()] { raw->loop(); });
  return made;
}

ModelledMachine::ModelledMachine(const model::Machine& machine, unsigned disks, std::uint64_t seed, Waiter& waiter)
    : route_(machine, disks, false),
      waiter_(waiter),
      start_ns_(waiter.now_ns()),
      engine_(route_.max_steps(), seed),
      use_(disks),
      under_way_(disks),
      head_scale_(disks, 1) {
  route_.add_stations(engine_);
}

ModelledMachine::~ModelledMachine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  waiter_.wake();
  thread_.join();
}

void ModelledMachine::set_disk(unsigned disk, const std::string& name, std::uint64_t size_bytes) {
  MDFS_CHECK(disk < disks());
  const std::lock_guard lock(mutex_);
  use_[disk].name = name;
  head_scale_[disk] = model::head_scale(route_.machine(), static_cast<double>(size_bytes));
}

void ModelledMachine::enter(std::span<const std::unique_ptr<Pending>> batch) {
  bool sooner = false;
  {
    const std::lock_guard lock(mutex_);
    advance();
    for (const auto& pending : batch) {
      const Io& io = pending->inner;
      const auto bytes = static_cast<double>(io.bytes());
      const double scale = head_scale_[pending->disk];
      const model::Request request{.disk = pending->disk,
                                   .full_bytes = bytes,
                                   .part_bytes = bytes,
                                   .address_bytes = static_cast<double>(io.offset) * scale,
                                   .span_bytes = bytes * scale};
      ModelledDiskUse& use = use_[pending->disk];
      (io.op == Op::kRead ? use.reads : use.writes) += 1;
      (io.op == Op::kRead ? use.read_bytes : use.written_bytes) += io.bytes();
      use.max_requests = std::max(use.max_requests, ++under_way_[pending->disk]);
      pending->submitted_s = engine_.now_s();
      route_.steps(model::Route::Phase::kExtent, request, engine_.random(), steps_);
      const auto token = reinterpret_cast<std::uint64_t>(pending.get());
      if (steps_.empty()) {
        collector_.job_done(engine_, token);
      } else {
        engine_.start(steps_, token);
      }
    }
    const auto next = engine_.next_s();
    sooner = !collector_.ended.empty() || (next && deadline_ns(*next) < waits_until_ns_);
  }
  if (sooner) waiter_.wake();
}

void ModelledMachine::advance() {
  const std::int64_t now = waiter_.now_ns();
  double until = std::max(seconds(now), engine_.now_s());
  // The event that the thread waited for is due, in spite of rounded seconds.
  if (const auto next = engine_.next_s(); next && now >= deadline_ns(*next)) until = std::max(until, *next);
  engine_.run_until(until, collector_);
}

std::int64_t ModelledMachine::deadline_ns(double at_s) const {
  if (at_s > kFarSeconds) return Waiter::kNever;
  return start_ns_ + static_cast<std::int64_t>(std::ceil(at_s * kNsPerSecond));
}

void ModelledMachine::loop() {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
  std::vector<Pending*> ready;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      advance();
      for (Pending* pending : std::exchange(collector_.ended, {})) {
        ModelledDiskUse& use = use_[pending->disk];
        --under_way_[pending->disk];
        const double delay = pending->due_s - pending->submitted_s;
        use.delay_s += delay;
        use.max_delay_s = std::max(use.max_delay_s, delay);
        pending->model_done = true;
        if (pending->transfer_done) ready.push_back(pending);
      }
      if (ready.empty()) {
        if (stopping_) return;
        const auto next = engine_.next_s();
        waits_until_ns_ = next ? deadline_ns(*next) : Waiter::kNever;
      }
    }
    if (ready.empty()) waiter_.wait_until(waits_until_ns_);
    for (Pending* pending : std::exchange(ready, {})) finish(*pending);
  }
}

void ModelledMachine::transfer_ended(Pending& pending) {
  {
    const std::lock_guard lock(mutex_);
    pending.transfer_done = true;
    if (!pending.model_done) return;  // the thread finishes it
    count_late(pending);
  }
  finish(pending);
}

void ModelledMachine::count_late(Pending& pending) {
  ModelledDiskUse& use = use_[pending.disk];
  ++use.late;
  use.max_late_s = std::max(use.max_late_s, seconds(waiter_.now_ns()) - pending.due_s);
}

void ModelledMachine::finish(Pending& pending) {
  const std::unique_ptr<Pending> owned(&pending);
  complete(*pending.outer, std::move(pending.inner.status));
}

ModelledReport ModelledMachine::report() {
  const std::lock_guard lock(mutex_);
  advance();
  ModelledReport report{.machine = route_.machine().name,
                        .hash = model::hash_text(route_.machine()),
                        .seconds = engine_.now_s(),
                        .disks = use_,
                        .components = {}};
  const auto& resources = route_.machine().resources;
  for (std::size_t i = 0; i < resources.size(); ++i)
    for (unsigned instance = 0; instance < route_.topology().count[i]; ++instance) {
      const model::StationStatistics statistics = engine_.statistics(route_.station(i, instance));
      const double span = std::max(engine_.now_s(), 1e-9);
      report.components.push_back({.name = resources[i].name,
                                   .instance = instance,
                                   .servers = resources[i].servers,
                                   .served = statistics.served,
                                   .busy_s = statistics.busy_s,
                                   .utilization = statistics.busy_s / (span * resources[i].servers),
                                   .mean_queue = statistics.queue_area_s / span,
                                   .max_queue = statistics.max_queue});
    }
  return report;
}

std::string report_text(const ModelledReport& report) {
  std::string text = fmt::format("modelled disks: {} ({}), {:.1f} s\n", report.machine, report.hash, report.seconds);
  text += "disk     reads   MB read    writes  MB written  mean delay   max delay   max under way   late\n";
  for (std::size_t i = 0; i < report.disks.size(); ++i) {
    const ModelledDiskUse& disk = report.disks[i];
    const double requests = static_cast<double>(std::max<std::uint64_t>(disk.reads + disk.writes, 1));
    text += fmt::format("{:<4} {:>9} {:>9.3f} {:>9} {:>11.3f} {:>8.3f} ms {:>8.3f} ms {:>15} {:>6}  {}\n", i,
                        disk.reads, static_cast<double>(disk.read_bytes) / 1e6, disk.writes,
                        static_cast<double>(disk.written_bytes) / 1e6, disk.delay_s / requests * 1e3,
                        disk.max_delay_s * 1e3, disk.max_requests, disk.late, disk.name);
  }
  text += "component        served    busy s   busy %  queue (mean, max)\n";
  for (const ComponentUse& use : report.components)
    text += fmt::format("{:<14} {:>8} {:>9.3f} {:>7.1f}%  {:.2f}, {}\n", fmt::format("{} {}", use.name, use.instance),
                        use.served, use.busy_s, use.utilization * 100, use.mean_queue, use.max_queue);
  for (std::size_t i = 0; i < report.disks.size(); ++i)
    if (report.disks[i].late > 0)
      text += fmt::format("disk {}: {} answers came up to {:.3f} ms late: {} itself was slower than the model\n", i,
                          report.disks[i].late, report.disks[i].max_late_s * 1e3, report.disks[i].name);
  return text;
}

}  // namespace mdfs::device
