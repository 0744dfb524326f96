// The map of an empty disk with all its pages loaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "alloc/space_map.h"
#include "base/aligned_buffer.h"
#include "format/space.h"

namespace mdfs::alloc {

inline std::unique_ptr<SpaceMap> make_map(std::uint64_t blocks) {
  const format::DiskLayout layout(4096, blocks, format::default_metadata_blocks(4096, blocks));
  std::vector<std::uint64_t> free;
  std::vector<AlignedBuffer> pages;
  for (std::uint64_t page = 0; page < layout.space_pages(0); ++page) {
    pages.emplace_back(MDFS_SECTOR);
    format::make_empty_bitmap(layout, page, pages.back().bytes());
    free.push_back(format::bitmap_free(pages.back().bytes()));
  }
  auto map = std::make_unique<SpaceMap>(layout, format::default_zone_blocks(4096, blocks), free);
  for (std::uint64_t page = 0; page < pages.size(); ++page) map->install(page, pages[page].bytes());
  return map;
}

}  // namespace mdfs::alloc
