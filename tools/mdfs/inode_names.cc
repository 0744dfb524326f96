// Names of inodes, by fts(3).
// SPDX-License-Identifier: Apache-2.0
#include "inode_names.h"

#include <fts.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <memory>

namespace mdfs::tools {
namespace {

struct Close {
  void operator()(FTS* walk) const { fts_close(walk); }
};

}  // namespace

Status find_names(const std::string& top, InodeNames& names, std::uint64_t most) {
  if (names.empty()) return {};
  std::string path = top;
  const std::array<char*, 2> roots = {path.data(), nullptr};
  const std::unique_ptr<FTS, Close> walk(fts_open(roots.data(), FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, nullptr));
  if (walk == nullptr) return from_errno(errno, top);
  for (std::uint64_t looked_at = 0; looked_at < most; ++looked_at) {
    errno = 0;
    const FTSENT* const entry = fts_read(walk.get());
    if (entry == nullptr) return errno == 0 ? Status() : Status(from_errno(errno, top + ": looking for names"));
    const bool failed = entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS;
    if (failed && entry->fts_level == FTS_ROOTLEVEL) return from_errno(entry->fts_errno, top);
    if (failed || entry->fts_info == FTS_DP || entry->fts_statp == nullptr) continue;
    if (const auto wanted = names.find(entry->fts_statp->st_ino); wanted != names.end())
      wanted->second.emplace_back(entry->fts_path);
  }
  return {};
}

}  // namespace mdfs::tools
