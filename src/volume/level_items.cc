// Items of levels.
// SPDX-License-Identifier: Apache-2.0
#include "volume/level_items.h"

#include <fmt/format.h>

namespace mdfs::volume {
namespace {

Error damaged(Ino image) { return {Errc::kCorrupt, fmt::format("inode {}: the items of its levels", image)}; }

}  // namespace

template <typename Reader>
Result<std::vector<format::LevelItem>> read_level_items(Reader& reader, Ino image) {
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  reader.scan(level_key(image, 0), level_key(image, UINT64_MAX), MDFS_MAX_LEVELS + 1));
  std::vector<format::LevelItem> levels;
  for (const store::Item& item : items) {
    MDFS_TRY_ASSIGN(const format::LevelItem level, format::decode_level(item.value));
    levels.push_back(level);
    if (item.key.offset != levels.size() || levels.size() > MDFS_MAX_LEVELS ||
        level.reduction != levels.front().reduction)
      return damaged(image);
  }
  return levels;
}

template Result<std::vector<format::LevelItem>> read_level_items<store::Store>(store::Store&, Ino);
template Result<std::vector<format::LevelItem>> read_level_items<store::Transaction>(store::Transaction&, Ino);

Result<std::shared_ptr<const LevelSet>> read_levels(store::Store& store, Ino image,
                                                    const geometry::Geometry& geometry) {
  if ((store.features_ro_compat() & MDFS_RO_COMPAT_LEVELS) == 0) return std::shared_ptr<const LevelSet>();
  MDFS_TRY_ASSIGN(const std::vector<format::LevelItem> items, read_level_items(store, image));
  if (items.empty()) return std::shared_ptr<const LevelSet>();
  LevelSet set{items.front().reduction, {}};
  geometry::Geometry below = geometry;
  for (const format::LevelItem& item : items) {
    if (item.halved != geometry::halved_axes(below)) return damaged(image);
    for (unsigned axis = 0; axis < below.rank; ++axis)
      if (item.halved[axis]) below.spacing[axis] *= 2;
    set.objects.push_back(item.object);
  }
  return std::make_shared<const LevelSet>(std::move(set));
}

std::uint64_t stored_in_levels(store::Store& store, Ino image) {
  if ((store.features_ro_compat() & MDFS_RO_COMPAT_LEVELS) == 0) return 0;
  const auto items = read_level_items(store, image);
  if (!items.ok()) return 0;
  std::uint64_t bytes = 0;
  for (const format::LevelItem& item : *items) {
    const auto level = find_inode(store, item.object);
    if (level.ok() && *level) bytes += (*level)->stored_bytes;
  }
  return bytes;
}

Status drop_levels(store::Transaction& transaction, Ino image, std::size_t kept, std::vector<Ino>& gone) {
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  transaction.scan(level_key(image, kept + 1), level_key(image, UINT64_MAX), SIZE_MAX));
  for (const store::Item& item : items) {
    transaction.erase(item.key);
    const Result<format::LevelItem> level = format::decode_level(item.value);
    if (!level.ok()) continue;  // its object, if any, is found by mdfsck
    MDFS_TRY_ASSIGN(std::optional<format::Inode> inode, find_inode(transaction, level->object));
    if (!inode) continue;
    inode->links = 0;
    put_inode(transaction, level->object, *inode);
    transaction.put(orphan_key(level->object), {});
    gone.push_back(level->object);
  }
  return {};
}

}  // namespace mdfs::volume
