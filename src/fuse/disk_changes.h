// Changes of a volume's disks, requested over the control socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/uring_context.h"
#include "fuse/control.h"
#include "volume/volume.h"

namespace mdfs::fuse {

// The lines of a request:
//   add-disks            then, for each descriptor, WEIGHT NAME; the answer is the numbers of the disks, with spaces
//   weight DISK WEIGHT
//   keep DISK            stop the removal of a disk that drains
//   spare NUMBER         keep room for the rebuild of so many lost disks
// `context` null: the disks of this mount are modelled, and none can be added.
Result<std::string> change_disks(volume::Volume& volume, const std::shared_ptr<device::UringContext>& context,
                                 ControlRequest request);

}  // namespace mdfs::fuse
