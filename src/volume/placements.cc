// The placements of a volume.
// SPDX-License-Identifier: Apache-2.0
#include "volume/placements.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "format/geometry_item.h"
#include "geometry/placement_growth.h"
#include "volume/records.h"

namespace mdfs::volume {
namespace {

Status check_offset(const char* option, const std::optional<unsigned>& offset, unsigned slots) {
  if (!offset || *offset < slots) return {};
  return Error{Errc::kInvalidArgument,
               std::string(option) + " " + std::to_string(*offset) + ": 0.." + std::to_string(slots - 1) + " allowed"};
}

// New extents may be placed there; one that is missing may be back tomorrow.
bool takes_extents(const store::DiskInfo& disk) {
  return disk.state != store::DiskState::kNone && disk.state != store::DiskState::kDraining && disk.weight > 0;
}

// On one disk all ranks look alike: tables for the most axes serve them all.
unsigned rank_of(const geometry::Placement& placement, bool with_rank5) {
  const auto any = [](const std::vector<std::uint16_t>& table) {
    return std::any_of(table.begin(), table.end(), [](std::uint16_t offset) { return offset != 0; });
  };
  if (placement.fourth != 0 || placement.fifth != 0) return geometry::kMaxRank;
  if (placement.slots() == 1) return with_rank5 ? geometry::kMaxRank : 3;
  if (any(placement.plane)) return 3;
  return any(placement.row) ? 2 : 1;
}

bool has_rank5(const store::Store& store) { return (store.features_incompat() & MDFS_INCOMPAT_RANK5) != 0; }

}  // namespace

void Placements::members_changed() {
  const std::lock_guard lock(mutex_);
  cache_.clear();
  general_.clear();
  bases_until_look_ = 0;
}

Result<std::shared_ptr<const geometry::Placement>> Placements::get(std::uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = cache_.find(id);
    if (found != cache_.end()) return found->second;
  }
  const std::string name = "placement " + std::to_string(id);
  MDFS_TRY_ASSIGN(const std::optional<ByteVector> value, store_.get(placement_key(id)));
  if (!value) return Error{Errc::kCorrupt, name + " is missing"};
  auto placement = format::decode_placement(*value);
  if (!placement.ok()) return Error{placement.error().code, name + ": " + placement.error().where};
  MDFS_TRY(geometry::check(*placement, store_.disk_count()));
  auto shared = std::make_shared<const geometry::Placement>(std::move(*placement));
  const std::lock_guard lock(mutex_);
  if (cache_.size() >= kMaxCached) cache_.clear();
  cache_[id] = shared;
  return shared;
}

Result<std::uint64_t> Placements::find_or_make(store::Transaction& transaction, const geometry::Placement& placement) {
  constexpr std::size_t kAtOnce = 64;
  const ByteVector wanted = format::encode(placement);
  for (std::uint64_t next = 0;;) {
    MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                    transaction.scan(placement_key(next), placement_key(UINT64_MAX), kAtOnce));
    for (const store::Item& item : items)
      if (item.value == wanted) return item.key.offset;
    if (items.size() < kAtOnce || items.back().key.offset == UINT64_MAX) break;
    next = items.back().key.offset + 1;
  }
  const std::uint64_t id = transaction.new_object();
  transaction.put(placement_key(id), wanted);
  return id;
}

// New tables are made before the transaction, since finding the best ones takes a while.
Status Placements::change_all(const std::function<geometry::Placement(const geometry::Placement&)>& change) {
  constexpr std::size_t kAtOnce = 64;
  std::map<std::uint64_t, std::pair<ByteVector, ByteVector>> changes;  // what was there, what comes
  for (std::uint64_t next = 0;;) {
    MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                    store_.scan(placement_key(next), placement_key(UINT64_MAX), kAtOnce));
    for (const store::Item& item : items) {
      MDFS_TRY_ASSIGN(const geometry::Placement placement, format::decode_placement(item.value));
      const geometry::Placement changed = change(placement);
      if (changed != placement) changes[item.key.offset] = {item.value, format::encode(changed)};
    }
    if (items.size() < kAtOnce || items.back().key.offset == UINT64_MAX) break;
    next = items.back().key.offset + 1;
  }
  const Status done = store_.transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
    for (const auto& [id, values] : changes) {
      MDFS_TRY_ASSIGN(const auto now, transaction.get(placement_key(id)));
      if (now && *now == values.first) transaction.put(placement_key(id), values.second);
    }
    return {};
  });
  members_changed();
  return done;
}

