// Placements: the formula, the tables for equal disks, and small images.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.h"
#include "geometry/placement_score.h"
#include "geometry/placement_tables.h"

namespace mdfs::geometry {
namespace {

unsigned distinct(const std::vector<std::uint16_t>& disk_list) {
  return static_cast<unsigned>(std::set<std::uint16_t>(disk_list.begin(), disk_list.end()).size());
}

Status check_table(std::string_view what, const std::vector<std::uint16_t>& table, unsigned slots) {
  if (table.size() != slots)
    return Error{Errc::kCorrupt, fmt::format("placement: {} {} entries for {} slots", table.size(), what, slots)};
  for (const std::uint16_t entry : table)
    if (entry >= slots)
      return Error{Errc::kCorrupt, fmt::format("placement: {} entry {} is not below {}", what, entry, slots)};
  return {};
}

// The table of a small image: `head` rows chosen for it, and behind them the steps of the general table, so that an
// image that grows gets the general quality beyond its first size.
std::vector<std::uint16_t> continue_with(const std::vector<std::uint16_t>& head, std::uint64_t head_rows,
                                         const std::vector<std::uint16_t>& general) {
  const std::size_t slots = general.size();
  std::vector<std::uint16_t> table = head;
  for (std::size_t y = head_rows; y < slots; ++y)
    table[y] = static_cast<std::uint16_t>((general[y] + slots - general[head_rows - 1] + head[head_rows - 1]) % slots);
  return table;
}

// The offsets that serve the windows of exactly this grid best; nullopt if the general tables do no worse.
std::vector<std::uint16_t> best_rows(const GridScorer& scorer, unsigned slots,
                                     const std::vector<std::uint16_t>& general, bool planes,
                                     const std::vector<std::uint16_t>& rows) {
  const auto score = [&](const std::vector<std::uint16_t>& table) {
    return planes ? scorer.score(rows, table) : scorer.score(table, multiples(slots, 0));
  };
  std::vector<std::uint16_t> best = general;
  GridScore best_score = score(best);
  for (unsigned offset = 0; offset < slots; ++offset) {
    auto candidate = multiples(slots, offset);
    if (const GridScore candidate_score = score(candidate); candidate_score < best_score) {
      best = std::move(candidate);
      best_score = candidate_score;
    }
  }
  return best;
}

// On unequal disks a table made for equal slots need not be the best: all offsets are tried.
std::vector<std::uint16_t> best_weighted_rows(const std::vector<std::uint16_t>& slot) {
  const auto slots = static_cast<unsigned>(slot.size());
  std::vector<std::uint16_t> best = table_2d(slots);
  double best_score = weighted_typical_2d(best, slot);
  for (unsigned offset = 1; offset < slots; ++offset) {
    if (std::gcd(offset, slots) != 1) continue;
    auto candidate = multiples(slots, offset);
    if (const double score = weighted_typical_2d(candidate, slot); score < best_score) {
      best = std::move(candidate);
      best_score = score;
    }
  }
  return best;
}

// The offsets that put no two extents of so many blocks of `volume` neighbouring slots on one slot: the given ones if
// they do that, else others coprime with the slots if there are any, since the image may grow.
SlowOffsets apart(unsigned slots, std::uint64_t volume, std::uint64_t blocks, std::uint64_t outer, SlowOffsets given) {
  const auto fits = [&](SlowOffsets offsets) {
    std::vector<bool> used(slots, false);
    for (std::uint64_t w = 0; w < outer; ++w)
      for (std::uint64_t v = 0; v < blocks; ++v)
        for (std::uint64_t i = 0; i < volume; ++i) {
          const std::uint64_t slot = (i + v * offsets.fourth + w * offsets.fifth) % slots;
          if (used[slot]) return false;
          used[slot] = true;
        }
    return true;
  };
  if (fits(given)) return given;
  for (const bool coprime : {true, false}) {
    const auto allowed = [&](unsigned offset) { return !coprime || std::gcd(offset, slots) == 1; };
    for (unsigned fourth = 0; fourth < slots; ++fourth)
      for (unsigned fifth = 0; fifth < slots; ++fifth)
        if (allowed(fourth) && allowed(fifth) && fits({fourth, fifth})) return {fourth, fifth};
  }
  return given;
}

void fit_small_grid(Placement& placement, unsigned rank, const Coord& grid, std::uint64_t extents) {
  const unsigned slots = placement.slots();
  const std::uint64_t columns = grid[rank - 1];
  const std::uint64_t rows = grid[rank - 2];
  const std::uint64_t planes = rank >= 3 ? grid[rank - 3] : 1;
  std::vector<std::uint16_t> row, plane;
  if (extents <= slots) {  // every extent gets a slot of its own
    row = multiples(slots, columns);
    plane = multiples(slots, columns * rows);
    if (rank > 3) {
      const std::uint64_t blocks = grid[rank - 4], outer = rank > 4 ? grid[rank - 5] : 1;
      const std::uint64_t volume = columns * rows * planes;
      const SlowOffsets offsets = apart(slots, volume, blocks, outer, {placement.fourth, placement.fifth});
      placement.fourth = static_cast<std::uint16_t>(offsets.fourth);
      placement.fifth = static_cast<std::uint16_t>(offsets.fifth);
    }
  } else {
    row = best_rows(GridScorer({1, rows, columns}), slots, placement.row, false, {});
    plane = best_rows(GridScorer({planes, rows, columns}), slots, placement.plane, true, row);
  }
  if (rows <= slots) placement.row = continue_with(row, rows, placement.row);
  if (rank >= 3 && planes <= slots) placement.plane = continue_with(plane, planes, placement.plane);
}

}  // namespace

Status check(const Placement& placement, unsigned volume_disks) {
  const unsigned slots = placement.slots();
  if (slots < 1 || slots > kMaxSlots)
    return Error{Errc::kCorrupt, fmt::format("placement: {} slots: must be 1..{}", slots, kMaxSlots)};
  MDFS_TRY(check_table("row", placement.row, slots));
  MDFS_TRY(check_table("plane", placement.plane, slots));
  for (const std::uint16_t offset : {placement.fourth, placement.fifth})
    if (offset >= slots)
      return Error{Errc::kCorrupt, fmt::format("placement: offset {} is not below {}", offset, slots)};
  for (const std::uint16_t disk : placement.slot)
    if (disk >= volume_disks)
      return Error{Errc::kCorrupt, fmt::format("placement: disk {} of a volume of {}", disk, volume_disks)};
  if (placement.disks != distinct(placement.slot))
    return Error{Errc::kCorrupt,
                 fmt::format("placement: {} disks named, {} in its slots", placement.disks, distinct(placement.slot))};
  return {};
}

unsigned slot_of(const Placement& placement, unsigned rank, std::uint64_t base, const Coord& extent) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank && !placement.slot.empty());
  const std::uint64_t slots = placement.slot.size();
  std::uint64_t sum = base % slots + extent[rank - 1] % slots;
  if (rank >= 2) sum += placement.row[extent[rank - 2] % slots];
  if (rank >= 3) sum += placement.plane[extent[rank - 3] % slots];
  if (rank >= 4) sum += extent[rank - 4] % slots * placement.fourth;
  if (rank >= 5) sum += extent[rank - 5] % slots * placement.fifth;
  return static_cast<unsigned>(sum % slots);
}

