// The disks of data that a commit publishes, and what it loses without some of them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "mdfs/ondisk.h"

namespace mdfs::store {

// Data are needed, or they are elsewhere: on other disks, all of which are needed then. A value; no thread contract.
class PublishedData {
 public:
  void add(unsigned disk) { needed_ |= std::uint64_t{1} << disk; }
  // `other_disks`: a bit each; 0: they can be made again.
  void add(unsigned disk, std::uint64_t other_disks) {
    copied_ |= std::uint64_t{1} << disk;
    other_disks_[disk] |= other_disks;
  }
  void add(const PublishedData& more) {
    needed_ |= more.needed_;
    copied_ |= more.copied_;
    for (unsigned disk = 0; disk < MDFS_MAX_DISKS; ++disk) other_disks_[disk] |= more.other_disks_[disk];
  }

  // Of the disks that fail, those with data that the others do not have.
  std::uint64_t needed_of(std::uint64_t failed, std::uint64_t others) const {
    std::uint64_t needed = needed_ & failed;
    for (unsigned disk = 0; disk < MDFS_MAX_DISKS; ++disk)
      if ((copied_ & failed) >> disk & 1 && (other_disks_[disk] & ~others) != 0) needed |= std::uint64_t{1} << disk;
    return needed;
  }

 private:
  std::uint64_t needed_ = 0, copied_ = 0;
  std::array<std::uint64_t, MDFS_MAX_DISKS> other_disks_{};
};

}  // namespace mdfs::store
