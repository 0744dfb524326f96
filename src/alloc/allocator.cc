// Scatter, groups and the places of tree nodes.
// SPDX-License-Identifier: Apache-2.0
#include "alloc/allocator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mdfs::alloc {
namespace {

using Kind = Search::Kind;

constexpr std::uint64_t kPreallocationBytes = 4u << 20;
constexpr std::uint64_t kPreallocationsPerDisk = 64;  // that fit on a disk at least
constexpr std::uint64_t kExpectedPerDisk =
    16;  // the largest part of a disk that is preallocated for blocks known to be needed
constexpr std::uint64_t kTightShare = 4;            // room is short where less than this part of a disk is free
constexpr unsigned kBusyPreallocations = 8;         // of a disk, that stay open where room is short
constexpr std::uint64_t kSharedBytes = 64u << 10;   // of an object on a disk, before it gets a preallocation of its own
constexpr std::uint64_t kAroundPreallocations = 2;  // preallocations away that are still near
constexpr std::uint64_t kReservedShare = 2;         // at most this part of what is free on a disk is reserved
constexpr std::size_t kPagesToClear = 4;            // in which a range is looked for
constexpr const AvoidedRanges* kNothing = nullptr;
constexpr std::uint64_t kEverywhere = std::uint64_t{1} << 62;
constexpr std::uint64_t kSearchReach = 8 * std::uint64_t{MDFS_BITS_PER_PAGE};

// Small objects share a preallocation for each policy; no object has such a number.
constexpr std::uint64_t shared_owner(AllocationPolicy policy) { return static_cast<std::uint64_t>(policy); }
static_assert(geometry::kAllocationPolicies <= MDFS_OBJECT_FIRST);

}  // namespace

Allocator::Allocator(std::vector<std::unique_ptr<SpaceMap>> maps, std::uint32_t block_size, std::uint64_t seed)
    : maps_(std::move(maps)),
      block_size_(block_size),
      random_(seed),
      avoided_ranges_(maps_.size()),
      frozen_(maps_.size()),
      frozen_free_(maps_.size()),
      reserved_(maps_.size()),
      reserved_or_frozen_(maps_.size()),
      reserved_blocks_(maps_.size()),
      last_end_(maps_.size()) {
  avoided_.resize(maps_.size());
  for (const auto& map : maps_) {
    const BlockRange region = map ? map->metadata_range() : BlockRange{};
    node_next_.push_back({region.begin, region.begin + region.size() / 2});
    node_next_outside_.push_back(region.end);
  }
}

void Allocator::release_all_on(std::size_t disk) {
  for (auto slot = table_.begin(); slot != table_.end();) {
    if (slot->disk == disk) {
      release_preallocation(*slot);
      by_key_.erase({slot->owner, slot->disk});
      slot = table_.erase(slot);
    } else {
      ++slot;
    }
  }
  while (!frozen_[disk].empty()) thaw_range({static_cast<std::uint16_t>(disk), frozen_[disk].begin()->first, 0});
  release_runs_in(disk, {0, UINT64_MAX});
}

void Allocator::end_changed(std::size_t disk) {
  release_all_on(disk);
  node_next_outside_[disk] = maps_[disk]->data_range().begin;
  last_end_[disk] = 0;
}

void Allocator::set_map(std::size_t disk, std::unique_ptr<SpaceMap> map) {
  MDFS_CHECK(disk <= maps_.size());
  if (disk == maps_.size()) {
    maps_.emplace_back();
    avoided_.push_back(false);
    avoided_ranges_.emplace_back();
    frozen_.emplace_back();
    frozen_free_.emplace_back();
    reserved_.emplace_back();
    reserved_or_frozen_.emplace_back();
    reserved_blocks_.push_back(0);
    last_end_.push_back(0);
    node_next_.emplace_back();
    node_next_outside_.push_back(0);
  }
  release_all_on(disk);
  const BlockRange region = map ? map->metadata_range() : BlockRange{};
  node_next_[disk] = {region.begin, region.begin + region.size() / 2};
  node_next_outside_[disk] = region.end;
  last_end_[disk] = 0;
  maps_[disk] = std::move(map);
  avoided_[disk] = false;
}

