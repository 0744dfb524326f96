// The output of --version.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace mdfs::tools {

// "mdfsck 0.1.0 (commit 0123456789ab, disk format 3)". Without a commit where the sources are not a checkout of git.
std::string version_text(std::string_view program);

}  // namespace mdfs::tools
