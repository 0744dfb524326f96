// Disks of the volume that come and go.
// SPDX-License-Identifier: Apache-2.0
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

}  // namespace mdfs::volume
