// Space of the volume: allocation, and the pool of places for nodes.
// SPDX-License-Identifier: Apache-2.0
#include "store/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/log.h"
#include "store/spare.h"
#include "store/tree.h"

namespace mdfs::store {
namespace {

using Kind = alloc::Search::Kind;

constexpr std::uint64_t kDataReserveShare = 128;
constexpr std::uint64_t kDataReserveLimit = 4096;  // blocks
constexpr std::uint64_t kDataReserveFloor = 64;    // blocks, but not more than a 16th
constexpr std::size_t kPoolSlack = 256;
constexpr std::uint64_t kPagesAhead = 15;  // 128 KiB with both places of each

}  // namespace

namespace {

std::unique_ptr<alloc::SpaceMap> make_map(const MemberDisk& member, const SpaceIndex& index) {
  const format::DiskLayout layout = layout_of(*member.label);
  auto map = std::make_unique<alloc::SpaceMap>(layout, member.label->zone_blocks, index.free_blocks());
  for (std::uint64_t page = 0; page < layout.space_pages(0); ++page)
    if (!index.known(page)) map->set_broken(page);
  return map;
}

}  // namespace

Space::Space(std::vector<MemberDisk>& members, const format::CommitSlot& slot, std::uint32_t block_size,
             std::uint64_t seed, geometry::AllocationPolicy policy)
    : members_(members),
      block_size_(block_size),
      node_blocks_(format::node_blocks(block_size)),
      policy_(policy),
      out_(members.size()),
      fullness_(members.size()),
      tops_(slot.space),
      pending_free_data_(members.size()) {
  const std::size_t count = tops_.size();
  std::vector<std::unique_ptr<alloc::SpaceMap>> maps(count);
  index_.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    if (members[i].state != DiskState::kNone && !members[i].member.takes_data()) without_data_ |= std::uint64_t{1} << i;
  for (std::size_t i = 0; i < count; ++i) {
    if (!members[i].healthy()) continue;
    index_[i] = std::make_unique<SpaceIndex>(layout_of(*members[i].label), slot.space[i]);
    index_[i]->read(*members[i].disk);
    maps[i] = make_map(members[i], *index_[i]);
  }
  allocator_ = std::make_unique<alloc::Allocator>(std::move(maps), block_size, seed);
  for (std::size_t i = 0; i < count; ++i)
    if (allocator_->map(i)) allocator_->set_avoided(i, members[i].member.is_draining());
  use_drained_if_alone();
  count_disks();
  published_node_blocks_ = slot.root(MDFS_ROOT_MAIN)->nodes * place_blocks();
  for (std::size_t i = 0; i < count; ++i) {
    const auto disk = static_cast<std::uint16_t>(i);
    if (const alloc::SpaceMap* map = allocator_->map(i))
      if (const auto boundary = map->boundary_page()) load_page(disk, *boundary);
  }
}

void Space::count_disks() {
  total_data_ = total_metadata_ = 0;
  node_disks_.clear();
  std::vector<std::uint64_t> sizes;  // with lost disks whose pieces have not been made anew: their room stays free
  std::uint64_t lost = 0;            // a bit each
  for (std::size_t i = 0; i < allocator_->disk_count(); ++i) {
    const alloc::SpaceMap* map = allocator_->map(i);
    const bool is_here = map != nullptr || members_[i].state == DiskState::kNone;
    if (!is_here || is_out(static_cast<std::uint16_t>(i))) {
      lost |= std::uint64_t{1} << i;
      if ((rebuilt_ >> i & 1) == 0 && takes_data(i)) sizes.push_back(members_[i].member.blocks);
    }
    if (!allocator_->usable(i)) continue;
    total_metadata_ += map->metadata_range().size();
    if (takes_data(i)) {
      total_data_ += map->data_range().size();
      sizes.push_back(map->data_range().size());
    }
    node_disks_.push_back(static_cast<std::uint16_t>(i));
  }
  const std::uint64_t floor = std::min(total_data_ / 16, kDataReserveFloor);
  data_reserve_ = std::clamp(total_data_ / kDataReserveShare, floor, kDataReserveLimit);
  copies_ = std::clamp(static_cast<unsigned>(node_disks_.size()), 2u, MDFS_MAX_COPIES);
  all_healthy_ = lost == 0;
  rebuilt_ &= lost;  // one that is back may be lost again
  is_rebuilt_ = rebuilt_ == lost;
  spare_ = spare_blocks(sizes, spare_disks_ - std::min(spare_disks_, static_cast<unsigned>(std::popcount(rebuilt_))),
                        block_size_);
}

bool Space::is_crowded(const format::Pointer& node) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t disks = 0;
  for (const format::Address& place : node.places()) disks |= std::uint64_t{1} << place.disk;
  const bool has_better =
      (disks & without_data_) == 0 && std::any_of(node_disks_.begin(), node_disks_.end(), [&](std::uint16_t disk) {
        return !takes_data(disk) && allocator_->map(disk)->metadata_free() >= node_blocks_;
      });
  if (has_better) return true;
  return static_cast<std::size_t>(std::popcount(disks)) < std::min<std::size_t>(copies_, node_disks_.size());
}

