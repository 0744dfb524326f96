// The interface of a volume for long work: its public interface, and a few calls more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/environment.h"
#include "engine/engine.h"
#include "volume/placements.h"
#include "volume/volume.h"

namespace mdfs::volume {

// For src/maintenance only. Any thread may call any method.
class MaintainedVolume : public Volume {
 public:
  virtual Environment& environment() = 0;
  virtual Placements& placements() = 0;
  // The data of a file or image, which stay open while the pointer is held. kNotFound; kIsDirectory and
  // kInvalidArgument: an inode without data.
  virtual Result<std::shared_ptr<engine::OpenObject>> open_object(Ino ino) = 0;
  // Builds extents of stored levels until `pause`, which is asked after each one, or `stop`, which also ends one that
  // is being built. Works on images that were written or looked at since they were whole. True: some extents are left.
  virtual bool build_levels(const engine::Stop& pause, const engine::Stop& stop) = 0;
  // If the object is a stored level: forgets extents of it that cannot be read, which are then built again. By the
  // numbers of StoredPiece::where. False: it is none.
  virtual Result<bool> forget_level_extents(Ino object, const std::vector<std::uint64_t>& numbers) = 0;
  // Verifies both copies of an extent of an image, or of the blocks of a cell of another file, and writes bad ones
  // anew. `number`: StoredPiece::where of the extent, or the number of the cell. False: both are bad, or there is one
  // only.
  virtual Result<bool> repair_copies(Ino object, std::uint64_t number) = 0;
  // Counts calls of set_copies().
  virtual std::uint64_t protection_changes() const = 0;
  // The number of calls that are reading data. Long work waits briefly for them.
  virtual const std::atomic<unsigned>& readers() const = 0;
  // Called after disks were added, removed or resized; and after placements changed, also by such changes.
  virtual void members_changed() = 0;
  virtual void placements_changed() = 0;
};

}  // namespace mdfs::volume
