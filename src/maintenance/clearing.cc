// Making contiguous room, step by step.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/clearing.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "maintenance/moves.h"
#include "maintenance/objects.h"

namespace mdfs::maintenance {
namespace {

bool overlap(const store::Run& a, const store::Run& b) {
  return a.disk == b.disk && a.block < b.block + b.blocks && b.block < a.block + a.blocks;
}

bool same(const store::Run& a, const store::Run& b) { return a.disk == b.disk && a.block == b.block; }

}  // namespace

Result<std::optional<store::Run>> Clearing::freeze(unsigned disk, std::uint32_t blocks) {
  std::vector<store::Run> keep = kept_;
  keep.insert(keep.end(), obstacles_.begin(), obstacles_.end());
  Result<store::Run> range = volume_.store().freeze_range(disk, blocks, keep);
  if (!range.ok() && range.error().code == Errc::kNoSpace) return std::optional<store::Run>();
  MDFS_TRY(range);
  frozen_.push_back(*range);
  return std::optional(*range);
}

void Clearing::begin(Units waiting) {
  waiting_ = std::move(waiting);
  next_ = 0;
  files_.clear();
  at_ = {};
  listed_ = false;
  pieces_.clear();
  find_ranges();
}

// A piece that lies in a range reaches at most kMostBlocks beyond it.
void Clearing::find_ranges() {
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

bool Clearing::is_near(const layout::ExtentPlace& place, std::uint64_t blocks) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), Range{place.disk, place.block + blocks, 0});
  return after != ranges_.begin() && std::prev(after)->disk == place.disk && std::prev(after)->end > place.block;
}

bool Clearing::is_frozen(const store::Run& range) const {
  return std::any_of(frozen_.begin(), frozen_.end(), [&](const store::Run& one) { return same(one, range); });
}

void Clearing::thaw(const store::Run& range) {
  const std::size_t before = frozen_.size();
  std::erase_if(frozen_, [&](const store::Run& one) { return same(one, range); });
  if (frozen_.size() < before) volume_.store().thaw_range(range);
}

void Clearing::thaw_all() {
  while (!frozen_.empty()) thaw(store::Run(frozen_.back()));
}

void Clearing::forget() {
  thaw_all();
  kept_.clear();
  obstacles_.clear();
  take_too_large();
  told_.clear();
  begin({});
}

Result<bool> Clearing::step(OperationRun& run) {
  if (!pieces_.empty()) {
    MDFS_TRY(move(run));
    return false;
  }
  if (files_.empty() && listed_) {
    MDFS_TRY(commit());
    return true;
  }
  const std::int64_t until_ns = volume_.environment().monotonic_ns() + kLookNs;
  do {
    if (files_.empty())
      MDFS_TRY(next_file());
    else
      look_at_some();
  } while (pieces_.empty() && !(files_.empty() && listed_) && !run.stopping() &&
           volume_.environment().monotonic_ns() < until_ns);
  return false;
}

Status Clearing::next_file() {
  MDFS_TRY_ASSIGN(const auto files, volume::next_files(volume_.store(), next_));
  for (const volume::FileItem& file : files) files_.push_back(file.ino);
  at_ = {};
  listed_ = next_ == 0;
  return {};
}

// The first of the files: what is near a range, up to kMostPlaces. What is in strips is consolidated, not moved.
void Clearing::look_at_some() {
  std::vector<layout::ExtentPlace> places;
  bool at_end = false;
  while (!at_end && places.size() < kMostPlaces) {
    const auto found = layout_rows(volume_, files_.front(),
                                   {.from = at_, .most = kUnitsListedAtOnce, .of = engine::LayoutOf::kExtents});
    if (!found.ok()) {  // removed meanwhile, or damaged: then its range is not cleared
      at_end = true;
      places.clear();
      break;
    }
    for (const layout::ExtentPlace& place : found->rows)
      if (is_near(place, ceil_div(place.stored_bytes, volume_.store().block_size()))) places.push_back(place);
    at_ = found->next;
    at_end = found->at_end;
  }
  cut(std::move(places));
  if (!at_end) return;
  files_.pop_front();
  at_ = {};
}

