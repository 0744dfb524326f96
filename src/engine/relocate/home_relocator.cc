// Returning: which extents, whether it is worth it, and the moves.
// SPDX-License-Identifier: Apache-2.0
#include "engine/relocate/home_relocator.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "engine/open_object.h"

namespace mdfs::engine {

// An extent whose old place is free.
struct HomeRelocator::Rewritten {
  Home home;
  geometry::Coord coord{};
  store::Run now;
  // As many blocks of the old place as it takes now.
  store::Run then() const { return {home.run.disk, home.run.block, now.blocks}; }
};

namespace {

bool touch(const std::optional<store::Run>& one, const std::optional<store::Run>& next) {
  return one && next && one->disk == next->disk && one->end() == next->block;
}

std::uint64_t grid_rows(const OpenObject& object) {
  return object.shape_for(object.size.load(std::memory_order_acquire)).grid()[0];
}

}  // namespace

// The extent before (-1) or behind it that is meant to lie on the disk, in the order of Groups.
std::optional<geometry::Coord> HomeRelocator::beside(const OpenObject& object, const geometry::Coord& extent,
                                                     unsigned disk, int step) const {
  constexpr std::uint64_t kRounds = 4;  // of a placement; some orders have no extent
  const std::uint64_t rows = grid_rows(object), end = object.groups.order_end(rows);
  std::uint64_t order = object.groups.order_of(extent);
  for (std::uint64_t i = 0; i < kRounds * std::max(1u, object.placement->disks); ++i) {
    if (step < 0 ? order == 0 : order + 1 >= end) return {};
    order += static_cast<std::uint64_t>(step);
    const std::optional<geometry::Coord> other = object.groups.extent_at(order, rows);
    if (other && object.placement_disk(*other) == disk) return other;
  }
  return {};
}

// Where all of it lies, in one run; nothing if it does not, or is not stored.
Result<std::optional<store::Run>> HomeRelocator::place_of(const OpenObject& object,
                                                          const std::optional<geometry::Coord>& extent) {
  std::optional<store::Run> place;
  if (!extent) return place;
  MDFS_TRY_ASSIGN(const MappedExtent stored, core_.extent_map.extent(object, *extent, false));
  if (stored.record.is_contiguous() && stored.parts.empty()) place = stored.record.first();
  return place;
}

Result<HomeRelocator::May> HomeRelocator::look_at(OpenObject& object, std::uint64_t committed, Rewritten& extent) {
  // Dirty bytes will be written to another place first.
  if (const CacheBlockPtr block = core_.cache.peek(object.key_of(extent.home.extent)); block != nullptr) {
    const std::lock_guard lock(block->mutex);
    if (block->dirty) return May::kLater;
  }
  extent.coord = object.extent_coord(extent.home.extent);
  if (extent.coord[0] >= grid_rows(object)) return May::kNot;
  if (object.placement_disk(extent.coord) != extent.home.run.disk) return May::kNot;  // disks have come or gone
  MDFS_TRY_ASSIGN(const std::optional<store::Run> now, place_of(object, extent.coord));
  if (!now || now->blocks > extent.home.run.blocks) return May::kNot;
  extent.now = *now;
  if (core_.store.is_free(extent.then())) return May::kReturn;
  return extent.home.is_free_soon(committed) ? May::kLater : May::kNot;
}

// As many as there is time for.
Result<std::vector<HomeRelocator::Chain>> HomeRelocator::find_chains(OpenObject& object, const Pace& pace) {
  std::vector<Rewritten> found;
  Status status;
  const std::uint64_t committed = core_.store.generation();
  bool is_over = false;
  for (const Home& home : core_.relocations.homes().take(object.number, committed, kMostExtents)) {
    Rewritten extent{home, {}, {}};
    is_over = is_over || (!found.empty() && pace && !pace(0).ok());
    const Result<May> may = status.ok() && !is_over ? look_at(object, committed, extent) : May::kLater;
    if (!may.ok()) status = may.error();
    if (!may.ok() || *may == May::kNot)
      core_.relocations.homes().release(home);
    else if (*may == May::kLater)
      core_.relocations.homes().put_back(object.number, home);
    else
      found.push_back(extent);
  }
  if (!status.ok()) {
    for (const Rewritten& extent : found) core_.relocations.homes().put_back(object.number, extent.home);
    return std::move(status).error();
  }
  std::sort(found.begin(), found.end(), [](const Rewritten& a, const Rewritten& b) {
    return std::tie(a.home.run.disk, a.home.order) < std::tie(b.home.run.disk, b.home.order);
  });
  std::vector<Chain> chains;
  std::optional<geometry::Coord> next;  // behind the last one
  for (const Rewritten& extent : found) {
    const unsigned disk = extent.home.run.disk;
    if (chains.empty() || chains.back().back().home.run.disk != disk || next != extent.coord) chains.emplace_back();
    chains.back().push_back(extent);
    next = beside(object, extent.coord, disk, 1);
  }
  return chains;
}

// Neighbours that touch each other, of the chain and at its ends, as it is and after a return.
Result<bool> HomeRelocator::is_worth_it(const OpenObject& object, const Chain& chain) {
  const unsigned disk = chain.front().home.run.disk;
  MDFS_TRY_ASSIGN(std::optional<store::Run> now, place_of(object, beside(object, chain.front().coord, disk, -1)));
  std::optional<store::Run> then = now;
  std::size_t touch_now = 0, touch_then = 0;
  for (const Rewritten& extent : chain) {
    touch_now += touch(now, extent.now) ? 1 : 0;
    touch_then += touch(then, extent.then()) ? 1 : 0;
    now = extent.now;
    then = extent.then();
  }
  MDFS_TRY_ASSIGN(const auto last, place_of(object, beside(object, chain.back().coord, disk, 1)));
  touch_now += touch(now, last) ? 1 : 0;
  touch_then += touch(then, last) ? 1 : 0;
  return touch_then > touch_now;
}

// From `done` on, as far as it gets: what is contiguous at a time. kNoSpace: the disks have too little room for moves.
Status HomeRelocator::move(OpenObject& object, const Chain& chain, const Pace& pace, RelocationOutcome& outcome,
                           std::size_t& done) {
  while (done < chain.size()) {
    MoveRequest request;
    store::Run target = chain[done].then();
    request.extents = {chain[done].coord};
    std::size_t end = done + 1;
    for (; end < chain.size() && touch(target, chain[end].then()) &&
           std::uint64_t{target.blocks} * object.block_size < kMostBytes;
         ++end) {
      target.blocks += chain[end].then().blocks;
      request.extents.push_back(chain[end].coord);
    }
    request.disk = [disk = target.disk](const geometry::Coord&) { return unsigned{disk}; };
    request.at_block = target.block;
    request.pace = pace;
    if (core_.store.space().available_blocks < target.blocks) return {Errc::kNoSpace, "for a move"};
    if (core_.store.is_free(target)) {  // not taken by others meanwhile
      MDFS_TRY_ASSIGN(const MoveOutcome moved, mover_.move(object, request));
      outcome.extents += moved.moved;
      outcome.bytes += moved.moved_bytes;
    }
    for (; done < end; ++done) core_.relocations.homes().release(chain[done].home);
  }
  return {};
}

Result<RelocationOutcome> HomeRelocator::run(OpenObject& object, const Pace& pace) {
  RelocationOutcome outcome;
  MDFS_TRY_ASSIGN(const std::vector<Chain> chains, find_chains(object, pace));
  Status status;
  for (const Chain& chain : chains) {
    std::size_t done = 0;
    if (status.ok() && outcome.extents > 0 && pace) status = pace(0);
    if (status.ok()) {
      const Result<bool> worth = is_worth_it(object, chain);
      if (!worth.ok())
        status = worth.error();
      else if (*worth)
        status = move(object, chain, pace, outcome, done);
    }
    const bool later = !status.ok() && status.error().code == Errc::kBusy;
    for (; done < chain.size(); ++done) {
      if (later)
        core_.relocations.homes().put_back(object.number, chain[done].home);
      else
        core_.relocations.homes().release(chain[done].home);
    }
  }
  if (!status.ok() && status.error().code != Errc::kBusy && status.error().code != Errc::kNoSpace)
    return std::move(status).error();
  return outcome;
}

}  // namespace mdfs::engine
