// Counts the requests of the disks of a volume since the mount, and their errors over all mounts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/environment.h"
#include "base/result.h"
#include "format/disk_errors.h"
#include "format/key.h"
#include "store/store.h"

namespace mdfs::volume {

struct DiskStatistic {
  std::uint64_t reads = 0, writes = 0, flushes = 0;  // since the mount, as the next two
  std::uint64_t read_bytes = 0, written_bytes = 0;
  format::DiskErrors errors;  // since they were set to zero
  double slowness = 1;        // of its reads lately, as device::slowness() says
};

inline format::Key disk_errors_key(std::uint64_t disk) { return {MDFS_OBJECT_VOLUME, MDFS_KIND_DISK_ERRORS, disk}; }

// Any thread may call any method. The store outlives this.
class DiskStatistics {
 public:
  DiskStatistics(store::Store& store, Environment& environment) : store_(store), environment_(environment) {}

  // Loads the errors of earlier mounts. Leaves out those of replaced disks, and those that cannot be read.
  Status load();
  // Called after disks were added or removed: a new disk begins without errors, and those of removed disks are
  // forgotten.
  void members_changed();
  // Puts changed counts into the tree; the next commit makes them durable. Does nothing if that would be the first
  // commit without an absent disk (Store::holds_still).
  Status save();
  // By number; zeros for an unused number.
  std::vector<DiskStatistic> now() const;
  // Sets the errors of all disks to zero. kStaleDisk: that would make an absent disk stale.
  Status reset();

 private:
  // The lock is held in these:
  format::DiskErrors errors_of(unsigned disk) const;
  format::DiskErrors no_errors(const Uuid& disk) const;

  store::Store& store_;
  Environment& environment_;
  mutable std::mutex mutex_;  // guards all below; held while the tree is changed
  // Values to add to the counters of this mount; after a reset negative, modulo 2^64. Entries of unused numbers have no
  // disk.
  std::vector<format::DiskErrors> before_;
  std::vector<format::DiskErrors> saved_;  // those in the tree; an entry without a disk: none
};

}  // namespace mdfs::volume