unsigned disk_of(const Placement& placement, unsigned rank, std::uint64_t base, const Coord& extent) {
  return placement.slot[slot_of(placement, rank, base, extent)];
}

Placement default_placement(unsigned rank, const std::vector<std::uint16_t>& disk_list,
                            const std::optional<Coord>& grid) {
  MDFS_CHECK(rank >= 1 && rank <= kMaxRank && !disk_list.empty() && disk_list.size() <= kMaxSlots);
  Placement placement;
  placement.slot = disk_list;
  placement.disks = distinct(disk_list);
  const unsigned slots = placement.slots();
  placement.row = multiples(slots, 0);
  placement.plane = multiples(slots, 0);
  if (rank == 2) {
    const bool weighted = placement.disks < slots && slots <= kLargestTable;
    placement.row = weighted ? best_weighted_rows(disk_list) : table_2d(slots);
  }
  if (rank >= 3) {
    PlacementTables tables = tables_3d(slots);
    placement.row = std::move(tables.row);
    placement.plane = std::move(tables.plane);
  }
  if (rank > 3) {
    const SlowOffsets offsets = slow_offsets(slots);
    placement.fourth = static_cast<std::uint16_t>(offsets.fourth);
    placement.fifth = static_cast<std::uint16_t>(offsets.fifth);
  }
  if (rank >= 2 && grid && slots <= kLargestTable)
    if (const std::uint64_t extents = extent_count(rank, *grid); extents > 0) {
      // Slots of unequal disks come in turn by weight: a slot for each extent is right for them, too.
      const std::uint64_t most = placement.disks == slots ? 2 * std::uint64_t{slots} - 1 : slots;
      if (extents <= most) fit_small_grid(placement, rank, *grid, extents);
    }
  return placement;
}

Result<std::vector<std::uint16_t>> weighted_disk_list(std::span<const unsigned> weights) {
  std::uint64_t sum = 0;
  for (const unsigned weight : weights) sum += weight;
  if (sum == 0 || sum > kMaxSlots || weights.size() > kMaxSlots)
    return Error{Errc::kInvalidArgument, fmt::format("weights of disks add up to {}: must be 1..{}", sum, kMaxSlots)};
  // A common factor adds slots but no balance.
  const unsigned factor =
      std::accumulate(weights.begin(), weights.end(), 0u, [](unsigned a, unsigned b) { return std::gcd(a, b); });
  sum /= factor;
  std::vector<std::uint16_t> list;
  std::vector<std::int64_t> credit(weights.size());
  while (list.size() < sum) {
    for (std::size_t disk = 0; disk < weights.size(); ++disk) credit[disk] += weights[disk] / factor;
    const auto richest = std::max_element(credit.begin(), credit.end());
    *richest -= static_cast<std::int64_t>(sum);
    list.push_back(static_cast<std::uint16_t>(richest - credit.begin()));
  }
  return list;
}

Placement offset_placement(const std::vector<std::uint16_t>& disk_list, unsigned row_offset, unsigned plane_offset) {
  MDFS_CHECK(!disk_list.empty() && disk_list.size() <= kMaxSlots);
  Placement placement;
  placement.slot = disk_list;
  placement.disks = distinct(disk_list);
  placement.row = multiples(placement.slots(), row_offset);
  placement.plane = multiples(placement.slots(), plane_offset);
  return placement;
}

}  // namespace mdfs::geometry
