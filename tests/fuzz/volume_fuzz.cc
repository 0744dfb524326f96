// Fuzz target: a whole small volume, edited so that no checksum shows it, then mounted, listed, read, written to,
// checked, repaired and checked again.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "edit_volume.h"
#include "fuzz.h"
#include "small_volume.h"
#include "use_volume.h"

using namespace mdfs;

namespace {

constexpr std::uint64_t kDiskBytes = 4u << 20;

struct Base {
  Base() : volume(2, kDiskBytes), structures(fuzz::find_structures(volume.disks)) {
    MDFS_CHECK(set_log_level("off").ok());
  }
  safety::SmallVolume volume;
  std::vector<fuzz::Structure> structures;
};

const Base& base() {
  static const Base made;
  return made;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto disks = safety::clone(base().volume.disks);
  fuzz::edit(base().structures, fuzz::input(data, size), disks);
  fuzz::use(safety::clone(disks), true);
  fuzz::check_and_repair(disks);
  fuzz::use(disks, false);
  return 0;
}
