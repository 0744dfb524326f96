// One read, or one build, of a level of an image.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "geometry/decompose.h"
#include "geometry/level.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {

// Of an extent that is being built. The next one uses them again: fresh memory costs as much as the reduction.
struct VolumeImpl::LevelBuffers {
  ByteVector extent, piece;
};

struct VolumeImpl::LevelJob {
  Inode& image;
  const engine::Stop& stop;
  unsigned level = 0;
  geometry::Window window{};
  std::uint64_t offset = 0, length = 0;      // of the window's bytes
  engine::Stop pause{};                      // asked before an extent is built, but the first one; by several threads
  std::atomic<unsigned> begun{0};            // extents
  std::shared_ptr<const LevelSet> set{};     // this and the next: of look_up_levels()
  std::vector<geometry::Geometry> levels{};  // the image, and each stored level
  std::mutex buffers_mutex{};                // guards the next
  std::vector<std::unique_ptr<LevelBuffers>> free_buffers{};

  std::unique_ptr<LevelBuffers> take_buffers() {
    const std::lock_guard lock(buffers_mutex);
    if (free_buffers.empty()) return std::make_unique<LevelBuffers>();
    std::unique_ptr<LevelBuffers> buffers = std::move(free_buffers.back());
    free_buffers.pop_back();
    return buffers;
  }
  void give_back(std::unique_ptr<LevelBuffers> buffers) {
    const std::lock_guard lock(buffers_mutex);
    free_buffers.push_back(std::move(buffers));
  }

  // The samples of the level that hold bytes of the window.
  geometry::SampleBox part_of(std::uint64_t from, std::uint64_t bytes) const {
    const geometry::Geometry& geometry = levels[level];
    const std::uint64_t sample = window.channel ? geometry::element_bytes(geometry.type) : geometry.sample_bytes();
    geometry::SampleBox box = geometry::box_of_bytes(geometry.rank, window.length, sample, from, bytes);
    for (unsigned axis = 0; axis < geometry.rank; ++axis) {
      box.first[axis] += window.start[axis];
      box.last[axis] += window.start[axis];
    }
    return box;
  }
  // The samples of the image that samples of a level are made of.
  geometry::SampleBox below(unsigned n, geometry::SampleBox box) const {
    while (n-- > 0) box = geometry::box_below(levels[n], box);
    return box;
  }
  // The samples of the image whose writers drop an extent that holds samples of a level: a read of these samples is
  // worth nothing from then on, even where the image below them stays the same.
  geometry::SampleBox droppers(unsigned n, const geometry::SampleBox& box) const {
    return below(n, n == 0 ? box : geometry::whole_extents(levels[n], box));
  }
};

// Visits the extents that hold any of these samples; ends at the first state that is not kBuilt.
template <typename State, typename Visit>
Result<State> each_extent(const geometry::Geometry& geometry, const geometry::SampleBox& box, Visit&& visit) {
  const geometry::SampleBox extents = geometry::extents_of(geometry, box);
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    if (extents.first[axis] >= extents.last[axis]) return State::kBuilt;
  geometry::Coord at = extents.first;
  do {
    MDFS_TRY_ASSIGN(const State state, visit(at));
    if (state != State::kBuilt) return state;
  } while (geometry::step_in(geometry.rank, extents.first, extents.last, at));
  return State::kBuilt;
}

}  // namespace mdfs::volume
