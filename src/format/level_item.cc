// Items of resolution levels.
// SPDX-License-Identifier: Apache-2.0
#include "format/level_item.h"

#include "format/fields.h"
#include "format/limits.h"

namespace mdfs::format {

ByteVector encode(const LevelItem& level) {
  ByteVector out(sizeof(mdfs_level));
  MDFS_PUT(out, 0, mdfs_level, object, level.object);
  MDFS_PUT(out, 0, mdfs_level, reduction, static_cast<std::uint8_t>(level.reduction));
  unsigned halved = 0;
  for (unsigned axis = 0; axis < geometry::kMaxRank; ++axis) halved |= level.halved[axis] ? 1u << axis : 0u;
  MDFS_PUT(out, 0, mdfs_level, halved, static_cast<std::uint8_t>(halved));
  put_bytes(out, offsetof(mdfs_level, reserved), level.reserved);
  return out;
}

Result<LevelItem> decode_level(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() == sizeof(mdfs_level), "level.length");
  LevelItem level;
  level.object = MDFS_GET(value, 0, mdfs_level, object);
  MDFS_FORMAT_REQUIRE(level.object >= MDFS_OBJECT_FIRST && level.object < kMaxObject, "level.object");
  const unsigned reduction = MDFS_GET(value, 0, mdfs_level, reduction);
  if (reduction < MDFS_REDUCE_MEAN || reduction > MDFS_REDUCE_MAX) return Error{Errc::kNewerFormat, "level.reduction"};
  level.reduction = static_cast<geometry::Reduction>(reduction);
  const unsigned halved = MDFS_GET(value, 0, mdfs_level, halved);
  MDFS_FORMAT_REQUIRE(halved >> geometry::kMaxRank == 0, "level.halved");
  for (unsigned axis = 0; axis < geometry::kMaxRank; ++axis) level.halved[axis] = (halved >> axis & 1) != 0;
  get_bytes(value, offsetof(mdfs_level, reserved), level.reserved);
  return level;
}

}  // namespace mdfs::format
