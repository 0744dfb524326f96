// Room for the rebuild of lost disks, as text and as JSON. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "mdfs/ioctl.h"

namespace mdfs::tools {

// "spare: 1.2 GiB stay free for the rebuild of 1 lost disk". Nothing where no room is kept.
std::optional<std::string> spare_line(const mdfs_ioc_volume& volume);
// What is lacking, and what can be done.
std::optional<std::string> spare_error(const mdfs_ioc_volume& volume);
nlohmann::ordered_json spare_json(const mdfs_ioc_volume& volume);

}  // namespace mdfs::tools
