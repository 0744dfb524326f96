// Lists virtual directories whose entries are numbered.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fuse/node_table.h"
#include "volume/volume.h"

namespace mdfs::fuse {

inline constexpr std::uint64_t kDots = 2;  // "." and ".." come before all other entries

struct ListedEntry {
  std::string name;
  std::uint8_t type = DT_REG;
};

// As read_view_directory(): up to `limit` entries from the one with number `offset` on, "." being 0. `at(i)`: one of
// the `count` entries behind "..".
template <typename At>
std::vector<volume::DirectoryEntry> list_directory(const Node& node, std::uint64_t count, std::uint64_t offset,
                                                   std::size_t limit, const At& at) {
  std::vector<volume::DirectoryEntry> entries;
  for (; entries.size() < limit && offset < kDots + count; ++offset) {
    ListedEntry entry{offset == 0 ? "." : "..", DT_DIR};
    if (offset >= kDots) entry = at(offset - kDots);
    entries.push_back({.name = std::move(entry.name), .ino = node.id, .type = entry.type, .cookie = offset + 1});
  }
  return entries;
}

}  // namespace mdfs::fuse
