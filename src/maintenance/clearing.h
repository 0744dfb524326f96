// Making contiguous room on disks that are nearly full: what lies in a block range is in the way, and moves elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "maintenance/relocation.h"

namespace mdfs::maintenance {

// Block ranges of disks are frozen: new blocks avoid them (store::Store::freeze_range). Then all objects are looked at,
// and what lies in a range is a candidate: all that is contiguous there of one object is to come into one hole, so that
// no window of it lies in more runs than before. What waits itself to be relocated may come in up to kMostPieces. Where
// that cannot be had the range is thawed, and its obstacle remembered. What is known here is forgotten with the mount;
// at any moment the volume is whole. One thread.
class Clearing {
 public:
  static constexpr std::size_t kMostPlaces = 1u << 14;  // of one object that are looked at together

  explicit Clearing(store::Store& store) : store_(store) {}
  ~Clearing() { thaw_all(); }
  Clearing(const Clearing&) = delete;
  Clearing& operator=(const Clearing&) = delete;

  // Freezes a range of so many blocks; none if there is no more of them for now.
  Result<std::optional<store::Run>> freeze(unsigned disk, std::uint32_t blocks);
  // Of these extents that are in the way the pieces may be cut.
  using Extents = std::map<Ino, std::set<geometry::Coord>>;
  // Before the first question about what lies in the ranges that are frozen now.
  void begin(Extents waiting);
  // May the extent be part of a piece that lies in a range?
  bool is_near(const layout::ExtentPlace& place) const;
  // The pieces of one object that lie in a range, among its extents near a range; a piece may be cut where the caller
  // has cut the list.
  std::vector<Candidate> in_the_way(Ino object, std::vector<layout::ExtentPlace> places) const;

  // Still frozen: everything that was found in it has moved.
  bool is_frozen(const store::Run& range) const;
  void thaw(const store::Run& range);
  // What no range is to overlap from now on; obstacles may have room later.
  void keep(const store::Run& run) { kept_.push_back(run); }
  void keep_for_now(const store::Run& obstacle) { obstacles_.push_back(obstacle); }
  // False if there are none.
  bool forget_obstacles();
  void forget();

 private:
  static constexpr std::uint64_t kMostBlocks = 4096;  // that are moved to keep a piece whole
  static constexpr std::uint32_t kMostPieces = 8;

  // Blocks whose extents may be part of a piece that lies in a range.
  struct Range {
    unsigned disk = 0;
    std::uint64_t begin = 0, end = 0;
    auto operator<=>(const Range&) const = default;
  };
  std::uint32_t blocks_of(const layout::ExtentPlace& place) const;
  bool waits(Ino object, const std::vector<geometry::Coord>& extents) const;
  void thaw_all();

  store::Store& store_;
  std::vector<store::Run> frozen_;
  std::vector<store::Run> kept_;
  std::vector<store::Run> obstacles_;  // what found no room
  std::vector<Range> ranges_;          // of this round; ascending, disjoint
  Extents waiting_;
};

}  // namespace mdfs::maintenance
