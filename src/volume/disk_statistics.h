// What the disks of a volume did since the mount, and what went wrong with them over all mounts.
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
  std::uint64_t reads = 0, writes = 0, flushes = 0;  // since the mount, as the next
  std::uint64_t read_bytes = 0, written_bytes = 0;
  format::DiskErrors errors;  // since they were set to zero
};

inline format::Key disk_errors_key(std::uint64_t disk) { return {MDFS_OBJECT_VOLUME, MDFS_KIND_DISK_ERRORS, disk}; }

// Any thread may call any method. The store outlives this.
class DiskStatistics {
 public:
  DiskStatistics(store::Store& store, Environment& environment) : store_(store), environment_(environment) {}

  // Errors of earlier mounts; those of a disk that has been replaced do not count, nor those that cannot be read.
  Status load();
  // Disks have come or gone: one that came begins with no errors, those of one that has gone are forgotten.
  void members_changed();
  // Puts into the tree what has changed since the last time; they are safe with the next commit. Not where that would
  // be the first commit without a disk (Store::holds_still), unless somebody asks for it.
  Status save(bool asked_for = false);
  // By number; of a number that no disk has, nothing.
  std::vector<DiskStatistic> now() const;
  // The errors of all disks are counted from zero again.
  Status reset();

 private:
  // The lock is held in these.
  format::DiskErrors errors_of(unsigned disk) const;
  format::DiskErrors no_errors(const Uuid& disk) const;

  store::Store& store_;
  Environment& environment_;
  mutable std::mutex mutex_;  // guards all below; held while the tree is changed
  // What to add to the counters of this mount; after a reset less than nothing, modulo 2^64. Those of a number that no
  // disk has are of no disk.
  std::vector<format::DiskErrors> before_;
  std::vector<format::DiskErrors> saved_;  // as the tree has them; of no disk: it has none
};

}  // namespace mdfs::volume
