// Which names are of one disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mdfs::device {

// Both names are of one block device or file, however they are spelled; names of files that are not there yet: would
// be.
bool is_same_disk(const std::string& one, const std::string& other);

}  // namespace mdfs::device