geometry::Placement Placements::anew(const geometry::Placement& placement, const std::vector<std::uint16_t>& disks) {
  return general(rank_of(placement, has_rank5(store_)), disks);
}

geometry::Placement Placements::grown(const geometry::Placement& placement, const std::vector<std::uint16_t>& disks,
                                      std::uint64_t taking) {
  const Growth growth{placement, disks, taking};
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(grown_.begin(), grown_.end(), [&](const auto& made) { return made.first == growth; });
    if (found != grown_.end()) return found->second;
  }
  geometry::Placement made = geometry::grown_placement(placement, rank_of(placement, has_rank5(store_)), disks, taking);
  const std::lock_guard lock(mutex_);
  if (grown_.size() >= kMaxGrown) grown_.clear();
  grown_.emplace_back(growth, made);
  return made;
}

geometry::Placement Placements::without_disk(const geometry::Placement& placement, std::uint16_t disk) {
  const std::set<std::uint16_t> named(placement.slot.begin(), placement.slot.end());
  if (!named.contains(disk)) return placement;
  std::vector<std::uint16_t> disks = weighted_disks();
  std::set<std::uint16_t> chosen;
  for (const std::uint16_t other : disks)
    if (named.contains(other)) chosen.insert(other);
  for (const std::uint16_t other : disks)
    if (chosen.size() < named.size()) chosen.insert(other);
  std::erase_if(disks, [&](std::uint16_t other) { return !chosen.contains(other); });
  return anew(placement, disks);
}

geometry::Placement Placements::with_disks(const geometry::Placement& placement, std::uint64_t joining) {
  std::vector<std::uint16_t> slots = placement.slot;
  std::vector<std::uint16_t> disks = weighted_disks();
  for (const std::uint16_t disk : disks) {
    const bool is_named = std::find(slots.begin(), slots.end(), disk) != slots.end();
    if (!is_named && ((joining >> disk) & 1) == 0) return placement;  // it was never meant for all
  }
  // The same disks, each in as many slots?
  std::vector<std::uint16_t> wanted = disks;
  std::sort(slots.begin(), slots.end());
  std::sort(wanted.begin(), wanted.end());
  return slots == wanted ? placement : grown(placement, disks, joining);
}

Status Placements::replace_disk(std::uint16_t disk, std::optional<unsigned> target) {
  return change_all([&](const geometry::Placement& placement) {
    if (!target) return without_disk(placement, disk);
    geometry::Placement changed = placement;
    std::replace(changed.slot.begin(), changed.slot.end(), disk, static_cast<std::uint16_t>(*target));
    changed.disks = static_cast<unsigned>(std::set<std::uint16_t>(changed.slot.begin(), changed.slot.end()).size());
    return changed;
  });
}

Status Placements::include_disks(std::uint64_t joining) {
  return change_all([&](const geometry::Placement& placement) { return with_disks(placement, joining); });
}

std::vector<std::uint16_t> Placements::weighted_disks() const {
  std::vector<unsigned> weights;
  for (unsigned disk = 0; disk < store_.disk_count(); ++disk) {
    const store::DiskInfo info = store_.disk_info(disk);
    weights.push_back(takes_extents(info) ? std::max<unsigned>(1, info.weight) : 0);
  }
  unsigned divisor = 0;
  for (const unsigned weight : weights) divisor = std::gcd(divisor, weight);
  for (unsigned& weight : weights) weight /= divisor;
  const unsigned total = std::accumulate(weights.begin(), weights.end(), 0u);
  if (total > kMaxSlots)
    for (unsigned& weight : weights) weight = weight == 0 ? 0 : std::max(1u, weight * kMaxSlots / total);
  auto disks = geometry::weighted_disk_list(weights);
  MDFS_CHECK(disks.ok());
  return std::move(*disks);
}

