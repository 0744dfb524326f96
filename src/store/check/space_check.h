// Compares the space pages of all disks with the blocks that the tree uses.
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

// The contents of the space pages of the healthy disks.
struct SpacePages {
  // [disk][level][page]: absent where a page above is damaged. Disks that are not healthy have none.
  std::vector<std::vector<std::vector<std::optional<format::SpaceEntry>>>> entries;
  std::vector<std::vector<bool>> good;  // [disk][bitmap page], as far as they have been compared

  // Memory for each bitmap page.
  static constexpr std::uint64_t kPageMemory = sizeof(std::optional<format::SpaceEntry>) + 1;
};

// Reports damaged pages above the bitmaps.
SpacePages read_space(const Recovered& volume, const std::vector<format::DiskLayout>& layouts, Findings& findings);

// Compares the bitmap pages with what is in use, section by section.
class SpaceComparison {
 public:
  // Leaked blocks may belong to lost data; `leaks` keeps their findings apart.
  SpaceComparison(const Recovered& volume, SpacePages& pages, Findings& findings, Findings& leaks)
      : volume_(volume), pages_(pages), findings_(findings), leaks_(leaks) {}

  // Compares the section of `in_use`. The next call takes the next section.
  void compare(const BlockMap& in_use);
  void finish() { end_run(); }

 private:
  void compare_page(const BlockMap& in_use, std::uint16_t disk, std::uint64_t page, ConstBytes bytes);
  void end_run();

  const Recovered& volume_;
  SpacePages& pages_;
  Findings& findings_;
  Findings& leaks_;
  // Contiguous blocks that differ in the same way.
  std::optional<FindingId> kind_;
  std::uint16_t disk_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

// Marks in `taken`, which must be whole, the blocks that good bitmap pages have in use.
Status merge_space(const Recovered& volume, const SpacePages& pages, BlockMap& taken);

// The pages to write so that the bitmaps equal the blocks in use, each to its invalid place; and the top entries for
// the commit slot. Disks that are not healthy keep their entries.
struct NewSpace {
  std::vector<SectorWrite> writes;
  std::vector<format::SpaceEntry> tops;
};
NewSpace make_space(const Recovered& volume, const SpacePages& pages, const BlockMap& in_use);

}  // namespace mdfs::store
