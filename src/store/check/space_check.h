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
  std::vector<std::vector<bool>> good;  // [disk][bitmap page], as far as they have been compared

  // Memory that this takes for each bitmap page.
  static constexpr std::uint64_t kPageMemory = sizeof(std::optional<format::SpaceEntry>) + 1;
};

// Reports damaged pages above the bitmaps.
SpacePages read_space(const Recovered& volume, const std::vector<format::DiskLayout>& layouts, Findings& findings);

// Compares the bitmap pages with what is in use, section by section.
class SpaceComparison {
 public:
  // Blocks that seem leaked may belong to what was lost: they have findings of their own.
  SpaceComparison(const Recovered& volume, SpacePages& pages, Findings& findings, Findings& leaks)
      : volume_(volume), pages_(pages), findings_(findings), leaks_(leaks) {}

  // The section of `in_use`; the one behind it comes next.
  void compare(const BlockMap& in_use);
  void finish() { end_run(); }

 private:
  void compare_page(const BlockMap& in_use, std::uint16_t disk, std::uint64_t page, ConstBytes bytes);
  void end_run();

  const Recovered& volume_;
  SpacePages& pages_;
  Findings& findings_;
  Findings& leaks_;
  // Blocks in a row that differ in the same way.
  std::optional<FindingId> kind_;
  std::uint16_t disk_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

// Marks in `taken`, which is whole, what the good bitmap pages say to be in use.
Status merge_space(const Recovered& volume, const SpacePages& pages, BlockMap& taken);

// The pages that must be written, each to the place that is not valid, so that the bitmaps say what is in use; and the
// entries of the tops for the commit slot, of disks that are not healthy as they were.
struct NewSpace {
  std::vector<SectorWrite> writes;
  std::vector<format::SpaceEntry> tops;
};
NewSpace make_space(const Recovered& volume, const SpacePages& pages, const BlockMap& in_use);

}  // namespace mdfs::store
