// Judges for many extents whether their changed bytes are worth a strip.
// SPDX-License-Identifier: Apache-2.0
#include "engine/strips/strip_judge.h"

#include <bit>

#include "base/checked.h"

namespace mdfs::engine {

namespace {

// Places where a strip holds some of the bytes.
std::uint64_t overlapped(const Strips& strips, const ChangedBytes& changed) {
  std::uint64_t places = 0;
  for (const Strips::Entry& strip : strips)
    if (strip.begin < changed.end && changed.begin < strip.end) places |= strip.live;
  return places;
}

}  // namespace

StripJudge::StripJudge(Core& core, OpenObject& object) : core_(core), object_(object) {
  const std::lock_guard lock(object.state_mutex);
  published_size_ = object.published_size;
}

Status StripJudge::look_at(std::uint64_t number, Page& page) {
  MDFS_TRY_ASSIGN(page.known, core_.extent_map.page(object_, number, false));
  for (const Strips::Entry& strip : *page.known.strips) {
    const std::uint64_t blocks = ceil_div(strip.end - strip.begin, object_.block_size);
    for (std::uint64_t places = strip.live; places != 0; places &= places - 1)
      page.strip_blocks[static_cast<unsigned>(std::countr_zero(places))] += blocks;
  }
  return {};
}

Result<bool> StripJudge::is_worth_a_strip(const geometry::Coord& extent, const ChangedBytes& changed) {
  const geometry::PagePlace place = object_.page_of(extent);
  const auto [found, is_new] = pages_.try_emplace(place.page);
  Page& page = found->second;
  if (is_new) MDFS_TRY(look_at(place.page, page));
  if (page.asked != changed) {
    page.asked = changed;
    page.overlapped = overlapped(*page.known.strips, changed);
  }
  StripFacts facts;
  facts.extent_blocks = object_.capacity_bytes / object_.block_size;
  facts.changed_blocks = ceil_div(changed.end - changed.begin, object_.block_size);
  facts.has_record = page.known.page->has(place.place);
  facts.appends = object_.canonical_offset(extent, changed.begin) >= published_size_;
  facts.overlaps = (page.overlapped >> place.place & 1) != 0;
  facts.strip_blocks = page.strip_blocks[place.place];
  facts.strips_in_page = page.known.strips->size();
  return worth_a_strip(facts);
}

}  // namespace mdfs::engine
