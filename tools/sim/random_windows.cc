// Large windows first, each size within its share of the image.
// SPDX-License-Identifier: Apache-2.0
#include "random_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "geometry/decompose.h"
#include "geometry/extent_grid.h"
#include "options.h"
#include "sim/experiment.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kTriesForAWindow = 200;

// At random, no two with a common extent, nor with those in `taken`: what one window has read is no help to another.
// Together they take at most so many extents, or one window.
Windows disjoint_windows(const geometry::Geometry& image, const geometry::Coord& length, unsigned count,
                         std::uint64_t most_extents, model::Random& random, std::unordered_set<std::uint64_t>& taken) {
  const geometry::ByteGeometry bytes = geometry::byte_geometry(image);
  const std::uint64_t before = taken.size();
  Windows windows;
  for (unsigned tries = 0; windows.size() < count && tries < count * kTriesForAWindow; ++tries) {
    const geometry::Window window = sim::random_window(image, length, random);
    const geometry::Box box = geometry::byte_box(image, window);
    std::vector<std::uint64_t> extents;
    for (const geometry::Piece& piece : geometry::decompose(bytes, box))
      extents.push_back(geometry::extent_index(bytes, piece.extent));
    const bool free = std::none_of(extents.begin(), extents.end(), [&](auto index) { return taken.contains(index); });
    if (!free) continue;
    if (!windows.empty() && taken.size() - before + extents.size() > most_extents) break;
    taken.insert(extents.begin(), extents.end());
    windows.push_back(window);
  }
  return windows;
}

}  // namespace

Result<std::vector<Windows>> choose_windows(const geometry::Geometry& image, std::span<const std::string> sizes,
                                            unsigned count, unsigned least, std::uint64_t seed) {
  std::vector<geometry::Coord> lengths;
  std::vector<std::size_t> order;
  for (const std::string& size : sizes) {
    MDFS_TRY_ASSIGN(const geometry::Coord length, parse_window_size(image, size));
    order.push_back(lengths.size());
    lengths.push_back(length);
  }
  const auto volume = [&](std::size_t i) {
    double samples = 1;
    for (unsigned axis = 0; axis < image.rank; ++axis) samples *= static_cast<double>(lengths[i][axis]);
    return samples;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return volume(a) > volume(b); });
  const std::uint64_t extents = geometry::extent_count(image.rank, image.grid());
  model::Random random(seed);
  std::unordered_set<std::uint64_t> taken;
  std::vector<Windows> windows(lengths.size());
  for (const std::size_t i : order) {
    windows[i] = disjoint_windows(image, lengths[i], count, extents / lengths.size(), random, taken);
    if (windows[i].size() < least)
      return Error{Errc::kOutOfRange,
                   fmt::format("the image is too small for {} windows of {} without a common extent", least, sizes[i])};
  }
  return windows;
}

}  // namespace mdfs::tools
