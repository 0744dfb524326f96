// A picture of an image's layout: the disk of each extent, and its place on the disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "geometry/geometry.h"
#include "support/svg.h"

namespace mdfs::tools {

// Takes the extents one by one, in any order, and keeps counts only: its memory does not grow with the image. The grid
// of extents is drawn in one colour a disk, of three and more axes some planes side by side. Where there are more
// extents than cells, a cell stands for several, and the widths of its colours are their shares. Below that a bar for
// each disk, from its first byte to its last, with a mark where the image lies. Every drawn cell and mark carries the
// number of its extents as data-extents. With a window, the extents that it needs have full colour and all others are
// pale, and the planes are its own.
class LayoutPicture {
 public:
  struct Disk {
    std::string name;
    std::uint64_t blocks = 0;
  };
  LayoutPicture(const geometry::Geometry& geometry, std::vector<Disk> disks, std::uint32_t block_size,
                std::string title, std::optional<geometry::Window> window = std::nullopt);

  void add(const geometry::Coord& index, unsigned disk, std::uint64_t block, std::uint64_t stored_bytes);
  std::string svg() const;
  std::uint64_t extents() const { return extents_; }

 private:
  static constexpr unsigned kMaxPlanes = 4;
  static constexpr unsigned kBins = 760;  // of a strip, a pixel each
  struct DiskUse {
    std::uint64_t extents = 0;
    std::uint64_t bytes = 0;
    std::vector<std::uint32_t> bins = std::vector<std::uint32_t>(kBins);  // extents that begin there
    std::uint64_t needed = 0;                                             // extents of the window
    std::vector<bool> covered = std::vector<bool>(kBins);
  };

  std::size_t cell_of(std::size_t plane, std::uint64_t row, std::uint64_t column) const;
  double draw_planes(Svg& svg, double top) const;
  void draw_plane(Svg& svg, std::size_t plane, double left, double top) const;
  void draw_cell(Svg& svg, std::size_t cell, double x, double y) const;
  double draw_strips(Svg& svg, double top) const;
  std::string cells_text() const;
  std::string window_text() const;
  // Of the axes before the planes one step is shown: the first one, or the first of the window.
  std::uint64_t shown_step(unsigned axis) const;
  bool is_needed(const geometry::Coord& index) const;

  const geometry::Geometry geometry_;
  const std::vector<Disk> disks_;
  const std::uint32_t block_size_;
  const std::string title_;
  const std::optional<geometry::Window> window_;
  std::uint64_t rows_ = 1, columns_ = 1;            // of a plane of the grid
  std::vector<std::uint64_t> planes_{0};            // drawn, by their index
  std::uint64_t row_step_ = 1, column_step_ = 1;    // extents that a cell stands for
  std::uint64_t cell_rows_ = 1, cell_columns_ = 1;  // of a plane
  double cell_px_ = 1;
  struct Cell {
    std::vector<std::uint32_t> extents;  // by disk
    bool is_needed = false;              // by the window
  };
  std::vector<Cell> cells_;  // by plane, row, column
  std::vector<DiskUse> use_;
  std::uint64_t extents_ = 0;
};

}  // namespace mdfs::tools
