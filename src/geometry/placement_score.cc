// Counting extents on slots, window by window.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/placement_score.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::geometry {
namespace {

using Counts = std::vector<std::uint16_t>;

// With equal steps everywhere, round the end as well, moving a window only renames slots.
bool is_linear(OffsetTable table) {
  const std::size_t slots = table.size();
  for (std::size_t i = 1; i < slots; ++i)
    if (table[i] != table[1] * i % slots) return false;
  return table[0] == 0;
}

std::size_t positions(OffsetTable table) { return is_linear(table) ? 1 : table.size(); }

// Adds `columns` neighbouring extents from slot `first` on; returns the largest count seen.
unsigned add_row(Counts& counts, std::size_t first, std::size_t columns, unsigned busiest) {
  const std::size_t slots = counts.size();
  std::size_t slot = first % slots;
  for (std::size_t i = 0; i < columns; ++i) {
    busiest = std::max<unsigned>(busiest, ++counts[slot]);
    if (++slot == slots) slot = 0;
  }
  return busiest;
}

double ratio(unsigned busiest, std::uint64_t extents, std::size_t slots) {
  return static_cast<double>(busiest) / static_cast<double>(ceil_div(extents, slots));
}

bool is_typical(unsigned a, unsigned b) { return std::max(a, b) <= kTypicalAspect * std::min(a, b); }
bool is_typical(unsigned a, unsigned b, unsigned c) {
  return std::max({a, b, c}) <= kTypicalAspect * std::min({a, b, c});
}

struct Mean {
  double sum = 0;
  std::uint64_t count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return count == 0 ? 1 : sum / static_cast<double>(count); }
};

// Calls visit(extents, busiest) for every wanted box of up to 8 extents a side at every position.
template <typename Wanted, typename Visit>
void each_box(OffsetTable row, OffsetTable plane, Wanted wanted, Visit visit) {
  const std::size_t slots = row.size();
  Counts one_plane(slots), counts(slots);
  for (std::size_t y = 0; y < positions(row); ++y)
    for (unsigned width = 1; width <= kTypicalSide3d; ++width) {
      std::fill(one_plane.begin(), one_plane.end(), 0);
      for (unsigned height = 1; height <= kTypicalSide3d; ++height) {
        add_row(one_plane, row[(y + height - 1) % slots], width, 0);
        for (std::size_t z = 0; z < positions(plane); ++z) {
          std::fill(counts.begin(), counts.end(), 0);
          for (unsigned depth = 1; depth <= kTypicalSide3d; ++depth) {
            const std::size_t shift = plane[(z + depth - 1) % slots];
            for (std::size_t i = shift; i < slots; ++i)
              counts[i] = static_cast<std::uint16_t>(counts[i] + one_plane[i - shift]);
            for (std::size_t i = 0; i < shift; ++i)
              counts[i] = static_cast<std::uint16_t>(counts[i] + one_plane[slots - shift + i]);
            if (wanted(width, height, depth))
              visit(width * height * depth, *std::max_element(counts.begin(), counts.end()));
          }
        }
      }
    }
}

}  // namespace

std::vector<double> best_times(const std::vector<double>& weight, std::size_t extents) {
  std::vector<double> best(extents + 1, 0);
  std::vector<double> used(weight.size());
  for (std::size_t n = 1; n <= extents; ++n) {
    std::size_t first = 0;
    const auto finish = [&](std::size_t disk) { return (used[disk] + 1) / weight[disk]; };
    for (std::size_t disk = 1; disk < weight.size(); ++disk)
      if (weight[disk] > 0 && (weight[first] <= 0 || finish(disk) < finish(first))) first = disk;
    used[first] += 1;
    best[n] = std::max(best[n - 1], used[first] / weight[first]);
  }
  return best;
}

