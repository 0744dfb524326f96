// The long work of a volume: all operations, for the program that opens the volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "volume/maintained_volume.h"
#include "volume/operations.h"

namespace mdfs::maintenance {

// For Volume::open(). The volume must outlive the result.
std::unique_ptr<volume::Operations> make_operations(volume::MaintainedVolume& volume);

}  // namespace mdfs::maintenance