void Space::load_page(std::uint16_t disk, std::uint64_t page, std::uint64_t ahead) {
  // Each time the lock is taken: the disk may have left the volume, and with it its map and index.
  std::optional<format::DiskLayout> found;
  {
    const std::lock_guard lock(mutex_);
    if (const alloc::SpaceMap* map = allocator_->map(disk)) found = map->layout();
  }
  if (!found) return;
  const format::DiskLayout& layout = *found;
  const std::uint64_t last = std::min(page + ahead, layout.space_pages(0) - 1);
  // Both places of all of them lie side by side.
  const std::uint64_t offset = layout.space_offset({0, page}, 0);
  AlignedBuffer buffer(layout.space_offset({0, last}, 1) + MDFS_SECTOR - offset);
  for (;;) {
    std::vector<format::SpaceEntry> entries;
    {
      const std::lock_guard lock(mutex_);
      const alloc::SpaceMap* map = allocator_->map(disk);
      if (map == nullptr || last >= map->page_count()) return;  // the disk has become smaller
      if (map->loaded(page) || map->broken(page)) return;
      for (std::uint64_t i = page; i <= last; ++i) entries.push_back(index_[disk]->entry(i));
    }
    const Status read = read_space_pages(*members_[disk].disk, offset, buffer.bytes());
    for (std::uint64_t i = page; i <= last; ++i) {
      const format::SpaceEntry& entry = entries[i - page];
      const ConstBytes bytes = buffer.bytes().subspan(layout.space_offset({0, i}, entry.place) - offset, MDFS_SECTOR);
      const Status status = read.ok() ? format::check_bitmap(layout, i, entry, bytes) : read;
      const std::lock_guard lock(mutex_);
      if (allocator_->map(disk) == nullptr || i >= allocator_->map(disk)->page_count()) return;
      // A page may have been loaded, changed, written elsewhere and forgotten meanwhile.
      if (index_[disk]->entry(i) == entry && (i == page || status.ok())) install(disk, i, status, bytes);
    }
  }
}

void Space::install(std::uint16_t disk, std::uint64_t page, const Status& status, ConstBytes bytes) {
  alloc::SpaceMap& map = *allocator_->map(disk);
  if (map.loaded(page) || map.broken(page)) return;
  if (status.ok()) return map.install(page, bytes);
  map.set_broken(page);
  spdlog::error("{}: bitmap page {}: {}; its free blocks count as in use", members_[disk].disk->name(), page,
                status.error().message());
}

std::uint64_t Space::home_nodes(std::uint64_t more_blocks) const {
  std::uint64_t places = more_blocks / node_blocks_;
  std::vector<std::uint64_t> apart;  // where a disk for tree nodes alone has most of the places
  for (std::size_t i = 0; i < allocator_->disk_count(); ++i) {
    if (!allocator_->usable(i)) continue;
    const std::uint64_t here = allocator_->map(i)->metadata_free() / node_blocks_;
    places += here;
    if (without_data_ != 0) apart.push_back(here);
  }
  return apart.size() < copies_ ? places / copies_ : groups_in(std::move(apart), copies_);
}