void Allocator::set_avoided(std::size_t disk, bool avoided) {
  if (avoided) release_all_on(disk);
  avoided_[disk] = avoided;
}

std::uint64_t Allocator::default_preallocation(std::uint16_t disk) const {
  const std::uint64_t data = maps_[disk]->data_range().size();
  return std::clamp<std::uint64_t>(data / kPreallocationsPerDisk, 1,
                                   std::max<std::uint64_t>(kPreallocationBytes / block_size_, 1));
}

Answer Allocator::taken(std::uint16_t disk, std::uint64_t block, std::uint32_t blocks) {
  maps_[disk]->take(block, blocks);
  if (block >= maps_[disk]->data_range().begin) last_end_[disk] = block + blocks;
  return {Kind::kFound, {disk, block, blocks}, 0};
}

Allocator::Slot& Allocator::slot_of(std::uint64_t owner, std::uint16_t disk) {
  const auto found = by_key_.find({owner, disk});
  if (found != by_key_.end()) {
    table_.splice(table_.begin(), table_, found->second);
    return table_.front();
  }
  if (table_.size() >= kMaxPreallocations) {
    Slot& oldest = table_.back();
    release_preallocation(oldest);
    by_key_.erase({oldest.owner, oldest.disk});
    table_.pop_back();
  }
  Slot slot;
  slot.owner = owner;
  slot.disk = disk;
  table_.push_front(slot);
  by_key_[{owner, disk}] = table_.begin();
  return table_.front();
}

void Allocator::release_preallocation(Slot& slot) {
  if (slot.next < slot.range.end) avoided_ranges_[slot.disk].erase(slot.next);
  slot.range = {};
  slot.next = 0;
}

// All before `next` has been given out, or was not free.
void Allocator::use_preallocation(Slot& slot, std::uint64_t next) {
  AvoidedRanges& open = avoided_ranges_[slot.disk];
  if (slot.next < slot.range.end) open.erase(slot.next);
  slot.next = next;
  if (slot.next < slot.range.end) open[slot.next] = slot.range.end;
}

void Allocator::begin_preallocation(Slot& slot, BlockRange range) {
  release_preallocation(slot);
  // Preallocations are disjoint: nothing is reserved where another one lies.
  AvoidedRanges& open = avoided_ranges_[slot.disk];
  const auto after = open.lower_bound(range.end);
  if (after != open.begin() && std::prev(after)->second > range.begin) return;
  open[range.begin] = range.end;
  slot.range = range;
  slot.next = range.begin;
}

void Allocator::release_preallocations(std::uint64_t owner) {
  for (std::size_t disk = 0; disk < maps_.size(); ++disk) {
    const auto found = by_key_.find({owner, static_cast<std::uint16_t>(disk)});
    if (found == by_key_.end()) continue;
    release_preallocation(*found->second);
    table_.erase(found->second);
    by_key_.erase(found);
  }
}

// First from `start` to the end of the data, then from their beginning; not farther than `reach` blocks.
Search Allocator::find_from(std::uint16_t disk, std::uint64_t start, std::uint64_t blocks, const AvoidedRanges* avoid,
                            std::uint64_t reach) const {
  const SpaceMap& map = *maps_[disk];
  const BlockRange data = map.data_range();
  start = std::clamp(start, data.begin, data.end);
  const std::uint64_t ahead = std::min(data.end - start, reach);
  const Search found = map.find({start, start + ahead}, blocks, avoid);
  if (found.kind != Kind::kNone || ahead == reach) return found;
  return map.find({data.begin, std::min({data.end, start + blocks - 1, data.begin + (reach - ahead)})}, blocks, avoid);
}

