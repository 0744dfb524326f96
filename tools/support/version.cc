// What --version prints.
// SPDX-License-Identifier: Apache-2.0
#include "support/version.h"

#include <fmt/format.h>

#include "commit.h"
#include "mdfs/ondisk.h"
#include "mdfs/version.h"

namespace mdfs::tools {

std::string version_text(std::string_view program) {
  constexpr std::string_view kCommit = MDFS_COMMIT;
  const std::string commit = kCommit.empty() ? "" : fmt::format("commit {}, ", kCommit);
  return fmt::format("{} {} ({}disk format {})", program, MDFS_VERSION_STRING, commit, MDFS_FORMAT_VERSION);
}

}  // namespace mdfs::tools