alloc::Answer Space::allocate_once(const AllocationRequest& request) {
  std::vector<std::uint16_t> disks;
  const auto may = [&](std::uint16_t disk) {
    return allocator_->usable(disk) && takes_data(disk) && (request.avoided_disks >> disk & 1) == 0;
  };
  const bool preferred = request.disk < allocator_->disk_count() && may(request.disk);
  if (preferred) disks.push_back(request.disk);
  if (request.may_fall_back) {
    for (const std::uint16_t disk : node_disks_)
      if (disk != request.disk && may(disk)) disks.push_back(disk);
    std::stable_sort(disks.begin() + (preferred ? 1 : 0), disks.end(), [&](std::uint16_t a, std::uint16_t b) {
      return allocator_->map(a)->data_free() > allocator_->map(b)->data_free();
    });
  }
  alloc::DataRequest on_disk;
  on_disk.blocks = request.blocks;
  on_disk.owner = request.owner;
  on_disk.expected_blocks = request.expected_blocks;
  on_disk.fits = request.fits;
  on_disk.policy = request.policy != geometry::AllocationPolicy::kDefault ? request.policy : policy_;
  for (const std::uint16_t disk : disks) {
    on_disk.disk = disk;
    on_disk.near_block = disk == request.disk ? request.near_block : 0;
    on_disk.around_block = disk == request.disk ? request.around_block : 0;
    on_disk.at_block = disk == request.disk ? request.at_block : 0;
    const alloc::Answer answer = allocator_->allocate_data(on_disk);
    if (answer.kind != Kind::kNone) return answer;
  }
  return {};
}

Result<Run> Space::allocate(const AllocationRequest& request, std::uint64_t reserved) {
  if (request.blocks == 0 || request.disk >= members_.size())
    return Error{Errc::kInvalidArgument,
                 fmt::format("allocation of {} blocks on disk {}; at least 1 on a disk below {}", request.blocks,
                             request.disk, members_.size())};
  const std::uint64_t covered = std::min<std::uint64_t>(reserved, request.blocks);
  for (std::uint64_t ahead = 0;; ahead = kPagesAhead) {  // a search that continues reads more at once
    std::unique_lock lock(mutex_);
    const std::uint64_t uncovered = request.blocks - covered;
    const bool enough = knows_freed_ && (uncovered == 0 || data_for(Purpose::kMoving) >= uncovered);
    const alloc::Answer answer = enough ? allocate_once(request) : alloc::Answer{};
    if (answer.kind == Kind::kNone && wait_for_discards(lock, &request)) continue;
    if (answer.kind == Kind::kNone)
      return Error{Errc::kNoSpace, fmt::format("no run of {} blocks for disk {}", request.blocks, request.disk)};
    if (answer.kind == Kind::kFound) {
      reserved_.blocks -= covered;
      shrink();
      const std::vector<std::string> lines = note_allocation(request, answer.run);
      lock.unlock();
      for (const std::string& line : lines) spdlog::warn("{}", line);
      return answer.run;
    }
    lock.unlock();
    load_page(answer.run.disk, answer.page, ahead);
  }
}

void Space::abandon(const Run& run) {
  const std::lock_guard lock(mutex_);
  if (alloc::SpaceMap* map = allocator_->map(run.disk)) map->release(run.block, run.blocks);
}