Answer Allocator::from_preallocation(Slot& slot, std::uint32_t blocks) {
  if (slot.range.empty()) return {};
  const Search found = maps_[slot.disk]->find({slot.next, slot.range.end}, blocks, nullptr);
  if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {slot.disk, 0, 0}, found.value};
  if (found.kind == Kind::kNone) return {};
  use_preallocation(slot, found.value + blocks);
  return taken(slot.disk, found.value, blocks);
}

std::uint64_t Allocator::preallocation_length(const DataRequest& request) const {
  const std::uint64_t most =
      std::min(kPreallocationBytes / block_size_, maps_[request.disk]->data_range().size() / kExpectedPerDisk);
  const std::uint64_t length =
      request.expected_blocks == 0 ? default_preallocation(request.disk) : std::min(most, request.expected_blocks);
  return std::max<std::uint64_t>(length, request.blocks);
}

// A full preallocation is continued by the blocks right behind it, if they are free and not preallocated.
Answer Allocator::extend_preallocation(Slot& slot, const DataRequest& request) {
  if (slot.range.empty()) return {};
  const std::uint64_t begin = slot.range.end;
  const BlockRange behind{begin, std::min(begin + preallocation_length(request), maps_[slot.disk]->data_range().end)};
  const Search found = maps_[slot.disk]->find(behind, std::max<std::uint64_t>(behind.size(), request.blocks),
                                              &avoided_ranges_[slot.disk]);
  if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {slot.disk, 0, 0}, found.value};
  if (found.kind == Kind::kNone) return {};
  // The last blocks of the old preallocation, too few for this request, become available to all.
  begin_preallocation(slot, behind);
  return from_preallocation(slot, request.blocks);
}

Answer Allocator::from_range(const Slot& slot, BlockRange range, std::uint32_t blocks) {
  const BlockRange data = maps_[slot.disk]->data_range();
  range = {std::max(range.begin, data.begin), std::min(range.end, data.end)};
  if (range.empty() || range.size() < blocks) return {};
  const bool own = range.begin >= slot.range.begin && range.end <= slot.range.end;
  const Search found = maps_[slot.disk]->find(range, blocks, own ? &reserved_[slot.disk] : &avoided_ranges_[slot.disk]);
  if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {slot.disk, 0, 0}, found.value};
  return found.kind == Kind::kFound ? taken(slot.disk, found.value, blocks) : Answer{};
}

Answer Allocator::around(const Slot& slot, const DataRequest& request) {
  const std::uint64_t block = request.around_block;
  const std::uint64_t reach = kAroundPreallocations * default_preallocation(slot.disk);
  const bool inside = block >= slot.range.begin && block < slot.range.end;
  const auto before = [block](std::uint64_t blocks) { return block - std::min(block, blocks); };
  for (const BlockRange range :
       {inside ? slot.range : BlockRange{}, BlockRange{block, block + reach / 4}, BlockRange{before(reach / 4), block},
        BlockRange{block, block + reach}, BlockRange{before(reach), block}}) {
    const Answer answer = from_range(slot, range, request.blocks);
    if (answer.kind != Kind::kNone) return answer;
  }
  return {};
}

std::uint64_t Allocator::start_of_preallocation(const DataRequest& request) {
  const SpaceMap& map = *maps_[request.disk];
  const BlockRange data = map.data_range();
  if (request.around_block >= data.begin && request.around_block < data.end) return request.around_block;
  return info(request.policy)
      .begin({map, preallocation_length(request), request.near_block, last_end_[request.disk], random_});
}

Answer Allocator::preallocate_at(Slot& slot, BlockRange range, std::uint32_t blocks) {
  slot.draw = 0;
  begin_preallocation(slot, range);
  if (!slot.range.empty()) use_preallocation(slot, range.begin + blocks);
  return taken(slot.disk, range.begin, blocks);
}

// The table begins with the most recently used entries.
void Allocator::release_idle_preallocations(std::uint16_t disk) {
  unsigned seen = 0;
  for (Slot& slot : table_)
    if (slot.disk == disk && slot.next < slot.range.end && ++seen > kBusyPreallocations) release_preallocation(slot);
}