geometry::Placement Placements::general(unsigned rank, const std::vector<std::uint16_t>& disks) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = general_.find({rank, disks}); found != general_.end()) return found->second;
  }
  geometry::Placement made = geometry::default_placement(rank, disks);
  const std::lock_guard lock(mutex_);
  if (general_.size() >= kMaxGeneral) general_.clear();
  general_.insert_or_assign({rank, disks}, made);
  return made;
}

geometry::Placement Placements::for_files() { return general(1, weighted_disks()); }

Result<geometry::Placement> Placements::for_image(const ImageOptions& options) {
  std::vector<std::uint16_t> there;
  for (unsigned disk = 0; disk < store_.disk_count(); ++disk)
    if (takes_extents(store_.disk_info(disk))) there.push_back(static_cast<std::uint16_t>(disk));
  const std::size_t all = there.size();
  std::vector<std::uint16_t> disks;
  if (options.disks) {
    if (*options.disks < 1 || *options.disks > all)
      return Error{Errc::kInvalidArgument,
                   "disks " + std::to_string(*options.disks) + ": 1.." + std::to_string(all) + " allowed"};
    std::uint64_t first = 0;
    if (*options.disks < all) {
      const std::lock_guard lock(mutex_);
      first = subset_rotor_++;
    }
    for (unsigned i = 0; i < *options.disks; ++i) disks.push_back(there[(first + i) % all]);
  } else {
    disks = weighted_disks();
  }
  const geometry::Coord grid = options.geometry.grid();
  const std::uint64_t extents = geometry::extent_count(options.geometry.rank, grid);
  const bool is_small = extents > 0 && extents <= 2 * disks.size();
  geometry::Placement placement = is_small ? geometry::default_placement(options.geometry.rank, disks, grid)
                                           : general(options.geometry.rank, disks);
  MDFS_TRY(check_offset("row offset", options.row_offset, placement.slots()));
  MDFS_TRY(check_offset("plane offset", options.plane_offset, placement.slots()));
  const geometry::Placement offsets =
      geometry::offset_placement(disks, options.row_offset.value_or(0), options.plane_offset.value_or(0));
  if (options.row_offset) placement.row = offsets.row;
  if (options.plane_offset) placement.plane = offsets.plane;
  return placement;
}

// The mutex is held. A disk is left out while it has a sixteenth less free than the emptiest.
void Placements::look_at_loads() {
  std::vector<double> free;
  for (unsigned disk = 0; disk < store_.disk_count(); ++disk) {
    const store::DiskInfo info = store_.disk_info(disk);
    const bool usable = info.state == store::DiskState::kHealthy && info.blocks > 0;
    free.push_back(usable ? static_cast<double>(info.free_blocks) / static_cast<double>(info.blocks) : -1.0);
  }
  const double most = *std::max_element(free.begin(), free.end());
  loaded_.clear();
  for (const double part : free) loaded_.push_back(part < most - 1.0 / 16);
}

std::uint64_t Placements::next_base(const geometry::Placement& placement) {
  const std::lock_guard lock(mutex_);
  if (bases_until_look_ == 0) {
    look_at_loads();
    bases_until_look_ = kBasesBetweenLooks;
  }
  --bases_until_look_;
  const unsigned slots = placement.slots();
  for (unsigned turn = 0; turn < slots; ++turn) {
    const std::uint64_t base = rotor_++ % slots;
    const std::uint16_t disk = placement.slot[base];
    if (disk >= loaded_.size() || !loaded_[disk]) return base;
  }
  return rotor_++ % slots;
}

}  // namespace mdfs::volume
