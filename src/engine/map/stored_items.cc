// Looking for stored items.
// SPDX-License-Identifier: Apache-2.0
#include "engine/map/stored_items.h"

#include <algorithm>
#include <iterator>

#include "mdfs/ondisk.h"

namespace mdfs::engine {
namespace {

constexpr std::size_t kItemsAtOnce = 256;  // so that few values are held at once

}  // namespace

Result<std::vector<std::uint64_t>> stored_items(Core& core, const OpenObject& object, std::uint64_t first,
                                                std::uint64_t last, std::size_t limit) {
  const std::uint64_t kind = object.is_image() ? MDFS_KIND_EXTENTS : MDFS_KIND_FILE_CELL;
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t next = first; offsets.size() < limit;) {
    const std::size_t at_once = std::min(limit - offsets.size(), kItemsAtOnce);
    MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                    core.store.scan({object.number, kind, next}, {object.number, kind, last}, at_once));
    for (const store::Item& item : items) offsets.push_back(item.key.offset);
    if (items.size() < at_once || offsets.back() == last) break;
    next = offsets.back() + 1;
  }
  if (!object.may_have_strips) return offsets;
  MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> with_strips, pages_with_strips(core, object, first, last, limit));
  std::vector<std::uint64_t> both;
  std::set_union(offsets.begin(), offsets.end(), with_strips.begin(), with_strips.end(), std::back_inserter(both));
  if (both.size() > limit) both.resize(limit);
  return both;
}

Result<std::vector<std::uint64_t>> pages_with_strips(Core& core, const OpenObject& object, std::uint64_t first,
                                                     std::uint64_t last, std::size_t limit) {
  constexpr std::uint64_t kLastPage = UINT64_MAX / MDFS_STRIPS_PER_PAGE;
  std::vector<std::uint64_t> pages;
  for (std::uint64_t page = first; page <= std::min(last, kLastPage) && pages.size() < limit; ++page) {
    MDFS_TRY_ASSIGN(const auto items,
                    core.store.scan(strip_key(object, page, 0),
                                    strip_key(object, std::min(last, kLastPage), MDFS_STRIPS_PER_PAGE - 1), 1));
    if (items.empty()) break;
    page = items.front().key.offset / MDFS_STRIPS_PER_PAGE;
    pages.push_back(page);
  }
  return pages;
}

}  // namespace mdfs::engine