BlockRange Allocator::near(std::uint16_t disk, std::uint64_t begin, std::uint64_t blocks) const {
  const BlockRange data = maps_[disk]->data_range();
  begin = std::clamp(begin, data.begin, data.end - std::min(data.size(), blocks));
  return {begin, std::min(begin + blocks, data.end)};
}

Answer Allocator::preallocate_in_hole(Slot& slot, const DataRequest& request, SpaceMap::Fit fit) {
  const std::uint64_t length = preallocation_length(request);
  const BlockRange range = near(slot.disk, slot.draw, kSearchReach);
  const std::uint64_t least = fit == SpaceMap::Fit::kSmallest ? length : request.blocks;
  const Search hole = maps_[slot.disk]->find_hole(range, least, &avoided_ranges_[slot.disk], fit);
  if (hole.kind == Kind::kNeedPage) return {Kind::kNeedPage, {slot.disk, 0, 0}, hole.value};
  if (hole.kind == Kind::kNone) return {};
  return preallocate_at(slot, {hole.value, hole.value + std::min(hole.blocks, length)}, request.blocks);
}

Answer Allocator::new_preallocation(Slot& slot, const DataRequest& request) {
  if (slot.draw == 0) slot.draw = start_of_preallocation(request);
  const std::uint64_t length = preallocation_length(request);
  const auto at = [&](std::uint64_t blocks, const AvoidedRanges* avoid, std::uint64_t reach) -> Answer {
    const Search found = find_from(slot.disk, slot.draw, blocks, avoid, reach);
    if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {slot.disk, 0, 0}, found.value};
    if (found.kind == Kind::kNone) return {};
    return preallocate_at(slot, {found.value, found.value + blocks}, request.blocks);
  };
  // A whole preallocation is looked for near the draw only: a full disk may have none, and each page must be loaded.
  const SpaceMap& map = *maps_[slot.disk];
  const bool short_of_room = map.data_free() < map.data_range().size() / kTightShare;
  Answer answer;
  if (!short_of_room || info(request.policy).prefers_place_to_hole)
    answer = at(length, &avoided_ranges_[slot.disk], kSearchReach);
  // Where room is short, large holes are worth keeping, and unused preallocations are not.
  if (answer.kind == Kind::kNone) answer = preallocate_in_hole(slot, request, SpaceMap::Fit::kSmallest);
  if (answer.kind == Kind::kNone) {
    release_idle_preallocations(slot.disk);
    answer = preallocate_in_hole(slot, request, SpaceMap::Fit::kSmallest);
  }
  if (answer.kind == Kind::kNone) answer = preallocate_in_hole(slot, request, SpaceMap::Fit::kLargest);
  for (const AvoidedRanges* avoid :
       {avoided_on(slot.disk), reserved_or_frozen_on(slot.disk), frozen_on(slot.disk), kNothing})
    if (answer.kind == Kind::kNone) answer = at(request.blocks, avoid, kEverywhere);
  if (answer.kind != Kind::kNeedPage) slot.draw = 0;
  return answer;
}

// Near by the smallest hole that holds all, farther away the first one.
Answer Allocator::fitting(const DataRequest& request) {
  const SpaceMap& map = *maps_[request.disk];
  const BlockRange data = map.data_range();
  const bool anywhere = request.around_block < data.begin || request.around_block >= data.end;
  const std::uint64_t from = anywhere ? map.draw_zone(random_.next()) : request.around_block;
  const std::uint64_t reach = anywhere ? kSearchReach : MDFS_BITS_PER_PAGE;
  const BlockRange range = near(request.disk, from - std::min(from, reach / 2), reach);
  for (const AvoidedRanges* avoid :
       {avoided_on(request.disk), reserved_or_frozen_on(request.disk), frozen_on(request.disk)}) {
    Search found = map.find_hole(range, request.blocks, avoid, SpaceMap::Fit::kSmallest);
    if (found.kind == Kind::kNone) found = find_from(request.disk, from, request.blocks, avoid, kEverywhere);
    if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {request.disk, 0, 0}, found.value};
    if (found.kind == Kind::kFound) return taken(request.disk, found.value, request.blocks);
  }
  return {};
}

