// Drawing the layout of an image.
// SPDX-License-Identifier: Apache-2.0
#include "layout_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/text.h"
#include "geometry/shape_text.h"
#include "geometry/window_spec.h"

namespace mdfs::tools {
namespace {

constexpr double kGap = 16;             // between planes
constexpr double kMostCellPx = 26;      // of a small grid
constexpr double kLeastCellPx = 7;      // below, a cell stands for several extents
constexpr double kNumberedCellPx = 15;  // from here on a cell has room for the number of its disk
constexpr double kMostPlaneHeight = 560;
constexpr double kStripHeight = 20;
constexpr double kStripLeft = 180;  // room for the names
constexpr const char* kHole = "#FFFFFF";
constexpr const char* kPaper = "#EDEDED";  // of a strip, and between cells

}  // namespace

LayoutPicture::LayoutPicture(const geometry::Geometry& geometry, std::vector<Disk> disks, std::uint32_t block_size,
                             std::string title, std::optional<geometry::Window> window)
    : geometry_(geometry),
      disks_(std::move(disks)),
      block_size_(block_size),
      title_(std::move(title)),
      window_(std::move(window)) {
  const geometry::Coord grid = geometry_.grid();
  columns_ = std::max<std::uint64_t>(1, grid[geometry_.rank - 1]);
  if (geometry_.rank > 1) rows_ = std::max<std::uint64_t>(1, grid[geometry_.rank - 2]);
  if (geometry_.rank >= 3) {
    const unsigned axis = geometry_.rank - 3;
    const std::uint64_t side = geometry_.extent[axis];
    const std::uint64_t first = window_ ? window_->start[axis] / side : 0;
    const std::uint64_t end = window_ ? ceil_div(window_->start[axis] + window_->length[axis], side) : grid[axis];
    const std::uint64_t depth = std::max<std::uint64_t>(1, end - first);
    const std::uint64_t count = std::min<std::uint64_t>(depth, kMaxPlanes);
    planes_.clear();
    for (std::uint64_t i = 0; i < count; ++i)
      planes_.push_back(first + (count == 1 ? 0 : i * (depth - 1) / (count - 1)));
  }
  const auto count = static_cast<double>(planes_.size());
  const double room = (kPageWidth - 2 * kPageMargin - (count - 1) * kGap) / count;
  column_step_ = ceil_div(columns_, static_cast<std::uint64_t>(room / kLeastCellPx));
  row_step_ = ceil_div(rows_, static_cast<std::uint64_t>(kMostPlaneHeight / kLeastCellPx));
  cell_columns_ = ceil_div(columns_, column_step_);
  cell_rows_ = ceil_div(rows_, row_step_);
  cell_px_ = std::min(
      {kMostCellPx, room / static_cast<double>(cell_columns_), kMostPlaneHeight / static_cast<double>(cell_rows_)});
  cells_.assign(planes_.size() * cell_rows_ * cell_columns_, {});
  use_.resize(disks_.size());
}

std::size_t LayoutPicture::cell_of(std::size_t plane, std::uint64_t row, std::uint64_t column) const {
  return (plane * cell_rows_ + row / row_step_) * cell_columns_ + column / column_step_;
}

bool LayoutPicture::is_needed(const geometry::Coord& index) const {
  for (unsigned axis = 0; axis < geometry_.rank; ++axis) {
    const std::uint64_t first = index[axis] * geometry_.extent[axis];
    if (first >= window_->start[axis] + window_->length[axis] || first + geometry_.extent[axis] <= window_->start[axis])
      return false;
  }
  return true;
}

std::uint64_t LayoutPicture::shown_step(unsigned axis) const {
  return window_ ? window_->start[axis] / geometry_.extent[axis] : 0;
}

void LayoutPicture::add(const geometry::Coord& index, unsigned disk, std::uint64_t block, std::uint64_t stored_bytes) {
  const std::uint64_t column = index[geometry_.rank - 1];
  const std::uint64_t row = geometry_.rank > 1 ? index[geometry_.rank - 2] : 0;
  if (disk >= disks_.size() || row >= rows_ || column >= columns_) return;  // grown since
  ++extents_;
  DiskUse& use = use_[disk];
  ++use.extents;
  const bool needed = !window_ || is_needed(index);
  if (needed) ++use.needed;
  use.bytes += stored_bytes;
  const std::uint64_t all = std::max<std::uint64_t>(disks_[disk].blocks, 1);
  const auto bin = [&](std::uint64_t at) {
    return static_cast<std::size_t>(static_cast<double>(std::min(at, all - 1)) / static_cast<double>(all) * kBins);
  };
  ++use.bins[bin(block)];
  const std::uint64_t last = block + std::max<std::uint64_t>(ceil_div(stored_bytes, block_size_), 1) - 1;
  for (std::size_t i = bin(block); i <= bin(last); ++i) use.covered[i] = true;
  for (unsigned axis = 0; axis + 3 < geometry_.rank; ++axis)
    if (index[axis] != shown_step(axis)) return;
  const std::uint64_t depth = geometry_.rank >= 3 ? index[geometry_.rank - 3] : 0;
  const auto plane = std::find(planes_.begin(), planes_.end(), depth);
  if (plane == planes_.end()) return;
  Cell& cell = cells_[cell_of(static_cast<std::size_t>(plane - planes_.begin()), row, column)];
  cell.extents.resize(disks_.size());
  ++cell.extents[disk];
  cell.is_needed = cell.is_needed || needed;
}

void LayoutPicture::draw_cell(Svg& svg, std::size_t cell, double x, double y) const {
  const double side = cell_px_ > 4 ? cell_px_ - 1 : cell_px_;
  const std::vector<std::uint32_t>& counts = cells_[cell].extents;
  const std::uint64_t row = cell / cell_columns_ % cell_rows_;
  const std::uint64_t column = cell % cell_columns_;
  const auto inside = static_cast<double>((std::min(rows_, (row + 1) * row_step_) - row * row_step_) *
                                          (std::min(columns_, (column + 1) * column_step_) - column * column_step_));
  double at = x;
  for (unsigned disk = 0; disk < counts.size(); ++disk) {
    if (counts[disk] == 0) continue;
    const double width = side * counts[disk] / inside;
    const std::string colour = disk_colour(disk);
    svg.rect(at, y, width, side, colour,
             fmt::format("data-disk=\"{}\" data-extents=\"{}\"{}", disk, counts[disk],
                         cells_[cell].is_needed ? "" : " opacity=\"0.25\""));
    if (inside == 1 && cell_px_ >= kNumberedCellPx)
      svg.text(x + side / 2, y + side / 2 + 4, std::to_string(disk), Svg::Anchor::kMiddle, ink_on(colour), 11);
    at += width;
  }
}

void LayoutPicture::draw_plane(Svg& svg, std::size_t plane, double left, double top) const {
  const double width = static_cast<double>(cell_columns_) * cell_px_;
  const double height = static_cast<double>(cell_rows_) * cell_px_;
  svg.rect(left - 1, top - 1, width + 1, height + 1, kPaper);
  svg.rect(left, top, width - 1, height - 1, kHole);
  for (std::uint64_t row = 0; row < cell_rows_; ++row)
    for (std::uint64_t column = 0; column < cell_columns_; ++column)
      draw_cell(svg, (plane * cell_rows_ + row) * cell_columns_ + column, left + static_cast<double>(column) * cell_px_,
                top + static_cast<double>(row) * cell_px_);
}

std::string LayoutPicture::cells_text() const {
  if (row_step_ * column_step_ == 1) return "a cell is an extent, its colour the disk; white: a hole";
  const std::string shape =
      geometry_.rank > 1 ? fmt::format("{}x{}", row_step_, column_step_) : std::to_string(column_step_);
  return fmt::format("a cell stands for {} extents, the widths of its colours for their shares; white: holes", shape);
}

std::string LayoutPicture::window_text() const {
  std::uint64_t extents = 0, busiest = 0;
  for (const DiskUse& use : use_) {
    extents += use.needed;
    busiest = std::max(busiest, use.needed);
  }
  return fmt::format("in full colour: window {}, {} extents, {} on the busiest disk", to_spec(geometry_, *window_),
                     extents, busiest);
}

double LayoutPicture::draw_planes(Svg& svg, double top) const {
  svg.text(kPageMargin, top, cells_text(), Svg::Anchor::kStart, "#555555");
  top += geometry_.rank >= 3 ? kLineHeight + 6 : 10;
  const double width = static_cast<double>(cell_columns_) * cell_px_;
  for (std::size_t i = 0; i < planes_.size(); ++i) {
    const double left = kPageMargin + static_cast<double>(i) * (width + kGap);
    if (geometry_.rank >= 3) {
      const unsigned axis = geometry_.rank - 3;
      std::string steps;
      for (unsigned slower = 0; slower < axis; ++slower)
        steps += fmt::format("{}={}, ", geometry_.axes.substr(slower, 1), shown_step(slower));
      svg.text(left, top - 6,
               fmt::format("extents {}{}={} of 0..{}", steps, geometry_.axes.substr(axis, 1), planes_[i],
                           std::max<std::uint64_t>(1, geometry_.grid()[axis]) - 1));
    }
    draw_plane(svg, i, left, top);
  }
  return top + static_cast<double>(cell_rows_) * cell_px_ + 2 * kLineHeight;
}

double LayoutPicture::draw_strips(Svg& svg, double top) const {
  std::uint64_t most_blocks = 1;
  for (const Disk& disk : disks_) most_blocks = std::max(most_blocks, disk.blocks);
  svg.text(kPageMargin, top,
           fmt::format("where on each disk, from its first byte to its last; a mark is at least one pixel wide: {} of "
                       "the largest disk",
                       format_size(most_blocks * block_size_ / kBins)),
           Svg::Anchor::kStart, "#555555");
  top += 10;
  for (unsigned number = 0; number < disks_.size(); ++number) {
    const DiskUse& use = use_[number];
    const std::string colour = disk_colour(number);
    svg.rect(kPageMargin, top + 3, 14, 14, colour);
    const double share = extents_ == 0 ? 0 : 100.0 * static_cast<double>(use.extents) / static_cast<double>(extents_);
    svg.text(kPageMargin + 20, top + 14, fmt::format("disk {}: {} ({:.1f} %)", number, use.extents, share));
    svg.rect(kStripLeft, top, kBins, kStripHeight, kPaper);
    for (std::size_t bin = 0; bin < kBins;) {
      std::size_t end = bin;
      std::uint64_t begun = 0;
      while (end < kBins && use.covered[end]) begun += use.bins[end++];
      if (end > bin)
        svg.rect(kStripLeft + static_cast<double>(bin), top, static_cast<double>(end - bin), kStripHeight, colour,
                 fmt::format("data-strip=\"{}\" data-extents=\"{}\"", number, begun));
      bin = std::max(end, bin + 1);
    }
    top += kStripHeight + 6;
  }
  return top;
}

std::string LayoutPicture::svg() const {
  Svg svg(kPageWidth, title_);
  double top = kPageMargin + 8;
  svg.text(kPageMargin, top, title_, Svg::Anchor::kStart, "#222222", 16);
  top += kLineHeight + 2;
  const std::uint64_t bytes = std::accumulate(use_.begin(), use_.end(), std::uint64_t{0},
                                              [](std::uint64_t sum, const DiskUse& use) { return sum + use.bytes; });
  svg.text(
      kPageMargin, top,
      fmt::format("{} {}, {} extents of {}, {} stored in {} on {} disks", geometry_.axes,
                  geometry::shape_text(geometry_.rank, geometry_.shape),
                  geometry::shape_text(geometry_.rank, geometry_.grid()),
                  geometry::shape_text(geometry_.rank, geometry_.extent), extents_, format_size(bytes), disks_.size()));
  if (window_) svg.text(kPageMargin, top += kLineHeight + 2, window_text());
  top = draw_planes(svg, top + kLineHeight + 4);
  top = draw_strips(svg, top);
  return svg.finish(top + kPageMargin);
}

}  // namespace mdfs::tools
