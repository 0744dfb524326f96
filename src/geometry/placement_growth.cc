// Growth: candidates for the new tables, and the windows that choose among them.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/placement_growth.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/check.h"
#include "geometry/placement_score.h"
#include "geometry/placement_tables.h"

namespace mdfs::geometry {
namespace {

constexpr std::size_t kMostTables = 16;    // candidates that are tried with every order of slots
constexpr unsigned kPositions = 16;        // of each window's shape in one and two dimensions
constexpr unsigned kPositions3d = 3;       // in three there are more shapes
constexpr unsigned kTypicalLength1d = 64;  // extents

bool takes(std::uint64_t taking, std::uint16_t disk) { return disk < 64 && ((taking >> disk) & 1) != 0; }

std::size_t number_of_disks(const std::vector<std::uint16_t>& disk_list) {
  return *std::max_element(disk_list.begin(), disk_list.end()) + std::size_t{1};
}

bool is_equal(const std::vector<std::uint16_t>& disk_list) {
  return std::set<std::uint16_t>(disk_list.begin(), disk_list.end()).size() == disk_list.size();
}

struct SampledWindow {
  std::array<std::uint64_t, 3> origin{}, size{};  // planes, rows, columns
};

// Shapes are (planes, rows, columns).
std::vector<std::array<std::uint64_t, 3>> typical_shapes(unsigned rank) {
  std::vector<std::array<std::uint64_t, 3>> shapes;
  if (rank == 1)
    for (std::uint64_t length = 2; length <= kTypicalLength1d; ++length) shapes.push_back({1, 1, length});
  if (rank == 2)
    for (std::uint64_t height = 2; height <= kTypicalSide2d; ++height)
      for (std::uint64_t width = 2; width <= kTypicalSide2d; ++width)
        if (std::max(height, width) <= kTypicalAspect * std::min(height, width)) shapes.push_back({1, height, width});
  if (rank == 3)
    for (std::uint64_t depth = 1; depth <= kTypicalSide3d; ++depth)
      for (std::uint64_t height = 1; height <= kTypicalSide3d; ++height)
        for (std::uint64_t width = 1; width <= kTypicalSide3d; ++width) {
          std::array<std::uint64_t, 3> sides{depth, height, width};
          std::sort(sides.begin(), sides.end());
          const std::uint64_t shortest = sides[0] > 1 ? sides[0] : sides[1];  // of a slice: of its plane
          if (shortest > 1 && sides[2] <= kTypicalAspect * shortest) shapes.push_back({depth, height, width});
        }
  return shapes;
}

// The same positions for all candidates. Multiples of irrational steps fill the period evenly, a step for each axis.
std::vector<SampledWindow> sample_windows(unsigned rank, std::uint64_t period) {
  constexpr std::array<double, 3> kSteps = {kRowFraction, kPlaneFraction3d, kRowFraction3d};
  std::vector<SampledWindow> windows;
  for (const auto& shape : typical_shapes(rank))
    for (unsigned i = 0; i < (rank == 3 ? kPositions3d : kPositions); ++i) {
      SampledWindow window{{}, shape};
      for (unsigned axis = 3 - rank; axis < 3; ++axis) {
        const double turns = kSteps[axis] * static_cast<double>(windows.size());
        window.origin[axis] = static_cast<std::uint64_t>((turns - std::floor(turns)) * static_cast<double>(period));
      }
      windows.push_back(window);
    }
  return windows;
}

// The slots of a row of extents, one after the other.
class Walk {
 public:
  Walk(const Placement& placement, std::uint64_t plane, std::uint64_t row, std::uint64_t column)
      : slot_(placement.slot) {
    const std::uint64_t slots = slot_.size();
    at_ = (column + placement.row[row % slots] + placement.plane[plane % slots]) % slots;
  }
  std::uint16_t next() {
    const std::uint16_t disk = slot_[at_];
    if (++at_ == slot_.size()) at_ = 0;
    return disk;
  }

 private:
  const std::vector<std::uint16_t>& slot_;
  std::size_t at_;
};

// The score of one candidate after the other against the same windows.
class GrowthScorer {
 public:
  GrowthScorer(const Placement& before, const std::vector<std::uint16_t>& disk_list, std::uint64_t taking,
               unsigned rank)
      : before_(before),
        taking_(taking),
        windows_(sample_windows(rank, std::lcm<std::uint64_t>(before.slots(), disk_list.size()))),
        weight_(std::max(number_of_disks(before.slot), number_of_disks(disk_list))) {
    for (const std::uint16_t disk : disk_list) weight_[disk] += 1;
    // A disk that no slot names any more still holds what was not moved.
    for (const double weight : weight_) time_of_one_.push_back(weight > 0 ? 1 / weight : 1);
    std::size_t most = 0;
    for (const SampledWindow& window : windows_)
      most = std::max<std::size_t>(most, window.size[0] * window.size[1] * window.size[2]);
    best_ = best_times(weight_, most);
  }

  double score(const Placement& after) const {
    std::vector<double> time(weight_.size());
    double sum = 0;
    for (const SampledWindow& window : windows_) {
      std::fill(time.begin(), time.end(), 0);
      double busiest = 0;
      for (std::uint64_t z = 0; z < window.size[0]; ++z)
        for (std::uint64_t y = 0; y < window.size[1]; ++y) {
          Walk kept(before_, window.origin[0] + z, window.origin[1] + y, window.origin[2]);
          Walk grown(after, window.origin[0] + z, window.origin[1] + y, window.origin[2]);
          for (std::uint64_t x = 0; x < window.size[2]; ++x) {
            const std::uint16_t was = kept.next();
            const std::uint16_t is = grown.next();
            const std::uint16_t disk = takes(taking_, is) ? is : was;
            busiest = std::max(busiest, time[disk] += time_of_one_[disk]);
          }
        }
      sum += busiest / best_[window.size[0] * window.size[1] * window.size[2]];
    }
    return windows_.empty() ? 1 : sum / static_cast<double>(windows_.size());
  }

