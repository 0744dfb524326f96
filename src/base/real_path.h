// Paths from the root.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace mdfs {

// "/" stays.
std::string without_last_slashes(std::string path);

// The path from /, without links. Nothing: errno tells why. Any thread.
std::optional<std::string> real_path(const std::string& path);

}  // namespace mdfs
