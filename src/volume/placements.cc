// The placements of a volume.
// SPDX-License-Identifier: Apache-2.0
#include "volume/placements.h"

#include <algorithm>
#include <numeric>

#include "format/geometry_item.h"
#include "volume/records.h"

namespace mdfs::volume {
namespace {

Status check_offset(const char* option, const std::optional<unsigned>& offset, unsigned slots) {
  if (!offset || *offset < slots) return {};
  return Error{Errc::kInvalidArgument,
               std::string(option) + " " + std::to_string(*offset) + ": 0.." + std::to_string(slots - 1) + " allowed"};
}

}  // namespace

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

std::vector<std::uint16_t> Placements::weighted_disks() const {
  std::vector<unsigned> weights;
  for (unsigned disk = 0; disk < store_.disk_count(); ++disk)
    weights.push_back(std::max<unsigned>(1, store_.disk_info(disk).weight));
  unsigned divisor = 0;
  for (const unsigned weight : weights) divisor = std::gcd(divisor, weight);
  for (unsigned& weight : weights) weight /= divisor;
  const unsigned total = std::accumulate(weights.begin(), weights.end(), 0u);
  if (total > kMaxSlots)
    for (unsigned& weight : weights) weight = std::max(1u, weight * kMaxSlots / total);
  auto disks = geometry::weighted_disk_list(weights);
  MDFS_CHECK(disks.ok());
  return std::move(*disks);
}

geometry::Placement Placements::for_files() const { return geometry::default_placement(1, weighted_disks()); }

Result<geometry::Placement> Placements::for_image(const ImageOptions& options) {
  const unsigned all = store_.disk_count();
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
    for (unsigned i = 0; i < *options.disks; ++i) disks.push_back(static_cast<std::uint16_t>((first + i) % all));
  } else {
    disks = weighted_disks();
  }
  const geometry::Coord grid = options.geometry.grid();
  std::uint64_t extents = 1;
  for (unsigned axis = 0; axis < options.geometry.rank; ++axis)
    extents = grid[axis] > UINT32_MAX || extents > UINT32_MAX ? UINT64_MAX : extents * grid[axis];
  const bool is_small = extents > 0 && extents <= 2 * disks.size();
  geometry::Placement placement =
      geometry::default_placement(options.geometry.rank, disks, is_small ? std::optional(grid) : std::nullopt);
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
    if (!loaded_[placement.slot[base]]) return base;
  }
  return rotor_++ % slots;
}

}  // namespace mdfs::volume
