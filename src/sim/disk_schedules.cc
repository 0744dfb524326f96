// Schedules over the stations of an engine.
// SPDX-License-Identifier: Apache-2.0
#include "sim/disk_schedules.h"

#include <algorithm>
#include <utility>

#include "sim/slots.h"

namespace mdfs::sim {

DiskSchedules::DiskSchedules(const System& system, Engine& engine, bool keeps,
                             const std::vector<double>& trial_ns_per_byte)
    : system_(system), engine_(engine), keeps_(keeps), disks_(system.setup().disks) {
  for (std::size_t disk = 0; disk < std::min(disks_.size(), trial_ns_per_byte.size()); ++disk)
    disks_[disk].trial_ns_per_byte = trial_ns_per_byte[disk];
}

void DiskSchedules::submit(const Request& request, const device::Urgency& urgency, bool is_write, std::uint64_t owner) {
  const std::uint32_t number = take_slot(ops_, free_);
  Op& op = ops_[number];
  op.io.context = &op;
  op.request = request;
  op.is_write = is_write;
  op.owner = owner;
  op.io.offset = number;
  if (!keeps_) {
    start(number);
    return;
  }
  Disk& disk = disks_[request.disk];
  const double ns_per_byte =
      std::max(disk.trial_ns_per_byte, disk.pace->ns_per_byte(now_ns()).value_or(device::kUnknownNsPerByte));
  const double bytes = request.full_bytes + static_cast<double>(device::kRequestBytes);
  disk.schedule.add(&op.io, urgency, static_cast<std::int64_t>(bytes * ns_per_byte), now_ns());
  start_scheduled(request.disk);
}

void DiskSchedules::start(std::uint32_t number) {
  const Op& op = ops_[number];
  if (!op.is_write) disks_[op.request.disk].pace->begin(now_ns());
  system_.route().steps(Route::Phase::kExtent, op.request, engine_.random(), steps_);
  if (steps_.empty())
    at_once_.push_back(end(number));
  else
    engine_.start(steps_, number);
}

void DiskSchedules::start_scheduled(unsigned disk) {
  while (device::Io* const io = disks_[disk].schedule.next(now_ns())) start(static_cast<std::uint32_t>(io->offset));
}

std::uint64_t DiskSchedules::end(std::uint32_t number) {
  Op& op = ops_[number];
  Disk& disk = disks_[op.request.disk];
  if (!op.is_write) disk.pace->end(now_ns(), static_cast<std::uint64_t>(op.request.full_bytes), true);
  if (keeps_) disk.schedule.ended(&op.io, now_ns());
  free_.push_back(number);
  return op.owner;
}

std::uint64_t DiskSchedules::ended(std::uint64_t token) {
  const auto number = static_cast<std::uint32_t>(token);
  const unsigned disk = ops_[number].request.disk;
  const std::uint64_t owner = end(number);
  if (keeps_) start_scheduled(disk);
  return owner;
}

}  // namespace mdfs::sim
