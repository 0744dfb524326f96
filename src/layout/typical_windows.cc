// Typical windows, and counting their runs.
// SPDX-License-Identifier: Apache-2.0
#include "layout/typical_windows.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/checked.h"
#include "geometry/decompose.h"

namespace mdfs::layout {
namespace {

using geometry::Coord;

constexpr std::uint64_t kMostAspect = 4;
constexpr std::ptrdiff_t kMostThick = 3;  // axes along which a window has more than one extent
// What a disk would read instead of going to another place: 5 ms at 50 MB/s, 0.1 ms at 2.5 GB/s.
constexpr std::uint64_t kBytesOfRun = 256u << 10;

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t z) {
  z = (z + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t stored_blocks(const ExtentPlace& place, std::uint32_t block_size) {
  return ceil_div(place.stored_bytes, block_size);
}

std::vector<Coord> window_shapes(unsigned rank, const Coord& grid) {
  const std::array<std::uint64_t, 4> sides =
      rank >= 3 ? std::array<std::uint64_t, 4>{1, 2, 4, 8} : std::array<std::uint64_t, 4>{2, 4, 8, 16};
  std::size_t count = 1;
  for (unsigned axis = 0; axis < rank; ++axis) count *= sides.size();
  std::vector<Coord> shapes;
  for (std::size_t number = 0; number < count; ++number) {
    Coord shape{};
    std::uint64_t shortest = UINT64_MAX, longest = 0;
    std::size_t rest = number;
    for (unsigned axis = 0; axis < rank; ++axis, rest /= sides.size()) {
      const std::uint64_t side = sides[rest % sides.size()];
      shortest = std::min(shortest, side);
      longest = std::max(longest, side);
      shape[axis] = std::min(side, grid[axis]);
    }
    if (longest > kMostAspect * shortest) continue;
    if (std::count_if(shape.begin(), shape.begin() + rank, [](std::uint64_t side) { return side > 1; }) > kMostThick)
      continue;
    shapes.push_back(shape);
  }
  std::sort(shapes.begin(), shapes.end());
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

WindowAt draw_window(const ImageLayout& image, const Coord& shape, std::uint64_t seed,
                     const std::function<Coord(std::uint64_t draw)>& pick) {
  const std::uint64_t draw = mix(seed);
  const Coord around = pick(draw);
  WindowAt window{{}, shape};
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    const std::uint64_t back = mix(draw + axis) % shape[axis];
    window.start[axis] = std::min(around[axis] - std::min(around[axis], back), image.grid[axis] - shape[axis]);
  }
  return window;
}

ExtentFinder::ExtentFinder(const ImageLayout& image, std::span<const ExtentPlace> places)
    : rank_(image.rank), grid_(image.grid) {
  numbers_.reserve(places.size());
  for (std::uint32_t i = 0; i < places.size(); ++i) numbers_.emplace(key(places[i].index), i);
}

std::uint64_t ExtentFinder::key(const Coord& index) const {
  std::uint64_t key = index[0];
  for (unsigned axis = 1; axis < rank_; ++axis) key = key * grid_[axis] + index[axis];
  return key;
}

void ExtentFinder::find(const WindowAt& window, std::vector<std::uint32_t>& found) const {
  found.clear();
  Coord end{};
  for (unsigned axis = 0; axis < rank_; ++axis) end[axis] = window.start[axis] + window.length[axis];
  Coord index = window.start;
  do {
    const auto number = numbers_.find(key(index));
    if (number != numbers_.end()) found.push_back(number->second);
  } while (geometry::step_in(rank_, window.start, end, index));
}

DiskShares::DiskShares(std::span<const ExtentPlace> fresh, std::uint32_t block_size) {
  double all = 0;
  for (const ExtentPlace& place : fresh) {
    const auto blocks = static_cast<double>(stored_blocks(place, block_size));
    shares_[place.disk] += blocks;
    all += blocks;
  }
  for (auto& [disk, share] : shares_) share *= static_cast<double>(shares_.size()) / all;
}

double DiskShares::of(unsigned disk) const {
  const auto found = shares_.find(disk);
  return found == shares_.end() ? 1 : found->second;
}

CountedRuns count_runs(std::span<const ExtentPlace> places, std::vector<std::uint32_t>& window,
                       std::uint32_t block_size, const DiskShares& shares) {
  std::sort(window.begin(), window.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(places[a].disk, places[a].block) < std::tie(places[b].disk, places[b].block);
  });
  CountedRuns counted;
  const std::uint64_t blocks_of_run = kBytesOfRun / block_size;
  for (std::size_t first = 0, last = 0; first < window.size(); first = last) {
    const unsigned disk = places[window[first]].disk;
    std::uint64_t runs = 0, blocks = 0, next = UINT64_MAX;
    for (; last < window.size() && places[window[last]].disk == disk; ++last) {
      const ExtentPlace& place = places[window[last]];
      const std::uint64_t of_place = stored_blocks(place, block_size);
      runs += (place.block == next ? 0 : 1) + place.pieces - 1;
      blocks += of_place;
      next = place.pieces == 1 ? place.block + of_place : UINT64_MAX;
    }
    ++counted.disks;
    counted.runs += runs;
    counted.busiest = std::max(counted.busiest, runs);
    const double share = shares.of(disk);
    counted.busiest_blocks = std::max(counted.busiest_blocks, static_cast<double>(blocks) / share);
    counted.time = std::max(counted.time, static_cast<double>(blocks + runs * blocks_of_run) / share);
  }
  return counted;
}

}  // namespace mdfs::layout
