// Compares names of disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mdfs::device {

// True if both names are, or would be after their creation, of one block device or file. The spelling does not
// matter.
bool is_same_disk(const std::string& one, const std::string& other);

}  // namespace mdfs::device
