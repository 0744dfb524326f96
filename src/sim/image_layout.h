// The layout of a simulated image: the disk of each extent, and its address there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "geometry/copies.h"
#include "geometry/geometry.h"
#include "geometry/placement.h"
#include "model/machine.h"

namespace mdfs::sim {

// An image that was stored in one go: by a mount in the order of layout::Groups, by a machine that reads extents by
// themselves in row-major order. Each disk holds its extents one after another, or in groups that lie anywhere on the
// disk. Immutable; any thread.
class ImageLayout {
 public:
  ImageLayout() = default;
  enum class Copy : std::uint8_t { kFirst, kSecond };
  // `step_bytes` from one extent to the next on a disk, at least 1. The machine places extents, not stripe units.
  // Second copies lie behind all first ones; the placement has two disks or more then.
  ImageLayout(const model::Machine& machine, const geometry::Geometry& image, geometry::Placement placement,
              unsigned disks, std::uint64_t step_bytes, Copy copy = Copy::kFirst);

  const geometry::Placement& placement() const { return placement_; }
  unsigned disk_of(const geometry::Coord& extent, std::uint64_t base) const {
    return copy_ == Copy::kFirst ? geometry::disk_of(placement_, image_rank_, base, extent)
                                 : geometry::second_disk_of(placement_, image_rank_, base, extent);
  }
  // Place of an extent in the sequence of the image's bytes on its disk, where groups never touch: extents are
  // neighbours on the disk if and only if they are neighbours here.
  std::uint64_t offset_of(std::uint64_t extent_number) const;
  // Likewise, of the extent with this number among those of the image on its disk, from 0.
  std::uint64_t offset_of_rank(std::uint64_t rank) const;
  // Extents of a disk before the first of these, at least, and the image's copies on it together, at most.
  std::uint64_t first_rank() const { return before_; }
  // The address on the disk of this place of the sequence, in bytes.
  double address_of(std::uint64_t offset_bytes, unsigned disk) const;

 private:
  void rank_extents(const geometry::Geometry& image, bool as_mount);

  geometry::Placement placement_;
  Copy copy_ = Copy::kFirst;
  std::uint64_t before_ = 0;  // extents of a disk that lie before the first of these
  unsigned image_rank_ = 1;
  unsigned disks_ = 1;
  std::uint64_t step_bytes_ = 1;
  std::uint64_t per_group_ = 0;  // extents; 0: no groups
  double group_bytes_ = 0;
  double capacity_bytes_ = 0;  // of the heads; 0: without heads
  double filled_ = 0;
  // By extent in row-major order: how many stored before it lie on the same disk. Only for images of at most kMaxRanked
  // extents; else extents are taken to go round the disks.
  std::vector<std::uint32_t> rank_;
};

}  // namespace mdfs::sim
