// The parities of a simulated image: which extents share one, and where it lies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "geometry/decompose.h"
#include "geometry/geometry.h"
#include "geometry/page.h"
#include "geometry/placement.h"

namespace mdfs::sim {

// The places that one piece of work of a mount looks at together: a box of a page, with the extents there.
struct ParityUnit {
  struct Extent {
    unsigned place = 0;
    std::uint32_t number = 0;  // of the image
    geometry::Coord coord{};
  };
  std::uint64_t page = 0;
  std::vector<Extent> extents;  // by place
};

// An image that was written with copies, and has got its parities since, one page after another, as a mount makes them
// when it is idle. Extents that no group takes keep their copies: a group of one. Immutable; any thread.
class ParityLayout {
 public:
  struct Options {
    geometry::Geometry image;
    geometry::Placement placement;  // of 64 disks at most, each with one slot
    std::uint64_t base = 0;         // of the image
    unsigned width = 1;             // extents that are to share a parity
    std::uint64_t checksums = 1;    // of an extent, in its record
    std::uint64_t step_bytes = 1;   // that an extent takes on its disk
  };
  static constexpr std::uint64_t kMostExtents = std::uint64_t{1} << 24;

  ParityLayout() = default;
  // The image has kMostExtents extents at most.
  explicit ParityLayout(const Options& options);

  struct Group {
    std::span<const std::uint32_t> members;  // numbers of extents, ascending by place
    unsigned disk = 0;                       // of the parity, or of the copy of a single member
    std::uint32_t rank = 0;                  // of the piece among all parities and copies on this disk, from 0

    bool is_copy() const { return members.size() == 1; }
  };
  std::size_t groups() const { return groups_.size(); }
  Group group(std::size_t number) const;
  std::uint32_t group_of(std::uint64_t extent) const { return group_of_[extent]; }
  std::uint64_t extents() const { return group_of_.size(); }
  std::uint64_t copies() const { return copies_; }  // groups of one
  // Extents that may share a parity on so many disks.
  unsigned most_members() const { return most_members_; }
  unsigned disk_of(const geometry::Coord& extent) const;       // of its first piece
  unsigned copy_disk_of(const geometry::Coord& extent) const;  // of its copy, as it was written

  // All units, by page and place.
  template <typename Visit>
  void each_unit(Visit visit) const {
    for (std::uint64_t page = 0; page < pages_; ++page)
      for (const std::uint64_t box : boxes_)
        if (ParityUnit unit = unit_of(page, box); !unit.extents.empty()) visit(std::move(unit));
  }

 private:
  struct Stored {
    std::uint32_t first_member = 0;
    std::uint32_t rank = 0;
    std::uint8_t members = 0, disk = 0;
  };
  class Maker;

  ParityUnit unit_of(std::uint64_t page, std::uint64_t places) const;

  geometry::Placement placement_;
  std::uint64_t base_ = 0;
  geometry::ByteGeometry bytes_;
  geometry::Coord grid_{};
  geometry::PageBox page_;
  std::uint64_t pages_ = 0;
  std::vector<std::uint64_t> boxes_;  // of a page, each as places, a bit each
  unsigned most_members_ = 1;
  std::vector<Stored> groups_;
  std::vector<std::uint32_t> members_, group_of_;
  std::uint64_t copies_ = 0;
};

// Blocks that are free on disks of one size: as many as are asked about, less the extents stored.
class FreeRoom {
 public:
  explicit FreeRoom(unsigned disks) : free_(disks, std::uint64_t{1} << 62) {}
  void take(unsigned disk) { --free_[disk]; }
  void give(unsigned disk) { ++free_[disk]; }
  const std::vector<std::uint64_t>& of_disks() const { return free_; }

 private:
  std::vector<std::uint64_t> free_;  // in extents
};

}  // namespace mdfs::sim
