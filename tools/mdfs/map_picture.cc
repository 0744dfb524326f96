// Drawing the occupation of zones.
// SPDX-License-Identifier: Apache-2.0
#include "map_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "support/svg.h"

namespace mdfs::tools {
namespace {

constexpr double kLeft = 200;
constexpr double kStrip = kPageWidth - kLeft - kPageMargin;
constexpr std::size_t kMostCells = 180;  // of a strip
constexpr double kCellHeight = 26;
constexpr int kLegendSteps = 10;
constexpr const char* kNoData = "#E8D9B5";  // labels, space pages, tree nodes
constexpr const char* kFrame = "#999999";

void draw_legend(Svg& svg, double top) {
  svg.text(kLeft, top + 11, "empty", Svg::Anchor::kEnd);
  constexpr double kSide = 16;
  for (int i = 0; i <= kLegendSteps; ++i) {
    svg.rect(kLeft + 8 + i * kSide, top - 1, kSide, kSide, kFrame);
    svg.rect(kLeft + 8.5 + i * kSide, top - 0.5, kSide - 1, kSide - 1, shade(static_cast<double>(i) / kLegendSteps));
  }
  const double after = kLeft + 8 + (kLegendSteps + 1) * kSide;
  svg.text(after + 8, top + 11, "full");
  svg.rect(after + 60, top, kSide, kSide - 2, kNoData);
  svg.text(after + 60 + kSide + 6, top + 11, "kept for metadata, no data");
}

void draw_disk(Svg& svg, const DiskOccupation& disk, double top) {
  const std::size_t step = ceil_div(std::max<std::size_t>(disk.zones.size(), 1), kMostCells);
  const std::size_t cells = ceil_div(disk.zones.size(), step);
  const double width = kStrip / static_cast<double>(std::max<std::size_t>(cells, 1));
  svg.rect(kLeft - 0.5, top - 0.5, kStrip + 1, kCellHeight + 1, kFrame);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    std::uint64_t blocks = 0;
    std::uint64_t used = 0;
    const std::size_t end = std::min(disk.zones.size(), (cell + 1) * step);
    for (std::size_t zone = cell * step; zone < end; ++zone) {
      blocks += disk.zones[zone].blocks;
      used += disk.zones[zone].used_blocks;
    }
    const double share = blocks == 0 ? 0 : static_cast<double>(used) / static_cast<double>(blocks);
    svg.rect(kLeft + static_cast<double>(cell) * width, top, width - (width > 4 ? 0.5 : 0), kCellHeight,
             blocks == 0 ? kNoData : shade(share),
             fmt::format("data-zones=\"{}\" data-used=\"{}\"", end - cell * step, used));
  }
}

}  // namespace

std::string map_svg(const std::vector<DiskOccupation>& disks, const std::vector<std::uint32_t>& numbers,
                    const std::vector<std::string>& names, const std::string& title, std::uint32_t block_size) {
  Svg svg(kPageWidth, title);
  double top = kPageMargin + 8;
  svg.text(kPageMargin, top, title, Svg::Anchor::kStart, "#222222", 16);
  top += kLineHeight + 2;
  std::size_t most = 0;
  for (const DiskOccupation& disk : disks) most = std::max(most, disk.zones.size());
  const std::size_t step = ceil_div(std::max<std::size_t>(most, 1), kMostCells);
  svg.text(kPageMargin, top,
           step == 1 ? std::string("zones of each disk, from its first byte to its last; darker: more in use")
                     : fmt::format("zones of each disk, from its first byte to its last; a cell is the mean of {} "
                                   "zones of the longest disk",
                                   step),
           Svg::Anchor::kStart, "#555555");
  top += kLineHeight;
  draw_legend(svg, top);
  top += 2 * kLineHeight;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    const DiskOccupation& disk = disks[i];
    const std::string state =
        disk.there ? fmt::format("{:.1f} % of {}", disk.share() * 100, format_size(disk.data_blocks * block_size))
                   : std::string("not there");
    svg.text(kPageMargin, top + 11, fmt::format("disk {}: {}", i < numbers.size() ? numbers[i] : i, state));
    constexpr std::size_t kShown = 28;
    const std::string name = i < names.size() ? names[i] : std::string();
    svg.text(kPageMargin, top + 24, name.size() > kShown ? ".." + name.substr(name.size() - kShown + 2) : name,
             Svg::Anchor::kStart, "#777777", 10);
    if (disk.there) draw_disk(svg, disk, top);
    top += kCellHeight + 10;
  }
  return svg.finish(top + kPageMargin);
}

}  // namespace mdfs::tools
