// Disks of the volume that come and go.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "volume/volume_impl.h"

namespace mdfs::volume {

void VolumeImpl::members_changed() {
  whole_ = store_->is_whole();
  placements_.members_changed();
  ++member_changes_;
  file_placement_ = 0;
  disk_statistics_.members_changed();
}

void VolumeImpl::placements_changed() {
  members_changed();
  engine_->forget_all_homes();
  // So that they are opened anew with the placement as it is now; what is open keeps its own until it is closed.
  open_objects_.close_idle(0);
}

Result<std::vector<unsigned>> VolumeImpl::add_disks(std::vector<store::JoiningDisk> disks) {
  MDFS_TRY(check_writable());
  auto indexes = store_->add_disks(std::move(disks));
  members_changed();
  return indexes;
}

Status VolumeImpl::set_disk_weight(unsigned disk, std::uint16_t weight) {
  MDFS_TRY(check_writable());
  Status status = store_->set_weight(disk, weight);
  members_changed();
  return status;
}

Status VolumeImpl::keep_disk(unsigned disk) {
  MDFS_TRY(check_writable());
  const auto drain = operations_->status(OperationKind::kDrain);
  if (drain.ok() && drain->running() && drain->parameters[0] == disk)
    return Error{Errc::kBusy, "the disk is being drained: cancel that first"};
  Status status = store_->set_draining(disk, false, nullptr);
  members_changed();
  return status;
}

unsigned VolumeImpl::member_count() const {
  unsigned members = 0;
  for (unsigned i = 0; i < store_->disk_count(); ++i)
    if (store_->disk_info(i).state != store::DiskState::kNone) ++members;
  return members;
}

Status VolumeImpl::set_spare_disks(unsigned disks) {
  MDFS_TRY(check_writable());
  const unsigned members = member_count();
  const unsigned most = std::max(members, 2u) - 2;
  if (disks > most)
    return {Errc::kInvalidArgument,
            fmt::format("spare {}: must be 0 to {}, the {} disk{} of the volume less the two that second copies need",
                        disks, most, members, members == 1 ? "" : "s")};
  MDFS_TRY(change(store::Purpose::kFreeing, [&](Change& change) -> Status {
    MDFS_TRY_ASSIGN(format::Inode root, read_inode(change.transaction, kRootIno));
    root.spare_disks = static_cast<std::uint8_t>(disks);
    put_inode(change.transaction, kRootIno, root);
    return {};
  }));
  store_->set_spare_disks(disks);
  return {};
}

}  // namespace mdfs::volume
