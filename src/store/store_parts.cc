// Default methods of the parts of a store without disks of its own, as in tests.
// SPDX-License-Identifier: Apache-2.0
#include "device/disk_counters.h"
#include "store/store.h"

namespace mdfs::store {
namespace {

Error fixed_members() { return {Errc::kNotSupported, "the members of this store are fixed"}; }

}  // namespace

std::shared_ptr<BlockHold> BlockSpace::hold(std::vector<Run>) { return std::make_shared<BlockHold>(); }

void Members::note_checksum_error(unsigned disk) {
  if (device::DiskCounters* counted = disk < disk_count() ? counters(disk) : nullptr) ++counted->checksum_errors;
}

Result<std::vector<unsigned>> Members::add_disks(std::vector<JoiningDisk> /*disks*/) { return fixed_members(); }
bool Members::is_whole() const { return gone_disks() == 0; }

std::uint64_t Members::gone_disks() const {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < disk_count(); ++i)
    if (const DiskInfo disk = disk_info(i); disk.state != DiskState::kNone && !disk.is_there())
      bits |= std::uint64_t{1} << i;
  return bits;
}

std::uint64_t Members::lost_disks() const {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < disk_count(); ++i)
    if (disk_info(i).is_lost()) bits |= std::uint64_t{1} << i;
  return bits;
}

unsigned Members::data_disks() const {
  unsigned count = 0;
  for (unsigned disk = 0; disk < disk_count(); ++disk) {
    const DiskInfo info = disk_info(disk);
    if (info.state != DiskState::kNone && info.weight > 0) ++count;
  }
  return count;
}

Status Members::set_weight(unsigned /*index*/, std::uint16_t /*weight*/) { return fixed_members(); }
Status Members::set_draining(unsigned /*index*/, bool /*draining*/, std::uint64_t* /*missing_blocks*/) {
  return fixed_members();
}
std::uint64_t Members::used_blocks(unsigned /*index*/) const { return 0; }
Result<bool> Members::move_nodes_off(unsigned /*index*/, NodePosition& /*at*/) { return fixed_members(); }
Result<bool> Members::spread_nodes() { return fixed_members(); }
bool Members::wants_spread() const { return false; }
Status Members::remove_disk(unsigned /*index*/) { return fixed_members(); }
Result<SizeRange> Members::size_range(unsigned /*index*/) { return fixed_members(); }
Status Members::set_disk_end(unsigned /*index*/, std::uint64_t /*blocks*/, std::uint64_t* /*missing_blocks*/) {
  return fixed_members();
}
std::uint64_t Members::used_behind_end(unsigned /*index*/) const { return 0; }
Status Members::resize_disk(unsigned /*index*/, std::uint64_t /*blocks*/) { return fixed_members(); }

Status Discards::commit_discardable() { return {Errc::kNotSupported, "a store without disks"}; }
Status Discards::trim_some(std::vector<DiskTrim>& /*disks*/, std::uint64_t /*smallest_blocks*/) {
  return commit_discardable();
}

}  // namespace mdfs::store
