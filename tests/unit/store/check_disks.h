// The check of a volume on disks in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/check/check.h"
#include "store_fixture.h"

namespace mdfs::store {

inline Result<CheckReport> check_disks(const Disks& disks, RepairMode mode, Environment& environment) {
  CheckOptions options;
  options.repair = mode;
  return check_volume(borrow(disks), options, environment);
}

}  // namespace mdfs::store
