// Making contiguous room: the block ranges, and what is in the way.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/clearing.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/checked.h"

namespace mdfs::maintenance {
namespace {

bool overlap(const store::Run& a, const store::Run& b) {
  return a.disk == b.disk && a.block < b.block + b.blocks && b.block < a.block + a.blocks;
}

}  // namespace

Result<std::optional<store::Run>> Clearing::freeze(unsigned disk, std::uint32_t blocks) {
  std::vector<store::Run> keep = kept_;
  keep.insert(keep.end(), obstacles_.begin(), obstacles_.end());
  Result<store::Run> range = space_.freeze_range(disk, blocks, keep);
  if (!range.ok() && range.error().code == Errc::kNoSpace) return std::optional<store::Run>();
  MDFS_TRY(range);
  frozen_.push_back(*range);
  return std::optional(*range);
}

// A piece that lies in a range reaches at most kMostBlocks beyond it.
void Clearing::begin(Extents waiting) {
  waiting_ = std::move(waiting);
  std::vector<Range> found;
  for (const store::Run& range : frozen_)
    found.push_back({range.disk, range.block - std::min<std::uint64_t>(range.block, kMostBlocks),
                     range.block + range.blocks + kMostBlocks});
  std::sort(found.begin(), found.end());
  ranges_.clear();
  for (const Range& range : found) {
    if (!ranges_.empty() && ranges_.back().disk == range.disk && range.begin <= ranges_.back().end)
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    else
      ranges_.push_back(range);
  }
}

std::uint32_t Clearing::blocks_of(const layout::ExtentPlace& place) const {
  return static_cast<std::uint32_t>(ceil_div(place.stored_bytes, space_.block_size()));
}

bool Clearing::is_near(const layout::ExtentPlace& place) const {
  const Range behind{place.disk, place.block + blocks_of(place), 0};
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), behind);
  return after != ranges_.begin() && std::prev(after)->disk == place.disk && std::prev(after)->end > place.block;
}

bool Clearing::waits(Ino object, const std::vector<geometry::Coord>& extents) const {
  const auto waiting = waiting_.find(object);
  return waiting != waiting_.end() && std::any_of(extents.begin(), extents.end(), [&](const geometry::Coord& extent) {
           return waiting->second.contains(extent);
         });
}

// Contiguous blocks of one object are one piece, as long as it is not so long that moving it costs more than cutting
// it.
std::vector<Candidate> Clearing::in_the_way(Ino object, std::vector<layout::ExtentPlace> places) const {
  std::sort(places.begin(), places.end(), [](const layout::ExtentPlace& a, const layout::ExtentPlace& b) {
    return std::tie(a.disk, a.block) < std::tie(b.disk, b.block);
  });
  std::vector<Candidate> pieces;
  for (std::size_t first = 0, last = 0; first < places.size(); first = last) {
    Candidate piece{.object = object, .reason = MoveReason::kInTheWay};
    piece.run = {static_cast<std::uint16_t>(places[first].disk), places[first].block, 0};
    for (; last < places.size() && places[last].disk == piece.run.disk &&
           places[last].block == piece.run.block + piece.run.blocks && piece.run.blocks < kMostBlocks;
         ++last) {
      piece.run.blocks += blocks_of(places[last]);
      piece.request.extents.push_back(places[last].index);
    }
    const auto range =
        std::find_if(frozen_.begin(), frozen_.end(), [&](const store::Run& one) { return overlap(one, piece.run); });
    if (range == frozen_.end()) continue;
    piece.range = *range;
    piece.bytes = std::uint64_t{piece.run.blocks} * space_.block_size();
    piece.request.most_runs = waits(object, piece.request.extents) ? kMostPieces : 1;
    piece.request.disk = [disk = piece.run.disk](const geometry::Coord&) { return disk; };
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

bool Clearing::is_frozen(const store::Run& range) const {
  return std::find(frozen_.begin(), frozen_.end(), range) != frozen_.end();
}

void Clearing::thaw(const store::Run& range) {
  if (std::erase(frozen_, range) > 0) space_.thaw_range(range);
}

void Clearing::thaw_all() {
  while (!frozen_.empty()) thaw(store::Run(frozen_.back()));
}

bool Clearing::forget_obstacles() { return !std::exchange(obstacles_, {}).empty(); }

void Clearing::forget() {
  thaw_all();
  kept_.clear();
  obstacles_.clear();
  begin({});
}

}  // namespace mdfs::maintenance
