// mdfs volume metrics: the state of a volume in the text format of Prometheus.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mdfs/ioctl.h"

namespace mdfs::tools {

// One line a sample, families with HELP and TYPE; of what a mounted volume answers. Pure.
std::string metrics_text(const mdfs_ioc_volume& volume, const mdfs_ioc_disks& counted);

}  // namespace mdfs::tools
