// The items of an image that lead to its levels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "format/level_item.h"
#include "volume/inode_table.h"
#include "volume/records.h"

namespace mdfs::volume {

inline format::Key level_key(Ino image, std::uint64_t level) { return {image, MDFS_KIND_LEVEL, level}; }

// The items of levels 1, 2, .. . kCorrupt if they are not consecutive from 1 or have different reductions. Reader is
// store::Store or store::Transaction.
template <typename Reader>
Result<std::vector<format::LevelItem>> read_level_items(Reader& reader, Ino image);
// Null: the image has none. kCorrupt also if the items do not fit the geometry.
Result<std::shared_ptr<const LevelSet>> read_levels(store::Store& store, Ino image, const geometry::Geometry& geometry);
// The bytes of all levels of an image. What cannot be read does not count: levels can be made again, and a damaged one
// must not take the image's attributes away.
std::uint64_t stored_in_levels(store::Store& store, Ino image);
// Takes the levels behind the first `kept` away; their objects become orphans, and are added to `gone`.
Status drop_levels(store::Transaction& transaction, Ino image, std::size_t kept, std::vector<Ino>& gone);

}  // namespace mdfs::volume
