// The placements of a volume.
// SPDX-License-Identifier: Apache-2.0
#include "volume/placements.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "format/geometry_item.h"
#include "volume/records.h"

namespace mdfs::volume {
namespace {

Status check_offset(const char* option, const std::optional<unsigned>& offset, unsigned slots) {
  if (!offset || *offset < slots) return {};
  return Error{Errc::kInvalidArgument,
               std::string(option) + " " + std::to_string(*offset) + ": 0.." + std::to_string(slots - 1) + " allowed"};
}

// Which of `others`, each there as often as it weighs, has the fewest slots of the placement for its weight. Among
// equals it is another one each turn.
std::uint16_t heir(const geometry::Placement& placement, const std::vector<std::uint16_t>& others, std::size_t turn) {
  const auto load = [&](std::uint16_t disk) {
    const auto slots = std::count(placement.slot.begin(), placement.slot.end(), disk);
    const auto weight = std::count(others.begin(), others.end(), disk);
    return static_cast<double>(slots + 1) / static_cast<double>(weight);
  };
  std::uint16_t best = others[turn % others.size()];
  for (const std::uint16_t disk : others)
    if (load(disk) < load(best)) best = disk;
  return best;
}

// New extents may be placed there; one that is missing may be back tomorrow.
bool takes_extents(const store::DiskInfo& disk) {
  return disk.state != store::DiskState::kNone && disk.state != store::DiskState::kLeaving;
}

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
    if (items.size() < kAtOnce) break;
    next = items.back().key.offset + 1;
  }
  const std::uint64_t id = transaction.new_object();
  transaction.put(placement_key(id), wanted);
  return id;
}

Status Placements::replace_disk(std::uint16_t disk, std::optional<unsigned> target) {
  constexpr std::size_t kAtOnce = 64;
  std::vector<std::uint16_t> others = weighted_disks();
  if (target) others = {static_cast<std::uint16_t>(*target)};
  const Status replaced = store_.transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
    std::size_t turn = 0;
    for (std::uint64_t next = 0;;) {
      MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                      transaction.scan(placement_key(next), placement_key(UINT64_MAX), kAtOnce));
      for (const store::Item& item : items) {
        MDFS_TRY_ASSIGN(geometry::Placement placement, format::decode_placement(item.value));
        if (std::find(placement.slot.begin(), placement.slot.end(), disk) == placement.slot.end()) continue;
        for (std::uint16_t& slot : placement.slot)
          if (slot == disk) slot = heir(placement, others, turn++);
        placement.disks =
            static_cast<unsigned>(std::set<std::uint16_t>(placement.slot.begin(), placement.slot.end()).size());
        transaction.put(item.key, format::encode(placement));
      }
      if (items.size() < kAtOnce) return {};
      next = items.back().key.offset + 1;
    }
  });
  members_changed();
  return replaced;
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
  std::uint64_t extents = 1;
  for (unsigned axis = 0; axis < options.geometry.rank; ++axis)
    extents = grid[axis] > UINT32_MAX || extents > UINT32_MAX ? UINT64_MAX : extents * grid[axis];
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