Result<Run> Space::freeze_range(unsigned disk, std::uint32_t blocks, const std::vector<Run>& keep) {
  if (blocks == 0 || disk >= members_.size())
    return Error{Errc::kInvalidArgument, fmt::format("range of {} blocks on disk {}; at least 1 on a disk below {}",
                                                     blocks, disk, members_.size())};
  alloc::AvoidedRanges avoid;
  for (const Run& run : keep)
    if (run.disk == disk) avoid[run.block] = std::max(avoid[run.block], run.block + run.blocks);
  while (true) {
    std::unique_lock lock(mutex_);
    const alloc::Answer answer = allocator_->freeze_range(static_cast<std::uint16_t>(disk), blocks, avoid);
    if (answer.kind == Kind::kNone)
      return Error{Errc::kNoSpace, fmt::format("no range of {} blocks of disk {} can be cleared", blocks, disk)};
    if (answer.kind == Kind::kFound) {
      shrink();
      return answer.run;
    }
    lock.unlock();
    load_page(answer.run.disk, answer.page);
  }
}

void Space::thaw_range(const Run& range) {
  const std::lock_guard lock(mutex_);
  allocator_->thaw_range(range);
}

bool Space::reserve_run(const Run& place) {
  const std::lock_guard lock(mutex_);
  return place.disk < allocator_->disk_count() && allocator_->reserve_run(place);
}

void Space::release_run(const Run& place) {
  const std::lock_guard lock(mutex_);
  if (place.disk < allocator_->disk_count()) allocator_->release_run(place);
}

bool Space::is_free(const Run& run) {
  const std::uint64_t page = format::DiskLayout::bitmap_page(run.block);
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (!valid(run) || !allocator_->usable(run.disk)) return false;
      const alloc::SpaceMap& map = *allocator_->map(run.disk);
      if (map.broken(page)) return false;
      if (map.loaded(page)) return map.is_free(run.block, run.blocks);
    }
    load_page(run.disk, page);
  }
}

void Space::release_preallocations(std::uint64_t owner) {
  const std::lock_guard lock(mutex_);
  allocator_->release_preallocations(owner);
}

std::uint64_t Space::pending_free() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t unknown = knows_freed_ ? 0 : 1;
  return std::max(pending_free_ - std::min(pending_free_, held_.waiting_blocks()), unknown);
}

std::shared_ptr<const HeldBlocks::State> Space::hold(std::vector<Run> runs) {
  const std::lock_guard lock(mutex_);
  return held_.add(std::move(runs));
}

void Space::drop_hold(const HeldBlocks::State& hold) {
  const std::lock_guard lock(mutex_);
  release_locked(held_.drop(hold));
}

bool Space::break_holds() {
  const std::lock_guard lock(mutex_);
  if (held_.waiting_blocks() == 0) return false;
  while (held_.waiting_blocks() > 0) release_locked(held_.break_oldest());
  return true;
}

std::uint64_t Space::pending_free_data() const {
  return std::accumulate(pending_free_data_.begin(), pending_free_data_.end(), std::uint64_t{0});
}

void Space::describe(std::size_t disk, DiskInfo& info) const {
  const std::lock_guard lock(mutex_);
  const alloc::SpaceMap* map = disk < allocator_->disk_count() ? allocator_->map(disk) : nullptr;
  if (map == nullptr || is_out(static_cast<std::uint16_t>(disk))) return;
  info.free_blocks = map->disk_free();
  info.data_blocks = map->data_range().size();
  info.data_free_blocks = map->data_free() + discarding_blocks(static_cast<std::uint16_t>(disk), map->data_range());
  info.zone_blocks = map->zone_blocks();
  info.fallback_runs = fullness_.fallback_runs(disk);
}

Result<std::vector<ZoneUse>> Space::zone_use(unsigned disk, std::uint64_t first, std::size_t count,
                                             const std::function<bool()>& answers) {
  std::vector<ZoneUse> zones;
  std::unique_lock lock(mutex_);
  for (std::uint64_t zone = first; zones.size() < count;) {
    // Anew each time: the disk may have left the volume, or got another size, while a page was loaded.
    const alloc::SpaceMap* map = disk < allocator_->disk_count() ? allocator_->map(disk) : nullptr;
    if (map == nullptr) return std::vector<ZoneUse>();
    const alloc::BlockRange data = map->data_range();
    const std::uint64_t size = map->zone_blocks();
    if (zone >= ceil_div(map->layout().blocks(), size)) break;
    const alloc::BlockRange range{std::clamp(zone * size, data.begin, data.end),
                                  std::clamp((zone + 1) * size, data.begin, data.end)};
    const alloc::Search used = range.empty() ? alloc::Search{Kind::kFound, 0} : map->used_in(range);
    if (used.kind == Kind::kNeedPage) {
      lock.unlock();
      if (!answers()) return Error{Errc::kBusy, fmt::format("disk {} does not answer", disk)};
      load_page(static_cast<std::uint16_t>(disk), used.value);
      lock.lock();
      continue;
    }
    zones.push_back({range.empty() ? 0 : range.size(), used.value});
    ++zone;
    shrink();
  }
  return zones;
}

