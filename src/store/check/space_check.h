// The space pages of all disks against the blocks that the tree uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "format/commit.h"
#include "store/check/block_map.h"
#include "store/check/findings.h"
#include "store/recovery.h"
#include "store/space_pages.h"

namespace mdfs::store {

// What the space pages of the healthy disks say.
struct SpacePages {
  // [disk][level][page]: absent where a page above is damaged. Disks that are not healthy have none.
  std::vector<std::vector<std::vector<std::optional<format::SpaceEntry>>>> entries;
  BlockMap marked;                      // bits of the bitmap pages that are good
  std::vector<std::vector<bool>> good;  // [disk][bitmap page]
};

// Reports damaged pages.
SpacePages read_space(const Recovered& volume, const std::vector<format::DiskLayout>& layouts, Findings& findings);
// Compares the good bitmap pages with what is in use. Unless `all_known`, blocks that seem leaked may belong to what
// was lost and are not reported.
void compare_space(const Recovered& volume, const SpacePages& pages, const BlockMap& in_use, bool all_known,
                   Findings& findings);

// The pages that must be written, each to the place that is not valid, so that the bitmaps say what is in use; and the
// entries of the tops for the commit slot, of disks that are not healthy as they were.
struct NewSpace {
  std::vector<SectorWrite> writes;
  std::vector<format::SpaceEntry> tops;
};
NewSpace make_space(const Recovered& volume, const SpacePages& pages, const BlockMap& in_use);

}  // namespace mdfs::store
