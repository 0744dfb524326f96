// Scatter, groups and the places of tree nodes.
// SPDX-License-Identifier: Apache-2.0
#include "alloc/allocator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mdfs::alloc {
namespace {

using Kind = Search::Kind;

constexpr std::uint64_t kWindowBytes = 4u << 20;
constexpr std::uint64_t kWindowsPerDisk = 64;      // at least so many windows fit on a disk
constexpr std::uint64_t kSharedBytes = 64u << 10;  // of an object on a disk, before it gets a window of its own
constexpr std::uint64_t kWindowReach = 8 * std::uint64_t{MDFS_BITS_PER_PAGE};

// Small objects share windows, those of each policy their own; no object has such a number.
constexpr std::uint64_t shared_owner(geometry::ZonePolicy policy) { return static_cast<std::uint64_t>(policy); }
static_assert(shared_owner(geometry::ZonePolicy::kNear) < MDFS_OBJECT_FIRST);

}  // namespace

Allocator::Allocator(std::vector<std::unique_ptr<SpaceMap>> maps, std::uint32_t block_size, std::uint64_t seed)
    : maps_(std::move(maps)), block_size_(block_size), random_(seed), windows_(maps_.size()), last_end_(maps_.size()) {
  for (const auto& map : maps_) {
    const BlockRange region = map ? map->metadata_range() : BlockRange{};
    node_next_.push_back({region.begin, region.begin + region.size() / 2});
    node_next_outside_.push_back(region.end);
  }
}

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t Allocator::next_random() {
  std::uint64_t z = (random_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t Allocator::window_blocks(std::uint16_t disk) const {
  const std::uint64_t data = maps_[disk]->data_range().size();
  return std::clamp<std::uint64_t>(data / kWindowsPerDisk, 1, std::max<std::uint64_t>(kWindowBytes / block_size_, 1));
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
  if (table_.size() >= kMaxOpenWindows) {
    Slot& oldest = table_.back();
    close_window(oldest);
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

void Allocator::close_window(Slot& slot) {
  if (!slot.window.empty()) windows_[slot.disk].erase(slot.window.begin);
  slot.window = {};
}

void Allocator::open_window(Slot& slot, BlockRange window) {
  close_window(slot);
  // Windows are disjoint: one that begins inside another's room is simply not kept open.
  AvoidedRanges& open = windows_[slot.disk];
  const auto after = open.lower_bound(window.end);
  if (after != open.begin() && std::prev(after)->second > window.begin) return;
  open[window.begin] = window.end;
  slot.window = window;
  slot.next = window.begin;
}

void Allocator::close_owner(std::uint64_t owner) {
  for (std::size_t disk = 0; disk < maps_.size(); ++disk) {
    const auto found = by_key_.find({owner, static_cast<std::uint16_t>(disk)});
    if (found == by_key_.end()) continue;
    close_window(*found->second);
    table_.erase(found->second);
    by_key_.erase(found);
  }
}

// First from `start` to the end of the data, then from their beginning; not farther than `reach` blocks.
Search Allocator::find_from(std::uint16_t disk, std::uint64_t start, std::uint64_t blocks, bool around_windows,
                            std::uint64_t reach) const {
  const SpaceMap& map = *maps_[disk];
  const BlockRange data = map.data_range();
  start = std::clamp(start, data.begin, data.end);
  const AvoidedRanges* avoid = around_windows && !windows_[disk].empty() ? &windows_[disk] : nullptr;
  const std::uint64_t ahead = std::min(data.end - start, reach);
  const Search found = map.find({start, start + ahead}, blocks, avoid);
  if (found.kind != Kind::kNone || ahead == reach) return found;
  return map.find({data.begin, std::min({data.end, start + blocks - 1, data.begin + (reach - ahead)})}, blocks, avoid);
}

Answer Allocator::from_window(Slot& slot, std::uint32_t blocks) {
  if (slot.window.empty()) return {};
  const Search found = maps_[slot.disk]->find({slot.next, slot.window.end}, blocks, nullptr);
  if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {slot.disk, 0, 0}, found.value};
  if (found.kind == Kind::kNone) return {};
  slot.next = found.value + blocks;
  return taken(slot.disk, found.value, blocks);
}

// A full window is continued by the room right behind it, if that is free and nobody's.
Answer Allocator::behind_window(Slot& slot, std::uint32_t blocks) {
  if (slot.window.empty()) return {};
  const std::uint64_t begin = slot.window.end;
  const std::uint64_t length = std::max<std::uint64_t>(window_blocks(slot.disk), blocks);
  const BlockRange behind{begin, std::min(begin + length, maps_[slot.disk]->data_range().end)};
  const Search found =
      maps_[slot.disk]->find(behind, behind.size() < blocks ? blocks : behind.size(), &windows_[slot.disk]);
  if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {slot.disk, 0, 0}, found.value};
  if (found.kind == Kind::kNone) return {};
  // The last blocks of the old window that were too few for this request stay for the taking by anyone.
  open_window(slot, behind);
  return from_window(slot, blocks);
}

std::uint64_t Allocator::start_of_window(std::uint16_t disk, std::uint64_t wished, std::uint64_t near_block,
                                         Policy policy) {
  const SpaceMap& map = *maps_[disk];
  const BlockRange data = map.data_range();
  switch (policy) {
    case Policy::kFirst:
      return map.first_zone(wished);
    case Policy::kNear:
      if (near_block >= data.begin && near_block < data.end) return near_block;
      return last_end_[disk] != 0 ? std::min(last_end_[disk], data.end - 1) : data.begin;
    default:
      return map.draw_zone(next_random());
  }
}

Answer Allocator::new_window(Slot& slot, std::uint32_t blocks, std::uint64_t near_block, Policy policy) {
  const std::uint64_t wished = std::max<std::uint64_t>(window_blocks(slot.disk), blocks);
  if (slot.draw == 0) slot.draw = start_of_window(slot.disk, wished, near_block, policy);
  struct Try {
    std::uint64_t blocks;
    bool around_windows;
    std::uint64_t reach;
  };
  // A whole window is looked for near the draw only: on a full disk there may be none, and each page must be loaded.
  constexpr std::uint64_t kEverywhere = std::uint64_t{1} << 62;
  const Try tries[] = {{wished, true, kWindowReach},
                       {std::max<std::uint64_t>(wished / 4, blocks), true, kWindowReach},
                       {blocks, true, kEverywhere},
                       {blocks, false, kEverywhere}};
  for (const Try& attempt : tries) {
    const Search found = find_from(slot.disk, slot.draw, attempt.blocks, attempt.around_windows, attempt.reach);
    if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {slot.disk, 0, 0}, found.value};
    if (found.kind == Kind::kNone) continue;
    slot.draw = 0;
    open_window(slot, {found.value, found.value + attempt.blocks});
    if (!slot.window.empty()) slot.next = found.value + blocks;
    return taken(slot.disk, found.value, blocks);
  }
  slot.draw = 0;
  return {};
}

Answer Allocator::allocate_data(std::uint16_t disk, std::uint32_t blocks, std::uint64_t owner, std::uint64_t near_block,
                                Policy policy) {
  MDFS_CHECK(disk < maps_.size() && blocks > 0);
  SpaceMap* map = maps_[disk].get();
  if (map == nullptr || map->data_free() < blocks) return {};
  const BlockRange data = map->data_range();
  if (near_block >= data.begin && near_block < data.end) {
    const Search near = map->find({near_block, near_block + blocks}, blocks, nullptr);
    if (near.kind == Kind::kNeedPage) return {Kind::kNeedPage, {disk, 0, 0}, near.value};
    if (near.kind == Kind::kFound) return taken(disk, near.value, blocks);
  }
  Slot* slot = &slot_of(owner, disk);
  const bool shared = slot->window.empty() && (slot->small_blocks + blocks) * block_size_ <= kSharedBytes;
  Slot& own = *slot;
  if (shared) slot = &slot_of(shared_owner(policy), disk);
  Answer answer = from_window(*slot, blocks);
  if (answer.kind == Kind::kNone) answer = behind_window(*slot, blocks);
  if (answer.kind == Kind::kNone) answer = new_window(*slot, blocks, near_block, policy);
  if (shared && answer.kind == Kind::kFound) own.small_blocks += blocks;
  return answer;
}

Answer Allocator::allocate_node(std::uint16_t disk, std::uint32_t blocks, unsigned half, bool outside) {
  MDFS_CHECK(disk < maps_.size() && half < 2);
  SpaceMap* map = maps_[disk].get();
  if (map == nullptr) return {};
  const BlockRange region = map->metadata_range();
  const std::uint64_t middle = region.begin + region.size() / 2;
  const BlockRange halves[2] = {{region.begin, middle}, {middle, region.end}};
  const auto search = [&](BlockRange range, std::uint64_t& next) -> Answer {
    next = std::clamp(next, range.begin, range.end);
    for (const BlockRange part : {BlockRange{next, range.end}, BlockRange{range.begin, next}}) {
      const Search found = map->find(part, blocks, nullptr);
      if (found.kind == Kind::kNeedPage) return {Kind::kNeedPage, {disk, 0, 0}, found.value};
      if (found.kind == Kind::kNone) continue;
      next = found.value + blocks;
      return taken(disk, found.value, blocks);
    }
    return {};
  };
  if (outside) return search(map->data_range(), node_next_outside_[disk]);
  if (map->metadata_free() < blocks) return {};
  const Answer answer = search(halves[half], node_next_[disk][half]);
  return answer.kind != Kind::kNone ? answer : search(halves[1 - half], node_next_[disk][1 - half]);
}

std::size_t Allocator::emptiest_disk(std::size_t except) const {
  std::size_t best = maps_.size();
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    if (i == except || !maps_[i] || maps_[i]->data_free() == 0) continue;
    if (best == maps_.size() || maps_[i]->data_free() > maps_[best]->data_free()) best = i;
  }
  return best;
}

std::uint64_t Allocator::data_free() const {
  std::uint64_t sum = 0;
  for (const auto& map : maps_) sum += map ? map->data_free() : 0;
  return sum;
}

std::uint64_t Allocator::metadata_free() const {
  std::uint64_t sum = 0;
  for (const auto& map : maps_) sum += map ? map->metadata_free() : 0;
  return sum;
}

}  // namespace mdfs::alloc
