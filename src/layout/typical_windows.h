// Typical windows and their runs, the basis of fragmentation and defragmentation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "layout/image_layout.h"

namespace mdfs::layout {

// A box of whole extents.
struct WindowAt {
  geometry::Coord start{};
  geometry::Coord length{};
};

// All shapes of typical windows (fragmentation.h), cut to the grid, each once. Pure, as are all functions here.
std::vector<geometry::Coord> window_shapes(unsigned rank, const geometry::Coord& grid);

// A window of this shape, at a random position around the extent that `pick` returns for a number drawn from `seed`.
WindowAt draw_window(const ImageLayout& image, const geometry::Coord& shape, std::uint64_t seed,
                     const std::function<geometry::Coord(std::uint64_t draw)>& pick);

std::uint64_t stored_blocks(const ExtentPlace& place, std::uint32_t block_size);

// Finds the stored extents of a window: their numbers in `places`, whose indexes must not change.
class ExtentFinder {
 public:
  ExtentFinder(const ImageLayout& image, std::span<const ExtentPlace> places);
  void find(const WindowAt& window, std::vector<std::uint32_t>& found) const;

 private:
  std::uint64_t key(const geometry::Coord& index) const;

  const unsigned rank_;
  const geometry::Coord grid_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

// The share of each disk in a fresh copy, in equal shares: a disk with twice the share of another is meant to be twice
// as fast. A disk without extents counts with an equal share.
class DiskShares {
 public:
  DiskShares(std::span<const ExtentPlace> fresh, std::uint32_t block_size);
  double of(unsigned disk) const;

 private:
  std::map<unsigned, double> shares_;
};

struct CountedRuns {
  std::uint64_t disks = 0, runs = 0;
  std::uint64_t busiest = 0;  // runs of the disk with most of them
  double busiest_blocks = 0;  // of the slowest disk, over its share
  double time = 0;            // of the slowest disk, with its runs: in blocks, over its share
};
// `window`: numbers of places; sorted by disk and block on return.
CountedRuns count_runs(std::span<const ExtentPlace> places, std::vector<std::uint32_t>& window,
                       std::uint32_t block_size, const DiskShares& shares);

}  // namespace mdfs::layout