std::vector<std::string> Space::note_allocation(const AllocationRequest& request, const Run& run) {
  std::vector<std::string> lines;
  const auto data = [&](unsigned disk) { return allocator_->map(disk)->data_range().size(); };
  const auto used = [&](unsigned disk) {
    return data(disk) - std::min(data(disk), allocator_->map(disk)->data_free() + pending_free_data_[disk]);
  };
  const auto name = [&](unsigned disk) { return members_[disk].disk->name(); };
  if (auto line = fullness_.note_use(run.disk, name(run.disk), used(run.disk), data(run.disk)))
    lines.push_back(std::move(*line));
  const unsigned own = request.disk;
  if (run.disk != own && own < allocator_->disk_count() && allocator_->usable(own))
    if (auto line = fullness_.note_fallback(own, name(own), used(own), data(own))) lines.push_back(std::move(*line));
  return lines;
}

std::vector<std::uint16_t> Space::disks_for_copy(const NodePlace& place) const {
  std::vector<std::uint16_t> disks = node_disks_;
  if (disks.empty()) return disks;
  std::rotate(disks.begin(), disks.begin() + static_cast<std::ptrdiff_t>((rotation_ + place.copies) % disks.size()),
              disks.end());
  if (without_data_ != 0)
    std::stable_partition(disks.begin(), disks.end(), [&](std::uint16_t disk) { return !takes_data(disk); });
  return disks;
}

alloc::Answer Space::extend_place(NodePlace& place, Purpose purpose, Where where) {
  const bool inside = where != Where::kFar && allocator_->metadata_free() >= node_blocks_;
  // Not data_for(kNormal): what is kept of it for nodes is for this.
  // A second copy on another disk may take half of it, too: both copies on one disk are worth one.
  const std::uint64_t reserve = place.copies == 1 ? data_reserve_ / 2 : data_reserve_;
  const std::uint64_t kept = reserved_.blocks + (is_ordinary(purpose) ? reserve : 0);
  const bool outside = where != Where::kHome && allocator_->data_free() >= kept + node_blocks_;
  const std::vector<std::uint16_t> disks = disks_for_copy(place);
  for (const bool distinct : {true, false})
    for (const bool beyond : {false, true}) {
      if (beyond ? !outside : !inside) continue;
      for (const std::uint16_t disk : disks) {
        const auto& places = place.places();
        const auto here = std::count_if(places.begin(), places.end(),
                                        [&](const format::Address& address) { return address.disk == disk; });
        if (distinct ? here > 0 : here == 0) continue;
        const alloc::Answer answer = allocator_->allocate_node(disk, static_cast<std::uint32_t>(node_blocks_),
                                                               here > 0 ? 1 : 0, beyond && takes_data(disk));
        if (answer.kind == Kind::kNone) continue;
        if (answer.kind == Kind::kFound) place.address[place.copies++] = {disk, answer.run.block};
        return answer;
      }
    }
  return {};
}

void Space::release_place(const NodePlace& place) {
  for (const format::Address& address : place.places())
    allocator_->map(address.disk)->release(address.block, node_blocks_);
}

bool Space::is_far(const NodePlace& place) const {
  const auto places = place.places();
  return std::any_of(places.begin(), places.end(), [&](const format::Address& address) {
    return address.block >= allocator_->map(address.disk)->layout().metadata_end();
  });
}