Answer Allocator::freeze_range(std::uint16_t disk, std::uint32_t blocks, const AvoidedRanges& keep) {
  MDFS_CHECK(disk < maps_.size() && blocks > 0);
  const SpaceMap* map = maps_[disk].get();
  if (!usable(disk) || blocks > MDFS_BITS_PER_PAGE) return {};
  AvoidedRanges avoid = keep;
  for (const auto& [begin, end] : frozen_[disk]) avoid[begin] = std::max(avoid[begin], end);
  Search best;
  for (const std::uint64_t page : map->emptiest_pages(kPagesToClear)) {
    if (!map->loaded(page)) return {Kind::kNeedPage, {disk, 0, 0}, page};
    const Search found = map->emptiest_range(page, blocks, avoid);
    if (found.kind == Kind::kFound && (best.kind == Kind::kNone || found.blocks < best.blocks)) best = found;
  }
  if (best.kind == Kind::kNone) return {};
  const std::uint64_t in_use = best.blocks;
  std::uint64_t free = blocks - in_use;  // of this one and the others
  for (const auto& [begin, of_one] : frozen_free_[disk]) free += of_one;
  if (2 * free > map->data_free() || map->data_free() - free < in_use) return {};
  const BlockRange range{best.value, best.value + blocks};
  for (Slot& slot : table_)
    if (slot.disk == disk && slot.range.begin < range.end && range.begin < slot.range.end) release_preallocation(slot);
  release_runs_in(disk, range);
  frozen_[disk][range.begin] = reserved_or_frozen_[disk][range.begin] = avoided_ranges_[disk][range.begin] = range.end;
  frozen_free_[disk][range.begin] = blocks - in_use;
  return {Kind::kFound, {disk, range.begin, blocks}, 0};
}

void Allocator::thaw_range(const Run& range) {
  if (frozen_free_[range.disk].erase(range.block) == 0) return;
  frozen_[range.disk].erase(range.block);
  reserved_or_frozen_[range.disk].erase(range.block);
  avoided_ranges_[range.disk].erase(range.block);
}

// Avoided ranges are disjoint.
bool Allocator::reserve_run(const Run& place) {
  MDFS_CHECK(place.disk < maps_.size() && place.blocks > 0);
  if (!usable(place.disk)) return false;
  const std::uint64_t begin = place.block, end = place.end();
  AvoidedRanges& apart = avoided_ranges_[place.disk];
  const auto after = apart.lower_bound(end);
  if (after != apart.begin() && std::prev(after)->second > begin) return false;
  if (kReservedShare * (reserved_blocks_[place.disk] + place.blocks) > maps_[place.disk]->data_free()) return false;
  apart[begin] = reserved_[place.disk][begin] = reserved_or_frozen_[place.disk][begin] = end;
  reserved_blocks_[place.disk] += place.blocks;
  return true;
}

void Allocator::release_run(const Run& place) {
  MDFS_CHECK(place.disk < maps_.size());
  const auto reserved = reserved_[place.disk].find(place.block);
  if (reserved == reserved_[place.disk].end() || reserved->second != place.end()) return;
  release_runs_in(place.disk, {place.block, reserved->second});
}

// Releases reserved runs that overlap the range.
void Allocator::release_runs_in(std::size_t disk, BlockRange range) {
  AvoidedRanges& reserved = reserved_[disk];
  auto place = reserved.upper_bound(range.begin);
  if (place != reserved.begin() && std::prev(place)->second > range.begin) --place;
  while (place != reserved.end() && place->first < range.end) {
    avoided_ranges_[disk].erase(place->first);
    reserved_or_frozen_[disk].erase(place->first);
    reserved_blocks_[disk] -= place->second - place->first;
    place = reserved.erase(place);
  }
}

