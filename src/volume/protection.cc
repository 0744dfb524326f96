// Second copies of images and files: who has them, and how they are.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "engine/open_object.h"
#include "format/extents.h"
#include "geometry/parity_box.h"
#include "volume/operations.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {

unsigned VolumeImpl::usual_group_members() const { return geometry::usual_parity_width(store_->data_disks()); }

// The writers of an open image follow before the inode does: a copy too many does no harm.
Status VolumeImpl::set_protection(Ino ino, const WantedProtection& wanted) {
  MDFS_TRY(check_writable());
  if (!geometry::is_parity_width(wanted.group_members))
    return {Errc::kInvalidArgument, fmt::format("groups of {} extents, not 1, 2, 4 or 8", wanted.group_members)};
  const unsigned disks = store_->data_disks();
  if (wanted.copies && disks < 2)
    return {Errc::kNotSupported, "second copies lie on other disks, and this volume has one disk for data"};
  if (wanted.copies && disks <= wanted.group_members)
    return {Errc::kNotSupported, fmt::format("a parity of {} extents needs {} disks for data, and this volume has {}",
                                             wanted.group_members, wanted.group_members + 1, disks)};
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const format::Inode item, read_inode(*store_, ino));
  if (!item.is_regular() && !item.is_directory())
    return {Errc::kInvalidArgument, "only images, other files and directories are protected"};
  ObjectUse use;
  if (item.is_regular()) {
    MDFS_TRY_ASSIGN(use, open_objects_.use(*pin));
  }
  if (wanted.copies) {
    store_->add_features_ro_compat(MDFS_RO_COMPAT_PROTECTION);
    if (use) engine_->set_protection(*use, true, wanted.group_members);
  }
  const Status changed = change(store::Purpose::kNormal, [&](Change& change) -> Status {
    MDFS_TRY_ASSIGN(format::Inode inode, read_inode(change.transaction, ino));
    inode.set_copies(wanted.copies, wanted.group_members);
    inode.ctime_ns = change.now_ns;
    put_inode(change.transaction, ino, inode);
    return {};
  });
  if (use && (changed.ok() || wanted.copies))
    engine_->set_protection(*use, changed.ok() ? wanted.copies : item.has_copies(),
                            changed.ok() ? wanted.group_members : item.group_width());
  MDFS_TRY(changed);
  ++protection_changes_;
  if (!use) return {};
  MDFS_TRY(engine_->write_back(*use));  // so that what was written before is stored, and counted
  return start_protecting();
}

// A run that is under way makes another pass, but one that only counts gives way.
Status VolumeImpl::start_protecting() {
  while (true) {
    const Status started = operations_->start({.kind = OperationKind::kProtect});
    if (started.ok() || started.error().code != Errc::kBusy) return started;
    const auto now = operations_->status(OperationKind::kProtect);
    if (now.ok() && now->running() && !now->dry_run()) return {};
    const Status cancelled = operations_->cancel(OperationKind::kProtect);
    if (!cancelled.ok() && cancelled.error().code != Errc::kNoData) return cancelled;  // kNoData: it has just ended
  }
}

Result<Protection> VolumeImpl::protection(Ino ino, const engine::Stop& stop) {
  const Pin pin = table_.pin(ino);
  MDFS_TRY_ASSIGN(const format::Inode item, read_inode(*store_, ino));
  Protection protection{item.has_copies(), item.group_width(), item.is_image(), item.is_directory(), {}};
  if (!item.is_regular()) return protection;
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  for (std::uint64_t page = 0; page != UINT64_MAX;) {
    MDFS_TRY_ASSIGN(const engine::ProtectionState some, engine_->protection(*use, page, stop));
    protection.state += some;
  }
  if (!item.is_image()) return protection;
  MDFS_TRY_ASSIGN(protection.state.in_strips, engine_->strips_to_consolidate(*use, item.has_copies(), stop));
  return protection;
}

Result<bool> VolumeImpl::repair_copies(Ino object, std::uint64_t number) {
  const Pin pin = table_.pin(object);
  MDFS_TRY_ASSIGN(const ObjectUse use, open_objects_.use(*pin));
  engine::ProtectRequest request = engine::ProtectRequest::wanted_by(*use);
  request.extents = {(*use).is_image() ? (*use).extent_of({number / format::kMaxPlaces,
                                                           static_cast<unsigned>(number % format::kMaxPlaces)})
                                       : (*use).extent_coord(number)};
  request.verifies = true;
  MDFS_TRY_ASSIGN(const engine::ProtectOutcome outcome, engine_->protect(*use, request));
  if (outcome.repaired > 0 || !outcome.damaged.empty() || !(*use).may_have_strips) return outcome.repaired > 0;
  // A part in a strip: the extents are written whole, but not while they are dirty.
  MDFS_TRY(engine_->write_back(*use));
  MDFS_TRY_ASSIGN(const std::uint64_t consolidated, engine_->consolidate(*use, UINT64_MAX, true));
  return consolidated > 0;
}

}  // namespace mdfs::volume
