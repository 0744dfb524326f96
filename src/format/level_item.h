// The item that leads from an image to the object with the samples of a resolution level.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "format/kept.h"
#include "geometry/level.h"
#include "geometry/reduce.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// mdfs_level.
struct LevelItem {
  std::uint64_t object = 0;
  geometry::Reduction reduction = geometry::Reduction::kMean;
  geometry::HalvedAxes halved{};  // of the level below
  Kept<sizeof(mdfs_level::reserved)> reserved{};

  bool operator==(const LevelItem&) const = default;
};

ByteVector encode(const LevelItem& level);
// Checks: level.length, level.object (not that of an inode), level.reduction (unknown: kNewerFormat), level.halved
// (axes beyond kMaxRank).
Result<LevelItem> decode_level(ConstBytes value);

}  // namespace mdfs::format