double typical_2d(OffsetTable row) {
  const std::size_t slots = row.size();
  MDFS_CHECK(slots > 0);
  Mean mean;
  Counts counts(slots);
  for (std::size_t y = 0; y < positions(row); ++y)
    for (unsigned width = 2; width <= kTypicalSide2d; ++width) {
      std::fill(counts.begin(), counts.end(), 0);
      unsigned busiest = 0;
      for (unsigned height = 1; height <= kTypicalSide2d; ++height) {
        busiest = add_row(counts, row[(y + height - 1) % slots], width, busiest);
        if (height >= 2 && is_typical(width, height)) mean.add(ratio(busiest, width * height, slots));
      }
    }
  return mean.value();
}

unsigned worst_excess_2d(OffsetTable row) {
  const std::size_t slots = row.size();
  MDFS_CHECK(slots > 0);
  unsigned worst = 0;
  Counts counts(slots);
  for (std::size_t y = 0; y < positions(row); ++y)
    for (std::size_t width = 1; width <= slots; ++width) {
      std::fill(counts.begin(), counts.end(), 0);
      unsigned busiest = 0;
      for (std::size_t height = 1; height <= slots; ++height) {
        busiest = add_row(counts, row[(y + height - 1) % slots], width, busiest);
        worst = std::max(worst, busiest - static_cast<unsigned>(ceil_div(width * height, slots)));
      }
    }
  return worst;
}

double weighted_typical_2d(OffsetTable row, std::span<const std::uint16_t> slot) {
  const std::size_t slots = row.size();
  MDFS_CHECK(slots > 0 && slot.size() == slots);
  std::vector<double> weight(*std::max_element(slot.begin(), slot.end()) + std::size_t{1});
  for (const std::uint16_t disk : slot) weight[disk] += 1;
  const std::vector<double> best = best_times(weight, kTypicalSide2d * kTypicalSide2d);
  Mean mean;
  std::vector<double> time(weight.size());
  for (std::size_t y = 0; y < positions(row); ++y)
    for (std::size_t x = 0; x < slots; ++x)
      for (unsigned width = 2; width <= kTypicalSide2d; ++width) {
        std::fill(time.begin(), time.end(), 0);
        double busiest = 0;
        for (unsigned height = 1; height <= kTypicalSide2d; ++height) {
          for (std::size_t i = 0; i < width; ++i) {
            const std::uint16_t disk = slot[(x + row[(y + height - 1) % slots] + i) % slots];
            busiest = std::max(busiest, time[disk] += 1 / weight[disk]);
          }
          if (height >= 2 && is_typical(width, height)) mean.add(busiest / best[width * height]);
        }
      }
  return mean.value();
}

double typical_3d(OffsetTable row, OffsetTable plane) {
  MDFS_CHECK(!row.empty() && row.size() == plane.size());
  Mean mean;
  each_box(
      row, plane,
      [](unsigned w, unsigned h, unsigned d) {
        return std::min({w, h, d}) >= 2 && is_typical(w, h, d);
      },
      [&](unsigned extents, unsigned busiest) { mean.add(ratio(busiest, extents, row.size())); });
  return mean.value();
}

double slices_3d(OffsetTable row, OffsetTable plane) {
  MDFS_CHECK(!row.empty() && row.size() == plane.size());
  Mean mean;
  const auto is_slice = [](unsigned w, unsigned h, unsigned d) {
    if (d == 1) return std::min(w, h) >= 2 && is_typical(w, h);
    if (h == 1) return std::min(w, d) >= 2 && is_typical(w, d);
    return w == 1 && std::min(h, d) >= 2 && is_typical(h, d);
  };
  each_box(row, plane, is_slice,
           [&](unsigned extents, unsigned busiest) { mean.add(ratio(busiest, extents, row.size())); });
  return mean.value();
}

namespace {

// Adds up to `blocks` copies of `box`, each `offset` slots further; visits each number of copies from 2 on.
template <typename Visit>
void each_block(const Counts& box, unsigned offset, unsigned blocks, Counts& counts, Visit visit) {
  const std::size_t slots = box.size();
  std::fill(counts.begin(), counts.end(), 0);
  for (unsigned block = 1; block <= blocks; ++block) {
    const std::size_t shift = std::size_t{offset} * (block - 1) % slots;
    for (std::size_t i = 0; i < slots; ++i) {
      std::uint16_t& count = counts[i + shift < slots ? i + shift : i + shift - slots];
      count = static_cast<std::uint16_t>(count + box[i]);
    }
    if (block >= 2) visit(block, *std::max_element(counts.begin(), counts.end()));
  }
}

}  // namespace