// Contiguous blocks of one file are one piece, as long as it is not so long that moving it costs more than cutting it.
void Clearing::cut(std::vector<layout::ExtentPlace> places) {
  const Ino ino = files_.front();
  std::sort(places.begin(), places.end(), [](const layout::ExtentPlace& a, const layout::ExtentPlace& b) {
    return std::tie(a.disk, a.block) < std::tie(b.disk, b.block);
  });
  const std::uint32_t block_size = volume_.store().block_size();
  const auto blocks_of = [&](const layout::ExtentPlace& place) {
    return static_cast<std::uint32_t>(ceil_div(place.stored_bytes, block_size));
  };
  for (std::size_t first = 0, last = 0; first < places.size(); first = last) {
    Piece piece;
    piece.ino = ino;
    piece.run = {static_cast<std::uint16_t>(places[first].disk), places[first].block, 0};
    for (; last < places.size() && places[last].disk == piece.run.disk &&
           places[last].block == piece.run.block + piece.run.blocks && piece.run.blocks < kMostBlocks;
         ++last) {
      piece.run.blocks += blocks_of(places[last]);
      piece.units.push_back(places[last].index);
    }
    const auto range =
        std::find_if(frozen_.begin(), frozen_.end(), [&](const store::Run& one) { return overlap(one, piece.run); });
    if (range == frozen_.end()) continue;
    piece.range = *range;
    pieces_.push_back(std::move(piece));
  }
}

bool Clearing::waits(const Piece& piece) const {
  const auto units = waiting_.find(piece.ino);
  return units != waiting_.end() &&
         std::any_of(piece.units.begin(), piece.units.end(),
                     [&](const geometry::Coord& unit) { return units->second.contains(unit); });
}

Status Clearing::commit() {
  uncommitted_ = false;
  return volume_.store().commit_unlinked();
}

Status Clearing::move(OperationRun& run) {
  Piece& piece = pieces_.front();
  if (!is_frozen(piece.range)) {
    pieces_.pop_front();
    return {};
  }
  engine::MoveRequest request;
  request.units = piece.units;
  if (waits(piece)) request.most_runs = kMostPieces;
  request.disk = [disk = piece.run.disk](const geometry::Coord&) { return disk; };
  const auto outcome = move_for(run, volume_, piece.ino, std::move(request));
  if (outcome.ok() && !*outcome) return {};
  if (!outcome.ok() && !is_passed_over(outcome.error()) && outcome.error().code != Errc::kNoSpace)
    return outcome.error();
  // Who has been removed, or has written elsewhere meanwhile, is out of the way too; who is damaged stays.
  engine::MoveOutcome moved;
  if (outcome.ok()) moved = **outcome;
  const bool no_room = outcome.ok() ? moved.no_room > 0 : outcome.error().code == Errc::kNoSpace;
  if (no_room && uncommitted_) return commit();  // and then once more
  const bool damaged = outcome.ok() ? !moved.damaged.empty() : outcome.error().code == Errc::kCorrupt;
  if (no_room || damaged) {
    obstacles_.push_back(piece.run);
    if (no_room && !waits(piece) && too_large_units_ + piece.units.size() <= kMostTooLarge &&
        told_.emplace(piece.ino, piece.units.front()).second) {
      too_large_units_ += piece.units.size();
      too_large_.push_back(piece);
    }
    thaw(piece.range);
  }
  if (piece.run.disk < run.record.disks.size()) run.record.disks[piece.run.disk].written_bytes += moved.moved_bytes;
  moved_bytes_ += moved.moved_bytes;
  uncommitted_ = uncommitted_ || moved.moved > 0;
  pieces_.pop_front();
  return {};
}

}  // namespace mdfs::maintenance
