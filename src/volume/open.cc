// Volume::open.
// SPDX-License-Identifier: Apache-2.0
#include "volume/volume_impl.h"

namespace mdfs::volume {

Result<std::unique_ptr<Volume>> Volume::open(std::unique_ptr<store::Store> store, const VolumeOptions& options,
                                             Environment& environment, const MakeOperations& make_operations) {
  MDFS_TRY_ASSIGN(std::unique_ptr<engine::Engine> engine, engine::Engine::create(*store, options.engine, environment));
  auto volume =
      std::make_unique<VolumeImpl>(std::move(store), std::move(engine), options, environment, make_operations);
  MDFS_TRY_ASSIGN(const format::Inode root, read_directory_inode(volume->store(), kRootIno));
  volume->store().set_spare_disks(root.spare_disks);
  MDFS_TRY(volume->start());
  return std::unique_ptr<Volume>(std::move(volume));
}

}  // namespace mdfs::volume
