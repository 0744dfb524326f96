// Disks in a RADOS cluster as a row of the table of disk schemes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/disk.h"
#include "device/open_mode.h"
#include "device/unique_fd.h"
#include "device/uring_context.h"

namespace mdfs::device {

// Configuration and user of the cluster for all disks that this process opens by name. Call it before the first.
struct RadosCluster {
  std::string conf;  // file; empty: $CEPH_CONF, else /etc/ceph/ceph.conf
  std::string user;  // without "client."; empty: admin
};
void set_rados_cluster(RadosCluster cluster);

// From now on this process makes no connection to a cluster unless it has the library already: it gives up the rights
// to do either.
void refuse_rados();

// The functions of the row. Opening reads configuration and keyring, and loads the library; adopting connects, and
// takes the lock.
Result<UniqueFd> open_rados(const std::string& disk, OpenMode mode);
Result<std::unique_ptr<Disk>> adopt_rados(const std::string& disk, UniqueFd fd, std::shared_ptr<UringContext> context);
Status create_rados(const std::string& disk, std::uint64_t size_bytes, bool replace);
Status grow_rados(const std::string& disk, std::uint64_t size_bytes);
Status remove_rados(const std::string& disk);
Result<std::vector<std::string>> take_over_rados(const std::string& disk);

}  // namespace mdfs::device
