// Names of inodes, by fts(3).
// SPDX-License-Identifier: Apache-2.0
#include "inode_names.h"

#include <fmt/format.h>
#include <fts.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "levels.h"

namespace mdfs::tools {
namespace {

struct Close {
  void operator()(FTS* walk) const { fts_close(walk); }
};

// Calls visit(entry) for each file and directory below `top`, at most so many.
template <typename Visit>
Status walk_below(const std::string& top, std::uint64_t most, const Visit& visit) {
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
    visit(*entry);
  }
  return {};
}

}  // namespace

Status find_names(const std::string& top, InodeNames& names, std::uint64_t most) {
  if (names.empty()) return {};
  MDFS_TRY(walk_below(top, most, [&](const FTSENT& entry) {
    if (const auto wanted = names.find(entry.fts_statp->st_ino); wanted != names.end())
      wanted->second.paths.emplace_back(entry.fts_path);
  }));
  if (std::all_of(names.begin(), names.end(), [](const auto& name) { return !name.second.paths.empty(); })) return {};
  return walk_below(top, most, [&](const FTSENT& entry) {
    if (entry.fts_info != FTS_F) return;
    const auto levels = image_levels(entry.fts_path);
    for (std::uint32_t i = 0; levels.ok() && i < levels->count; ++i)
      if (const auto wanted = names.find(levels->levels[i].inode); wanted != names.end()) {
        wanted->second.paths.push_back(fmt::format("{} (level {})", entry.fts_path, i + 1));
        wanted->second.level = i + 1;
      }
  });
}

}  // namespace mdfs::tools