double typical_slow(OffsetTable row, OffsetTable plane, unsigned offset) {
  const std::size_t slots = row.size();
  MDFS_CHECK(slots > 0 && plane.size() == slots);
  std::array<Mean, 8> kinds;  // bit 0: along columns, 1: rows, 2: planes
  Counts box(slots), counts(slots);
  for (std::size_t y = 0; y < positions(row); ++y)
    for (std::size_t z = 0; z < positions(plane); ++z)
      for (unsigned depth = 1; depth <= kTypicalSide3d; ++depth)
        for (unsigned height = 1; height <= kTypicalSide3d; ++height)
          for (unsigned width = 1; width <= kTypicalSide3d; ++width) {
            const unsigned kind = (width > 1 ? 1u : 0u) + (height > 1 ? 2u : 0u) + (depth > 1 ? 4u : 0u);
            if (kind == 7) continue;
            std::fill(box.begin(), box.end(), 0);
            for (unsigned d = 0; d < depth; ++d)
              for (unsigned h = 0; h < height; ++h)
                add_row(box, row[(y + h) % slots] + plane[(z + d) % slots], width, 0);
            const auto side = [](unsigned length, unsigned other) { return length > 1 ? length : other; };
            each_block(box, offset, kTypicalSide3d, counts, [&](unsigned blocks, unsigned busiest) {
              if (is_typical(side(width, blocks), side(height, blocks), side(depth, blocks)) &&
                  is_typical(blocks, side(width, blocks)) && is_typical(blocks, side(height, blocks)) &&
                  is_typical(blocks, side(depth, blocks)))
                kinds[kind].add(ratio(busiest, std::uint64_t{width} * height * depth * blocks, slots));
            });
          }
  double sum = 0;
  for (unsigned kind = 0; kind < 7; ++kind) sum += kinds[kind].value();
  return sum / 7;
}

double typical_slow_plane(unsigned slots, unsigned one, unsigned other) {
  MDFS_CHECK(slots > 0);
  Mean mean;
  Counts line(slots), counts(slots);
  for (unsigned length = 1; length <= kTypicalSide3d; ++length) {
    ++line[std::size_t{one} * (length - 1) % slots];
    if (length < 2) continue;
    each_block(line, other, kTypicalSide3d, counts, [&](unsigned blocks, unsigned busiest) {
      if (is_typical(length, blocks)) mean.add(ratio(busiest, std::uint64_t{length} * blocks, slots));
    });
  }
  return mean.value();
}

GridScore GridScorer::score(OffsetTable row, OffsetTable plane) const {
  const std::size_t slots = row.size();
  MDFS_CHECK(slots > 0 && plane.size() == slots);
  GridScore result;
  Counts counts(slots);
  for (std::uint64_t z = 0; z < grid_[0]; ++z)
    for (std::uint64_t y = 0; y < grid_[1]; ++y)
      for (std::uint64_t width = 1; width <= grid_[2]; ++width)
        for (std::uint64_t height = 1; height <= grid_[1] - y; ++height) {
          std::fill(counts.begin(), counts.end(), 0);
          unsigned busiest = 0;
          for (std::uint64_t depth = 1; depth <= grid_[0] - z; ++depth) {
            const std::size_t shift = plane[(z + depth - 1) % slots];
            for (std::uint64_t i = 0; i < height; ++i)
              busiest = add_row(counts, shift + row[(y + i) % slots], width, busiest);
            result.sum += busiest * (grid_[2] - width + 1);  // windows at all columns look alike
            if (width == grid_[2] && height == grid_[1] && depth == grid_[0]) result.whole = busiest;
          }
        }
  return result;
}

}  // namespace mdfs::geometry
