// Figures of merit: typical windows, and counting runs.
// SPDX-License-Identifier: Apache-2.0
#include "engine/merit.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "base/checked.h"

namespace mdfs::engine {
namespace {

using geometry::Coord;

constexpr std::uint64_t kMostAspect = 4;

double ratio(double of, double to) { return to > 0 ? of / to : 0; }

std::uint64_t blocks_of(const ExtentPlace& place, std::uint32_t block_size) {
  return ceil_div(place.stored_bytes, block_size);
}

// All shapes of typical windows, cut to the grid, each once.
std::vector<Coord> window_shapes(unsigned rank, const Coord& grid) {
  const std::array<std::uint64_t, 4> sides =
      rank == 3 ? std::array<std::uint64_t, 4>{1, 2, 4, 8} : std::array<std::uint64_t, 4>{2, 4, 8, 16};
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
    shapes.push_back(shape);
  }
  std::sort(shapes.begin(), shapes.end());
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t z) {
  z = (z + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Counted {
  std::uint64_t disks = 0, runs = 0, busiest = 0;
};

// `window`: numbers of places; sorted by disk and block here.
Counted count_runs(std::span<const ExtentPlace> places, std::vector<std::uint32_t>& window, std::uint32_t block_size) {
  std::sort(window.begin(), window.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(places[a].disk, places[a].block) < std::tie(places[b].disk, places[b].block);
  });
  Counted counted;
  std::uint64_t on_disk = 0;
  const ExtentPlace* before = nullptr;
  for (const std::uint32_t number : window) {
    const ExtentPlace& place = places[number];
    const bool same_disk = before != nullptr && before->disk == place.disk;
    if (!same_disk) {
      ++counted.disks;
      on_disk = 0;
    }
    const bool continues =
        same_disk && before->pieces == 1 && before->block + blocks_of(*before, block_size) == place.block;
    const std::uint64_t runs = (continues ? 0 : 1) + place.pieces - 1;
    on_disk += runs;
    counted.runs += runs;
    counted.busiest = std::max(counted.busiest, on_disk);
    before = &place;
  }
  return counted;
}

// Finds the stored extents of a window.
class Finder {
 public:
  Finder(const LaidImage& image, std::span<const ExtentPlace> places) : image_(image) {
    numbers_.reserve(places.size());
    for (std::uint32_t i = 0; i < places.size(); ++i) numbers_.emplace(key(places[i].index), i);
  }

  void find(const Coord& start, const Coord& shape, std::vector<std::uint32_t>& found) const {
    found.clear();
    Coord length{1, 1, 1};
    for (unsigned axis = 0; axis < image_.rank; ++axis) length[axis] = shape[axis];
    for (std::uint64_t a = 0; a < length[0]; ++a)
      for (std::uint64_t b = 0; b < length[1]; ++b)
        for (std::uint64_t c = 0; c < length[2]; ++c) {
          const auto number = numbers_.find(key({start[0] + a, start[1] + b, start[2] + c}));
          if (number != numbers_.end()) found.push_back(number->second);
        }
  }

 private:
  std::uint64_t key(const Coord& index) const {
    std::uint64_t key = index[0];
    for (unsigned axis = 1; axis < image_.rank; ++axis) key = key * image_.grid[axis] + index[axis];
    return key;
  }

  const LaidImage& image_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

}  // namespace

Merit& Merit::operator+=(const Merit& other) {
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
  read_blocks += other.read_blocks;
  needed_blocks += other.needed_blocks;
  return *this;
}

double Merit::runs_per_disk() const { return ratio(double(runs), double(disks)); }
double Merit::runs_on_busiest() const { return ratio(double(busiest_runs), double(windows)); }
double Merit::fresh_runs_per_disk() const { return ratio(double(fresh_runs), double(fresh_disks)); }
double Merit::fresh_runs_on_busiest() const { return ratio(double(fresh_busiest_runs), double(windows)); }
double Merit::read_per_needed() const { return ratio(double(read_blocks), needed_blocks); }
double Merit::score() const { return ratio(double(runs), double(fresh_runs)); }

std::vector<ExtentPlace> fresh_places(const LaidImage& image, std::span<const ExtentPlace> places) {
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
    place.disk = image.wished_disk(place.index);
    place.pieces = 1;
    Disk& disk = disks[place.disk];
    const std::uint64_t run = image.groups->run_of(place.index, image.disks);
    if (disk.run != run) ++disk.next;
    disk.run = run;
    place.block = disk.next;
    disk.next += blocks_of(place, image.block_size);
  }
  return fresh;
}

Merit merit_of(const LaidImage& image, std::span<const ExtentPlace> places, std::size_t most_windows) {
  Merit merit;
  if (places.empty()) return merit;
  merit.extents = places.size();
  for (const ExtentPlace& place : places) {
    merit.misplaced += place.disk != image.wished_disk(place.index) ? 1 : 0;
    merit.scattered += place.pieces > 1 ? 1 : 0;
  }
  const std::vector<ExtentPlace> fresh = fresh_places(image, places);
  const Finder finder(image, places);
  const std::vector<Coord> shapes = window_shapes(image.rank, image.grid);
  const std::size_t each = std::max<std::size_t>(1, most_windows / shapes.size());
  std::vector<std::uint32_t> window;
  for (std::size_t shape = 0; shape < shapes.size(); ++shape)
    for (std::size_t i = 0; i < std::min(each, places.size()); ++i) {
      const std::uint64_t draw = mix(shape << 32 | i);
      // Spread over all extents, with the extent anywhere in the window.
      const std::size_t around = places.size() <= each ? i : draw % places.size();
      Coord start{};
      for (unsigned axis = 0; axis < image.rank; ++axis) {
        const std::uint64_t side = shapes[shape][axis];
        const std::uint64_t back = mix(draw + axis) % side;
        const std::uint64_t at = places[around].index[axis];
        start[axis] = std::min(at - std::min(at, back), image.grid[axis] - side);
      }
      finder.find(start, shapes[shape], window);
      const Counted now = count_runs(places, window, image.block_size);
      for (const std::uint32_t number : window) {
        merit.read_blocks += blocks_of(places[number], image.block_size);
        merit.needed_blocks += double(places[number].stored_bytes) / image.block_size;
      }
      const Counted new_ones = count_runs(fresh, window, image.block_size);
      ++merit.windows;
      merit.disks += now.disks;
      merit.runs += now.runs;
      merit.busiest_runs += now.busiest;
      merit.fresh_disks += new_ones.disks;
      merit.fresh_runs += new_ones.runs;
      merit.fresh_busiest_runs += new_ones.busiest;
    }
  return merit;
}

}  // namespace mdfs::engine
