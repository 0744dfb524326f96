// The table of the module's functions.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/rados_module.h"

#include "device/rados/rados_cluster.h"
#include "device/rados/rados_disk.h"

namespace mdfs::device {
namespace {

Result<std::unique_ptr<Disk>> open(const RadosDescription& description) {
  MDFS_TRY_ASSIGN(auto disk, RadosDisk::open(description));
  return std::unique_ptr<Disk>(std::move(disk));
}

}  // namespace
}  // namespace mdfs::device

const mdfs::device::RadosModule mdfs_rados_module = {MDFS_VERSION_STRING,
                                                     mdfs::device::find_rados_key,
                                                     mdfs::device::open,
                                                     mdfs::device::create_rados_disk,
                                                     mdfs::device::grow_rados_disk,
                                                     mdfs::device::remove_rados_disk,
                                                     mdfs::device::take_over_rados_disk};
