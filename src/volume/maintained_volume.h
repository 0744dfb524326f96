// A volume as long work sees it: its public interface, and the little that long work needs beyond that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "base/environment.h"
#include "engine/engine.h"
#include "volume/placements.h"
#include "volume/volume.h"

namespace mdfs::volume {

// For src/maintenance alone. Any thread may call any method.
class MaintainedVolume : public Volume {
 public:
  virtual Environment& environment() = 0;
  virtual Placements& placements() = 0;
  // The data of a file or image, which stay open as long as this is held. kNotFound, kIsDirectory, kInvalidArgument: no
  // data.
  virtual Result<std::shared_ptr<engine::OpenObject>> open_object(Ino ino) = 0;
  // Calls that read data and have not returned: long work waits for them, for a little while.
  virtual const std::atomic<unsigned>& readers() const = 0;
  // Disks have come, gone or changed their size; placements have changed, which includes that.
  virtual void members_changed() = 0;
  virtual void placements_changed() = 0;
};

}  // namespace mdfs::volume
