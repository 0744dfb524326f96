// Second copies of images and files on a mounted volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "mdfs/ioctl.h"

namespace mdfs::tools {

// Of a file or directory of a mounted volume.
Result<mdfs_ioc_protection> protection_of(const std::string& path);
// "copies 2: 30 of 30 extents have both (1.2 MiB)"
std::string protection_text(const mdfs_ioc_protection& protection);
nlohmann::ordered_json protection_json(const mdfs_ioc_protection& protection);

// A line, and JSON, on the operation that makes and removes copies, while it runs.
std::optional<std::string> protecting_line(const std::string& path);
std::optional<std::string> protecting_json(const std::string& path);

}  // namespace mdfs::tools