Status Space::take_into_pool(std::unique_lock<std::mutex>& lock, Purpose purpose, Where where) {
  NodePlace place;
  while (place.copies < copies_) {
    const alloc::Answer answer = extend_place(place, purpose, where);
    if (answer.kind == Kind::kNone) {
      release_place(place);
      return {Errc::kNoSpace, "no room for the nodes of the tree"};
    }
    if (answer.kind != Kind::kNeedPage) continue;
    lock.unlock();
    load_page(answer.run.disk, answer.page);
    lock.lock();
  }
  (is_far(place) ? far_ : pool_).push_back(place);
  ++rotation_;
  return {};
}

Status Space::keep_room(std::unique_lock<std::mutex>& lock, std::uint64_t nodes, std::uint64_t kept, Purpose purpose) {
  while (pool_.size() + far_.size() + home_nodes() < nodes + kept) MDFS_TRY(take_into_pool(lock, purpose, Where::kFar));
  return {};
}

Status Space::fill_pool(std::size_t nodes, Purpose purpose, const SpaceAmount& reserved) {
  std::unique_lock lock(mutex_);
  if (!knows_freed_) return {Errc::kNoSpace, "free blocks are unknown before the first commit of this mount"};
  const auto fill = [&]() -> Status {
    while (pool_.size() + far_.size() < nodes) MDFS_TRY(take_into_pool(lock, purpose, Where::kAnywhere));
    // Other purposes may use the space that is kept for working.
    const Purpose leaves = is_ordinary(purpose) ? purpose : Purpose::kFreeing;
    return keep_room(lock, nodes, kept_nodes(leaves, reserved), purpose);
  };
  Status filled = fill();
  while (!filled.ok() && wait_for_discards(lock)) filled = fill();
  if (filled.ok())
    tree_.changed = std::max<std::uint64_t>(tree_.changed, nodes);  // until note_tree() says how many it became
  else
    trim();
  return filled;
}

std::size_t Space::places() const {
  const std::lock_guard lock(mutex_);
  return pool_.size() + far_.size();
}

bool Space::has_room_at_home(When when) const {
  const std::lock_guard lock(mutex_);
  if (when == When::kNow && !far_.empty()) return false;
  const std::uint64_t home = home_nodes(when == When::kSoon ? pending_free_ - pending_free_data() : 0);
  return pool_.size() + home > tree_.changed + kept_nodes(Purpose::kNormal) + tree_.level + 2;
}

void Space::note_tree(const TreeSize& tree) {
  const std::lock_guard lock(mutex_);
  tree_ = tree;
  trim();
}

void Space::trim() {
  const std::uint64_t needed = tree_.changed + kept_nodes(Purpose::kNormal);
  while (!far_.empty() && pool_.size() + far_.size() + home_nodes() > needed) {
    if (pool_.size() + far_.size() <= tree_.changed) {  // it is wanted itself, but could lie at home
      NodePlace place;
      while (place.copies < copies_ && extend_place(place, Purpose::kFreeing, Where::kHome).kind == Kind::kFound) {
      }
      if (place.copies < copies_) return release_place(place);
      pool_.push_back(place);
    }
    release_place(far_.back());
    far_.pop_back();
  }
  if (pool_.size() <= tree_.changed + kPoolSlack) return;
  while (pool_.size() > tree_.changed + kPoolSlack / 2) {
    release_place(pool_.back());
    pool_.pop_back();
  }
}

NodePlace Space::take_place() {
  const std::lock_guard lock(mutex_);
  std::deque<NodePlace>& from = pool_.empty() ? far_ : pool_;
  MDFS_CHECK(!from.empty());
  const NodePlace place = from.front();
  from.pop_front();
  for (const format::Address& address : place.places())
    allocator_->map(address.disk)->publish(address.block, node_blocks_);
  published_node_blocks_ += place.copies * node_blocks_;
  if (tree_.changed > 0) --tree_.changed;
  return place;
}

}  // namespace mdfs::store
