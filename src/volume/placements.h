// The placements of a volume: found, shared, made; and where each new object's rotation starts.
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
  // `seed` is where the rotor starts, so that volumes mounted often do not favour their first disk.
  Placements(store::Store& store, std::uint64_t seed) : store_(store), rotor_(seed), subset_rotor_(seed) {}

  Result<std::shared_ptr<const geometry::Placement>> get(std::uint64_t id);
  // The id of an equal placement; if there is none, it is made in this transaction.
  Result<std::uint64_t> find_or_make(store::Transaction& transaction, const geometry::Placement& placement);

  // Disks have come or gone, or weigh something else.
  void members_changed();

  // Placements name this disk no more, but `target`, in its slots; or they are made anew for the other disks, as many
  // as before if there are so many. What lies where is not changed by that.
  Status replace_disk(std::uint16_t disk, std::optional<unsigned> target);
  // Placements that name all disks that take extents, but for some of `joining` (bits), are made anew for all of them
  // by their weights of now, if they are not so already.
  Status include_disks(std::uint64_t joining);
  // What include_disks() makes of a placement.
  geometry::Placement with_disks(const geometry::Placement& placement, std::uint64_t joining);

  // Ordinary files: all disks.
  geometry::Placement for_files();
  // What the options ask for; kInvalidArgument names the option and its range.
  Result<geometry::Placement> for_image(const ImageOptions& options);
  // A rotor over the slots of the least loaded disks.
  std::uint64_t next_base(const geometry::Placement& placement);

 private:
  std::vector<std::uint16_t> weighted_disks() const;
  // The general tables; finding the best offset for unequal disks takes a while.
  geometry::Placement general(unsigned rank, const std::vector<std::uint16_t>& disks);
  void look_at_loads();
  // Of the same kind, for these disks.
  geometry::Placement anew(const geometry::Placement& placement, const std::vector<std::uint16_t>& disks);
  // The same where some of them take their share of what lies by `placement`.
  geometry::Placement grown(const geometry::Placement& placement, const std::vector<std::uint16_t>& disks,
                            std::uint64_t taking);
  geometry::Placement without_disk(const geometry::Placement& placement, std::uint16_t disk);
  // Puts what `change` makes of each placement in its place.
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
  std::vector<bool> loaded_;  // by disk: clearly fuller than the emptiest
};

}  // namespace mdfs::volume
