// Reading directories: the cookie of an entry is the place of its item, so it never moves.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>

#include <algorithm>

#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

// Below all cookies of names.
constexpr std::uint64_t kDotCookie = 1;
constexpr std::uint64_t kDotDotCookie = 2;
static_assert(kDotDotCookie < format::kMinCookie);

}  // namespace

Result<std::vector<DirectoryEntry>> VolumeImpl::read_directory(Ino directory, std::uint64_t cookie, std::size_t limit) {
  const Pin pin = table_.pin(directory);
  MDFS_TRY_ASSIGN(const format::Inode inode, read_inode(*store_, directory));
  if (!inode.is_directory()) return Error{Errc::kNotDirectory, "inode " + std::to_string(directory)};
  if (cookie == 0 && keeps_atime() && options_.atime != AtimeMode::kNoDirAtime) {
    open_objects_.load_times(*pin, inode);
    open_objects_.was_read(*pin, inode);
  }
  std::vector<DirectoryEntry> entries;
  if (cookie < kDotCookie && entries.size() < limit) entries.push_back({".", directory, DT_DIR, kDotCookie});
  if (cookie < kDotDotCookie && entries.size() < limit) entries.push_back({"..", inode.parent, DT_DIR, kDotDotCookie});
  if (entries.size() == limit) return entries;
  const std::uint64_t first = std::max(cookie, kDotDotCookie);
  if (first == UINT64_MAX) return entries;
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  store_->scan({directory, MDFS_KIND_DIRENT, first + 1}, {directory, MDFS_KIND_DIRENT, UINT64_MAX},
                               limit - entries.size()));
  entries.reserve(entries.size() + items.size());
  for (const store::Item& item : items) {
    MDFS_TRY_ASSIGN(format::Dirent entry, format::decode_dirent(item.value));
    entries.push_back({std::move(entry.name), entry.inode, entry.type, item.key.offset});
  }
  return entries;
}

}  // namespace mdfs::volume
