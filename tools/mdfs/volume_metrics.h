// mdfs volume metrics: the state of a volume in the text format of Prometheus.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mdfs/ioctl.h"

namespace mdfs::tools {

// One line for each sample, families with HELP and TYPE, from the answers of a mounted volume. Pure.
std::string metrics_text(const mdfs_ioc_volume& volume, const mdfs_ioc_disks& counted);

}  // namespace mdfs::tools
