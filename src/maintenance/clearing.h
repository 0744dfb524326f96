// Makes contiguous space on nearly full disks: extents in a block range are in the way, and move elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "maintenance/relocation.h"

namespace mdfs::maintenance {

// Freezes block ranges of disks, so that new blocks avoid them (store::BlockSpace::freeze_range). The caller then walks
// over all objects. Extents of one object that are contiguous in a range form a piece, and move into one hole, so that
// no window lies in more runs than before. A piece of extents that wait for relocation themselves may be cut into up to
// kMostPieces. A range with a piece that finds no hole is thawed, and the piece is remembered as an obstacle. All state
// is forgotten with the mount, and the volume is consistent at any moment. One thread.
class Clearing {
 public:
  static constexpr std::size_t kMostPlaces = 1u << 14;  // of one object that are examined together

  explicit Clearing(store::BlockSpace& space) : space_(space) {}
  ~Clearing() { thaw_all(); }
  Clearing(const Clearing&) = delete;
  Clearing& operator=(const Clearing&) = delete;

  // Freezes a range of so many blocks; none if no further range is possible for now.
  Result<std::optional<store::Run>> freeze(unsigned disk, std::uint32_t blocks);
  // Extents in the way whose pieces may be cut.
  using Extents = std::map<Ino, std::set<geometry::Coord>>;
  // Called after ranges were frozen, before the first question about extents in them.
  void begin(Extents waiting);
  // True if the extent may be part of a piece in a range.
  bool is_near(const layout::ExtentPlace& place) const;
  // The pieces of one object in the ranges, among its extents near a range. A piece may end where the caller has cut
  // the list.
  std::vector<Candidate> in_the_way(Ino object, std::vector<layout::ExtentPlace> places) const;

  // True if the range is still frozen: all pieces found in it have moved.
  bool is_frozen(const store::Run& range) const;
  void thaw(const store::Run& range);
  // Runs that later ranges must not overlap. Obstacles are kept for now, and may find space later.
  void keep(const store::Run& run) { kept_.push_back(run); }
  void keep_for_now(const store::Run& obstacle) { obstacles_.push_back(obstacle); }
  // False if there are none.
  bool forget_obstacles();
  void forget();

 private:
  static constexpr std::uint64_t kMostBlocks = 4096;  // most blocks of a piece that moves whole
  static constexpr std::uint32_t kMostPieces = 8;

  // Blocks whose extents may be part of a piece in a range.
  struct Range {
    unsigned disk = 0;
    std::uint64_t begin = 0, end = 0;
    auto operator<=>(const Range&) const = default;
  };
  std::uint32_t blocks_of(const layout::ExtentPlace& place) const;
  bool waits(Ino object, const std::vector<geometry::Coord>& extents) const;
  void thaw_all();

  store::BlockSpace& space_;
  std::vector<store::Run> frozen_;
  std::vector<store::Run> kept_;
  std::vector<store::Run> obstacles_;  // pieces that found no space
  std::vector<Range> ranges_;          // of this round; ascending, disjoint
  Extents waiting_;
};

}  // namespace mdfs::maintenance