 private:
  const Placement& before_;
  std::uint64_t taking_;
  std::vector<SampledWindow> windows_;
  std::vector<double> weight_, time_of_one_, best_;  // by disk, by disk, by extents of a window
};

double fresh_score(unsigned rank, const Placement& placement) {
  if (rank == 1) return 1;
  if (rank == 3) return (typical_3d(placement.row, placement.plane) + slices_3d(placement.row, placement.plane)) / 2;
  return is_equal(placement.slot) ? typical_2d(placement.row) : weighted_typical_2d(placement.row, placement.slot);
}

// The general tables and all multiples, best first, if they serve fresh images no worse than `allowed`.
std::vector<Placement> tables_for(unsigned rank, const Placement& general, double allowed) {
  std::vector<std::pair<double, Placement>> scored;
  const auto consider = [&](Placement placement) {
    const double score = fresh_score(rank, placement);
    if (score <= allowed) scored.emplace_back(score, std::move(placement));
  };
  consider(general);
  const unsigned slots = general.slots();
  if (rank == 2 && slots <= kLargestTable)
    for (unsigned row = 1; row < slots; ++row) consider(offset_placement(general.slot, row, 0));
  if (rank == 3 && slots <= kLargestTable3d)
    for (unsigned row = 1; row < slots; ++row)
      for (unsigned plane = 1; plane < slots; ++plane) consider(offset_placement(general.slot, row, plane));
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (scored.size() > kMostTables) scored.resize(kMostTables);
  std::vector<Placement> tables;
  for (auto& [score, placement] : scored) tables.push_back(std::move(placement));
  return tables;
}

// The taking entries of the list every `step` slots from the end on, or in the next slot that is free; the others in
// their order.
std::vector<std::uint16_t> spread(const std::vector<std::uint16_t>& disk_list, std::uint64_t taking, std::size_t step) {
  const std::size_t slots = disk_list.size();
  std::vector<std::uint16_t> order(slots);
  std::vector<bool> is_taken(slots, false);
  std::size_t at = slots - 1;
  for (auto disk = disk_list.rbegin(); disk != disk_list.rend(); ++disk) {
    if (!takes(taking, *disk)) continue;
    while (is_taken[at]) at = (at + slots - 1) % slots;
    order[at] = *disk;
    is_taken[at] = true;
    at = (at + slots - step % slots) % slots;
  }
  at = 0;
  for (const std::uint16_t disk : disk_list) {
    if (takes(taking, disk)) continue;
    while (is_taken[at]) ++at;
    order[at++] = disk;
  }
  return order;
}

std::vector<std::vector<std::uint16_t>> orders_of(const std::vector<std::uint16_t>& disk_list, std::uint64_t taking) {
  const auto count = static_cast<std::size_t>(
      std::count_if(disk_list.begin(), disk_list.end(), [&](std::uint16_t disk) { return takes(taking, disk); }));
  std::vector<std::vector<std::uint16_t>> orders = {disk_list};
  if (count == 0 || count == disk_list.size()) return orders;
  if (is_equal(disk_list) && count > 1 && disk_list.size() <= kLargestTable) {
    for (std::size_t step = 2; step < disk_list.size(); ++step) orders.push_back(spread(disk_list, taking, step));
  } else if (count > 1) {
    orders.push_back(spread(disk_list, taking, disk_list.size() / count));
  }
  return orders;
}

// Of more axes the three fastest are searched; the slower ones shift their pattern.
unsigned searched(unsigned rank) { return std::min(rank, 3u); }

}  // namespace

unsigned disk_after_growth(const Placement& before, const Placement& after, std::uint64_t taking, unsigned rank,
                           std::uint64_t base, const Coord& extent) {
  const unsigned grown = disk_of(after, rank, base, extent);
  return takes(taking, static_cast<std::uint16_t>(grown)) ? grown : disk_of(before, rank, base, extent);
}

double growth_score(const Placement& before, const Placement& after, std::uint64_t taking, unsigned rank) {
  return GrowthScorer(before, after.slot, taking, searched(rank)).score(after);
}

Placement grown_placement(const Placement& before, unsigned rank, const std::vector<std::uint16_t>& disk_list,
                          std::uint64_t taking) {
  const Placement whole = default_placement(rank, disk_list);
  if (rank > searched(rank)) {
    Placement grown = grown_placement(before, searched(rank), disk_list, taking);
    grown.fourth = whole.fourth;
    grown.fifth = whole.fifth;
    return grown;
  }
  const GrowthScorer scorer(before, disk_list, taking, rank);
  const Placement& general = whole;
  const double allowed = fresh_score(rank, general) * kGrowthAllowance;
  std::vector<Placement> tables = tables_for(rank, general, allowed);
  Placement best = general;
  double best_score = scorer.score(best);
  for (const std::vector<std::uint16_t>& order : orders_of(disk_list, taking)) {
    // On unequal disks the order of slots decides which tables serve fresh images.
    if (!is_equal(disk_list)) tables = tables_for(rank, default_placement(rank, order), allowed);
    for (Placement& candidate : tables) {
      candidate.slot = order;
      if (const double score = scorer.score(candidate); score < best_score) {
        best = candidate;
        best_score = score;
      }
    }
  }
  return best;
}

}  // namespace mdfs::geometry
