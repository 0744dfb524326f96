// The fragmentation of a layout: the pieces of typical windows on their disks, compared with those of a fresh copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout/image_layout.h"

namespace mdfs::layout {

// Sums over the examined windows, so that figures of several images or samples can be added. Means are 0 without stored
// extents.
struct Fragmentation {
  std::uint64_t extents = 0;
  std::uint64_t misplaced = 0;  // of these: on another disk than the placement names
  std::uint64_t scattered = 0;  // of these: in several pieces
  std::uint64_t windows = 0;
  std::uint64_t disks = 0;  // with bytes of the windows, summed
  std::uint64_t runs = 0, busiest_runs = 0;
  std::uint64_t fresh_disks = 0, fresh_runs = 0, fresh_busiest_runs = 0;
  double busiest_blocks = 0, fresh_busiest_blocks = 0;  // of the slowest disk, over its share (DiskShares)
  std::uint64_t read_blocks = 0;
  double needed_blocks = 0;

  Fragmentation& operator+=(const Fragmentation& other);
  // Contiguous runs of a typical window on a disk: 1 is ideal.
  double runs_per_disk() const;
  double runs_on_busiest() const;  // on the disk with most runs
  double fresh_runs_per_disk() const;
  double fresh_runs_on_busiest() const;
  // Blocks read for a block of stored bytes: more than 1 where extents end within a block.
  double read_per_needed() const;
  // Runs of typical windows over those of a fresh copy, on all disks: 1 is as new, 2 is twice as many.
  double factor() const;
  // Blocks of typical windows on the slowest disk, over those of a fresh copy. 1 is as new. 2: misplaced extents give
  // one disk twice as much to read.
  double imbalance() const;
};

// Typical windows are boxes of whole extents with sides of 2, 4, 8 and 16 (three dimensions: 1, 2, 4 and 8), cut to the
// image. The longest side is at most four times the shortest. Placement is judged by the same windows
// (geometry/placement_score.h looks at all sides). For each shape the function draws windows around stored extents, up
// to `most_windows` in all, and always the same ones for the same image. A fresh copy has every extent on the disk that
// the placement names, in the order of Groups, contiguous in runs of Groups::run_of(), without holes. Pure.
Fragmentation fragmentation_of(const ImageLayout& image, std::span<const ExtentPlace> places,
                               std::size_t most_windows = 1024);

// The places of a fresh copy, in the order of `places`, from block 0 of each disk. Runs do not touch. Pure.
std::vector<ExtentPlace> fresh_places(const ImageLayout& image, std::span<const ExtentPlace> places);

}  // namespace mdfs::layout
