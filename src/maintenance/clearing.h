// Making contiguous room on disks that are nearly full: what lies in a range moves to other holes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "maintenance/operation.h"

namespace mdfs::maintenance {

// Block ranges of disks are frozen: new blocks avoid them (store::Store::freeze_range), then all files are looked at,
// and what lies in a range is moved: all that is contiguous there of one file into one hole, so that no window of it
// lies in more runs than before; only what waits itself to be relocated may come in up to kMostPieces. Where that
// cannot be had the range is thawed and its obstacle remembered. Of a file with more than kMostPlaces extents about the
// ranges so many are looked at together; a piece may be cut between two such parts. What is known here is forgotten
// with the mount; at any moment the volume is whole. One thread.
class Clearing {
 public:
  explicit Clearing(MaintainedVolume& volume) : volume_(volume) {}
  ~Clearing() { thaw_all(); }
  Clearing(const Clearing&) = delete;
  Clearing& operator=(const Clearing&) = delete;

  // Freezes a range of so many blocks; none if there is no more of them for now.
  Result<std::optional<store::Run>> freeze(unsigned disk, std::uint32_t blocks);
  // What one file has on a disk, contiguous.
  struct Piece {
    Ino ino = 0;
    std::vector<geometry::Coord> units;
    store::Run run;
    store::Run range;  // that it lies in
  };
  using Units = std::map<Ino, std::set<geometry::Coord>>;

  // Before the first of the steps that clear what has been closed. What lies there of `waiting`, which are to be laid
  // anew themselves, may come in several pieces.
  void begin(Units waiting);
  // Pieces that found no hole as large as they are, and did not wait: each of them once.
  std::vector<Piece> take_too_large() {
    too_large_units_ = 0;
    return std::exchange(too_large_, {});
  }
  // Some of the work. True when all is done and what was moved has left its blocks for good.
  Result<bool> step(OperationRun& run);
  // Still frozen: everything that was found in it has moved.
  bool is_frozen(const store::Run& range) const;
  void thaw(const store::Run& range);
  void thaw_all();
  // What no range is to overlap from now on.
  void keep(const store::Run& run) { kept_.push_back(run); }
  // Obstacles that were met may have room by now; false if none were met.
  bool forget_obstacles() { return !std::exchange(obstacles_, {}).empty(); }
  void forget();
  // Moved out of the way since this was asked before.
  std::uint64_t take_moved_bytes() { return std::exchange(moved_bytes_, 0); }

 private:
  static constexpr std::uint64_t kMostBlocks = 4096;  // that are moved to keep a piece whole
  static constexpr std::uint32_t kMostPieces = 8;
  static constexpr std::int64_t kLookNs = 20'000'000;  // of a step
  static constexpr std::size_t kMostPlaces = 1u << 14;
  static constexpr std::size_t kMostTooLarge =
      1u << 16;  // units of pieces without a hole; the others wait for another round

  bool waits(const Piece& piece) const;
  // Blocks whose extents may be part of a piece that lies in a range.
  struct Range {
    unsigned disk = 0;
    std::uint64_t begin = 0, end = 0;
    auto operator<=>(const Range&) const = default;
  };
  void find_ranges();
  bool is_near(const layout::ExtentPlace& place, std::uint64_t blocks) const;
  Status next_file();
  void look_at_some();
  void cut(std::vector<layout::ExtentPlace> places);
  Status move(OperationRun& run);
  Status commit();

  MaintainedVolume& volume_;
  std::vector<store::Run> frozen_;
  std::vector<store::Run> kept_;
  std::vector<store::Run> obstacles_;  // what found no room
  std::vector<Range> ranges_;          // of this round; ascending, disjoint
  Ino next_ = 0;
  std::deque<Ino> files_;  // to be looked at; the first one from at_ on
  engine::LayoutCursor at_;
  bool listed_ = false;  // files_ are the last ones
  std::deque<Piece> pieces_;
  Units waiting_;
  std::vector<Piece> too_large_;
  std::size_t too_large_units_ = 0;
  std::set<std::pair<Ino, geometry::Coord>> told_;  // by their first unit
  std::uint64_t moved_bytes_ = 0;
  bool uncommitted_ = false;  // something has moved, whose blocks are in use for two more commits
};

}  // namespace mdfs::maintenance
