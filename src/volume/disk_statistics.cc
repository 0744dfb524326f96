// Counters of disks, kept over mounts.
// SPDX-License-Identifier: Apache-2.0
#include "volume/disk_statistics.h"

#include "base/log.h"
#include "device/disk_counters.h"

namespace mdfs::volume {

Status DiskStatistics::load() {
  const std::lock_guard lock(mutex_);
  Status status;
  for (unsigned i = 0; i < store_.disk_count(); ++i) {
    format::DiskErrors errors = no_errors(store_.disk_info(i).uuid);
    const auto item = store_.get(disk_errors_key(i));
    if (!item.ok()) status = item.error();
    if (item.ok() && *item) {
      const auto decoded = format::decode_disk_errors(**item);
      if (!decoded.ok())
        spdlog::error("disk {}: its error counts cannot be read: {}", i, decoded.error().message());
      else if (decoded->disk_uuid == errors.disk_uuid)
        errors = *decoded;
    }
    before_.push_back(errors);
    saved_.push_back(errors);
  }
  return status;
}

format::DiskErrors DiskStatistics::no_errors(const Uuid& disk) const {
  format::DiskErrors errors;
  errors.disk_uuid = disk;
  if (!disk.is_nil()) errors.since_ns = environment_.now_ns();
  return errors;
}

void DiskStatistics::members_changed() {
  const std::lock_guard lock(mutex_);
  before_.resize(store_.disk_count());
  saved_.resize(store_.disk_count());
  for (unsigned i = 0; i < before_.size(); ++i) {
    const Uuid uuid = store_.disk_info(i).uuid;
    if (before_[i].disk_uuid != uuid) before_[i] = no_errors(uuid);
  }
}

format::DiskErrors DiskStatistics::errors_of(unsigned disk) const {
  format::DiskErrors errors = before_[disk];
  if (errors.disk_uuid.is_nil()) return errors;
  const device::DiskCounters* counters = store_.counters(disk);
  if (counters == nullptr) return errors;
  errors.read_errors += counters->read_errors;
  errors.write_errors += counters->write_errors;
  errors.flush_errors += counters->flush_errors;
  errors.checksum_errors += counters->checksum_errors;
  errors.repaired += counters->repaired;
  return errors;
}

Status DiskStatistics::save() {
  const std::lock_guard lock(mutex_);
  if (store_.read_only() || (store_.holds_still() && !store_.dirty())) return {};
  std::vector<format::DiskErrors> now;
  for (unsigned i = 0; i < before_.size(); ++i) now.push_back(errors_of(i));
  if (now == saved_) return {};
  MDFS_TRY(store_.transact(store::Purpose::kFreeing, [&](store::Transaction& transaction) -> Status {
    for (unsigned i = 0; i < now.size(); ++i) {
      if (now[i] == saved_[i]) continue;
      if (now[i].disk_uuid.is_nil())
        transaction.erase(disk_errors_key(i));
      else
        transaction.put(disk_errors_key(i), format::encode(now[i]));
    }
    return {};
  }));
  saved_ = std::move(now);
  return {};
}

std::vector<DiskStatistic> DiskStatistics::now() const {
  const std::lock_guard lock(mutex_);
  std::vector<DiskStatistic> all;
  std::vector<std::optional<double>> paces(before_.size());
  for (unsigned i = 0; i < before_.size(); ++i) {
    DiskStatistic& disk = all.emplace_back();
    disk.errors = errors_of(i);
    const device::DiskCounters* counters = store_.counters(i);
    if (counters != nullptr) paces[i] = counters->pace.ns_per_byte(device::ReadPace::now_ns());
    if (counters == nullptr || disk.errors.disk_uuid.is_nil()) continue;
    disk.reads = counters->reads;
    disk.writes = counters->writes;
    disk.flushes = counters->flushes;
    disk.read_bytes = counters->read_bytes;
    disk.written_bytes = counters->written_bytes;
  }
  const std::vector<double> slow = device::slowness(paces);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].slowness = slow[i];
  return all;
}

Status DiskStatistics::reset() {
  {
    const std::lock_guard lock(mutex_);
    if (store_.read_only()) return {Errc::kReadOnly, store_.read_only_reason()};
    if (store_.holds_still())
      return {Errc::kStaleDisk, "a disk is missing, and a reset of the error counts would make it stale"};
    for (unsigned i = 0; i < before_.size(); ++i) {
      const format::DiskErrors now = errors_of(i);
      if (now.disk_uuid.is_nil()) continue;
      format::DiskErrors& before = before_[i];
      before.read_errors -= now.read_errors;
      before.write_errors -= now.write_errors;
      before.flush_errors -= now.flush_errors;
      before.checksum_errors -= now.checksum_errors;
      before.repaired -= now.repaired;
      before.since_ns = environment_.now_ns();
    }
  }
  MDFS_TRY(save());
  return store_.commit();
}

}  // namespace mdfs::volume
