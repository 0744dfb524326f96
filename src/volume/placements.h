// The placements of a volume: finds, shares and makes them, and chooses the base of each new object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "geometry/placement.h"
#include "store/store.h"
#include "volume/volume.h"

namespace mdfs::volume {

// Any thread may call any method. The mutex is a leaf.
class Placements {
 public:
  // `seed` is the start of the rotor, so that volumes that are mounted often do not favour their first disk.
  Placements(store::Store& store, std::uint64_t seed) : store_(store), rotor_(seed), subset_rotor_(seed) {}

  Result<std::shared_ptr<const geometry::Placement>> get(std::uint64_t id);
  // The id of an equal placement. Without one, this transaction makes it.
  Result<std::uint64_t> find_or_make(store::Transaction& transaction, const geometry::Placement& placement);

  // Called after disks were added or removed, or weights changed.
  void members_changed();

  // Puts `target` into the slots of this disk in all placements. Without a target, makes the placements again for the
  // other disks, for as many as before if there are so many. Stored extents stay where they are.
  Status replace_disk(std::uint16_t disk, std::optional<unsigned> target);
  // Placements that name all disks, except some of `joining` (bits), are made again for all disks by their present
  // weights, unless they have these already.
  Status include_disks(std::uint64_t joining);
  // The placement that include_disks() makes from this one.
  geometry::Placement with_disks(const geometry::Placement& placement, std::uint64_t joining);

  // For ordinary files: all disks.
  geometry::Placement for_files();
  // The placement for these options. kInvalidArgument names the option and its range.
  Result<geometry::Placement> for_image(const ImageOptions& options);
  // The next value of a rotor over the slots of the least loaded disks.
  std::uint64_t next_base(const geometry::Placement& placement);

 private:
  std::vector<std::uint16_t> weighted_disks() const;
  // The general tables. The search for the best offset takes a while for unequal disks.
  geometry::Placement general(unsigned rank, const std::vector<std::uint16_t>& disks);
  void look_at_loads();
  // A placement of the same kind for these disks.
  geometry::Placement anew(const geometry::Placement& placement, const std::vector<std::uint16_t>& disks);
  // The same, where the disks `taking` (bits) take their share of extents stored by `placement`.
  geometry::Placement grown(const geometry::Placement& placement, const std::vector<std::uint16_t>& disks,
                            std::uint64_t taking);
  geometry::Placement without_disk(const geometry::Placement& placement, std::uint16_t disk);
  // Replaces each placement by the result of `change`.
  Status change_all(const std::function<geometry::Placement(const geometry::Placement&)>& change);

  static constexpr std::size_t kMaxCached = 1024;
  static constexpr std::size_t kMaxGeneral = 64;
  static constexpr std::size_t kMaxGrown = 64;
  static constexpr unsigned kMaxSlots = 256;  // scaled weights
  static constexpr std::uint64_t kBasesBetweenLooks = 256;

  store::Store& store_;
  std::mutex mutex_;  // guards all below
  std::unordered_map<std::uint64_t, std::shared_ptr<const geometry::Placement>> cache_;
  std::map<std::pair<unsigned, std::vector<std::uint16_t>>, geometry::Placement> general_;  // by rank and disks
  struct Growth {
    geometry::Placement before;
    std::vector<std::uint16_t> disks;
    std::uint64_t taking = 0;
    bool operator==(const Growth&) const = default;
  };
  std::vector<std::pair<Growth, geometry::Placement>> grown_;
  std::uint64_t rotor_;         // of bases
  std::uint64_t subset_rotor_;  // of the first disks of images that use a few
  std::uint64_t bases_until_look_ = 0;
  std::vector<bool> loaded_;  // by disk: clearly fuller than the emptiest one
};

}  // namespace mdfs::volume
