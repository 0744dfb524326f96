// Fuzz target: a small volume whose decoded structures were changed under checksums that are right; it is mounted,
// listed, read, scrubbed, written to and synced, checked, repaired and checked again.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "forge_volume.h"
#include "fuzz.h"
#include "small_volume.h"
#include "use_volume.h"

using namespace mdfs;

namespace {

const fuzz::ForgedBase& base() {
  static const fuzz::ForgedBase* const made = [] {
    MDFS_CHECK(set_log_level("off").ok());
    return new fuzz::ForgedBase;
  }();
  return *made;
}

}  // namespace

// The first byte chooses what is done: read; checked and repaired; read and changed; repaired and read. The rest is the
// script.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned what = data[0] % 4;
  const auto disks = safety::clone(base().disks);
  fuzz::forge(base(), fuzz::input(data + 1, size - 1), disks);
  if (what == 0) fuzz::use(disks, false);
  if (what == 2) fuzz::use(safety::clone(disks), true);
  if (what % 2 == 1) fuzz::check_and_repair(disks);
  if (what == 3) fuzz::use(disks, true);
  return 0;
}