Answer Allocator::allocate_data(const DataRequest& request) {
  MDFS_CHECK(request.disk < maps_.size() && request.blocks > 0);
  const SpaceMap* map = maps_[request.disk].get();
  if (!usable(request.disk) || map->data_free() < request.blocks) return {};
  if (request.at_block != 0) {
    const Search found = map->find({request.at_block, request.at_block + request.blocks}, request.blocks, nullptr);
    if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {request.disk, 0, 0}, found.value};
    return found.kind == Kind::kFound ? taken(request.disk, found.value, request.blocks) : Answer{};
  }
  if (request.fits) return fitting(request);
  Slot* slot = &slot_of(request.owner, request.disk);
  if (request.around_block != 0) {
    const Answer answer = around(*slot, request);
    if (answer.kind != Kind::kNone) return answer;
  }
  if (request.near_block != 0) {
    const Answer answer = from_range(*slot, {request.near_block, request.near_block + request.blocks}, request.blocks);
    if (answer.kind != Kind::kNone) return answer;
  }
  const std::uint64_t small = std::max<std::uint64_t>(slot->small_blocks + request.blocks, request.expected_blocks);
  const bool shared = slot->range.empty() && small * block_size_ <= kSharedBytes;
  Slot& own = *slot;
  DataRequest known = request;
  if (shared) {
    slot = &slot_of(shared_owner(request.policy), request.disk);
    known.expected_blocks = 0;  // by all who share
  }
  Answer answer = from_preallocation(*slot, request.blocks);
  if (answer.kind == Kind::kNone) answer = extend_preallocation(*slot, known);
  if (answer.kind == Kind::kNone) answer = new_preallocation(*slot, known);
  if (shared && answer.kind == Kind::kFound) own.small_blocks += request.blocks;
  return answer;
}

Answer Allocator::allocate_node(std::uint16_t disk, std::uint32_t blocks, unsigned half, bool outside) {
  MDFS_CHECK(disk < maps_.size() && half < 2);
  SpaceMap* map = maps_[disk].get();
  if (!usable(disk)) return {};
  const BlockRange region = map->metadata_range();
  const std::uint64_t middle = region.begin + region.size() / 2;
  const BlockRange halves[2] = {{region.begin, middle}, {middle, region.end}};
  const auto search = [&](BlockRange range, std::uint64_t& next, const AvoidedRanges* avoid) -> Answer {
    next = std::clamp(next, range.begin, range.end);
    for (const BlockRange part : {BlockRange{next, range.end}, BlockRange{range.begin, next}}) {
      const Search found = map->find(part, blocks, avoid);
      if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {disk, 0, 0}, found.value};
      if (found.kind == Kind::kNone) continue;
      next = found.value + blocks;
      return taken(disk, found.value, blocks);
    }
    return {};
  };
  if (outside) {
    const Answer answer = search(map->data_range(), node_next_outside_[disk], reserved_or_frozen_on(disk));
    if (answer.kind != Kind::kNone) return answer;
    return search(map->data_range(), node_next_outside_[disk], frozen_on(disk));
  }
  if (map->metadata_free() < blocks) return {};
  const Answer answer = search(halves[half], node_next_[disk][half], kNothing);
  return answer.kind != Kind::kNone ? answer : search(halves[1 - half], node_next_[disk][1 - half], kNothing);
}

std::size_t Allocator::emptiest_disk(std::size_t except) const {
  std::size_t best = maps_.size();
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    if (i == except || !usable(i) || maps_[i]->data_free() == 0) continue;
    if (best == maps_.size() || maps_[i]->data_free() > maps_[best]->data_free()) best = i;
  }
  return best;
}

std::uint64_t Allocator::data_free() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < maps_.size(); ++i) sum += usable(i) ? maps_[i]->data_free() : 0;
  return sum;
}

std::uint64_t Allocator::metadata_free() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < maps_.size(); ++i) sum += usable(i) ? maps_[i]->metadata_free() : 0;
  return sum;
}

}  // namespace mdfs::alloc
