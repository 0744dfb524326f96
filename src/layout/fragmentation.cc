// Fragmentation: sums, and fresh copies.
// SPDX-License-Identifier: Apache-2.0
#include "layout/fragmentation.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "layout/typical_windows.h"

namespace mdfs::layout {
namespace {

using geometry::Coord;

double ratio(double of, double to) { return to > 0 ? of / to : 0; }

}  // namespace

Fragmentation& Fragmentation::operator+=(const Fragmentation& other) {
  extents += other.extents;
  misplaced += other.misplaced;
  scattered += other.scattered;
  windows += other.windows;
  disks += other.disks;
  runs += other.runs;
  busiest_runs += other.busiest_runs;
  fresh_disks += other.fresh_disks;
  fresh_runs += other.fresh_runs;
  fresh_busiest_runs += other.fresh_busiest_runs;
  busiest_blocks += other.busiest_blocks;
  fresh_busiest_blocks += other.fresh_busiest_blocks;
  read_blocks += other.read_blocks;
  needed_blocks += other.needed_blocks;
  return *this;
}

double Fragmentation::runs_per_disk() const { return ratio(double(runs), double(disks)); }
double Fragmentation::runs_on_busiest() const { return ratio(double(busiest_runs), double(windows)); }
double Fragmentation::fresh_runs_per_disk() const { return ratio(double(fresh_runs), double(fresh_disks)); }
double Fragmentation::fresh_runs_on_busiest() const { return ratio(double(fresh_busiest_runs), double(windows)); }
double Fragmentation::read_per_needed() const { return ratio(double(read_blocks), needed_blocks); }
double Fragmentation::factor() const { return ratio(double(runs), double(fresh_runs)); }
double Fragmentation::imbalance() const { return ratio(busiest_blocks, fresh_busiest_blocks); }

std::vector<ExtentPlace> fresh_places(const ImageLayout& image, std::span<const ExtentPlace> places) {
  std::vector<std::uint32_t> order(places.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return image.groups->order_of(places[a].index) < image.groups->order_of(places[b].index);
  });
  struct Disk {
    std::uint64_t next = 0;
    std::uint64_t run = UINT64_MAX;
  };
  std::map<unsigned, Disk> disks;
  std::vector<ExtentPlace> fresh(places.begin(), places.end());
  for (const std::uint32_t number : order) {
    ExtentPlace& place = fresh[number];
    place.disk = image.placement_disk(place.index);
    place.pieces = 1;
    Disk& disk = disks[place.disk];
    const std::uint64_t run = image.groups->run_of(place.index, image.disks);
    if (disk.run != run) ++disk.next;
    disk.run = run;
    place.block = disk.next;
    disk.next += stored_blocks(place, image.block_size);
  }
  return fresh;
}

Fragmentation fragmentation_of(const ImageLayout& image, std::span<const ExtentPlace> places,
                               std::size_t most_windows) {
  Fragmentation fragmentation;
  if (places.empty()) return fragmentation;
  fragmentation.extents = places.size();
  for (const ExtentPlace& place : places) {
    fragmentation.misplaced += place.disk != image.placement_disk(place.index) ? 1 : 0;
    fragmentation.scattered += place.pieces > 1 ? 1 : 0;
  }
  const std::vector<ExtentPlace> fresh = fresh_places(image, places);
  const DiskShares shares(fresh, image.block_size);
  const ExtentFinder finder(image, places);
  const std::vector<Coord> shapes = window_shapes(image.rank, image.grid);
  const std::size_t each = std::max<std::size_t>(1, most_windows / shapes.size());
  std::vector<std::uint32_t> window;
  for (std::size_t shape = 0; shape < shapes.size(); ++shape)
    for (std::size_t i = 0; i < std::min(each, places.size()); ++i) {
      // Around each of a few extents, else spread over all.
      const auto pick = [&](std::uint64_t draw) {
        return places[places.size() <= each ? i : draw % places.size()].index;
      };
      finder.find(draw_window(image, shapes[shape], shape << 32 | i, pick), window);
      const CountedRuns now = count_runs(places, window, image.block_size, shares);
      for (const std::uint32_t number : window) {
        fragmentation.read_blocks += stored_blocks(places[number], image.block_size);
        fragmentation.needed_blocks += double(places[number].stored_bytes) / image.block_size;
      }
      const CountedRuns as_new = count_runs(fresh, window, image.block_size, shares);
      ++fragmentation.windows;
      fragmentation.disks += now.disks;
      fragmentation.runs += now.runs;
      fragmentation.busiest_runs += now.busiest;
      fragmentation.fresh_disks += as_new.disks;
      fragmentation.fresh_runs += as_new.runs;
      fragmentation.fresh_busiest_runs += as_new.busiest;
      fragmentation.busiest_blocks += now.busiest_blocks;
      fragmentation.fresh_busiest_blocks += as_new.busiest_blocks;
    }
  return fragmentation;
}

}  // namespace mdfs::layout
