// Making parities in the order of a mount.
// SPDX-License-Identifier: Apache-2.0
#include "sim/parity_layout.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/background_pace.h"
#include "base/check.h"
#include "base/checked.h"
#include "geometry/copies.h"
#include "geometry/extent_grid.h"
#include "geometry/parity_box.h"
#include "geometry/piece_disks.h"

namespace mdfs::sim {

// What a mount has done so far.
class ParityLayout::Maker {
 public:
  explicit Maker(ParityLayout& layout, std::uint64_t step_bytes)
      : layout_(layout),
        step_bytes_(step_bytes),
        room_(layout.placement_.disks),
        pieces_on_(layout.placement_.disks),
        left_copies_(layout.placement_.disks) {
    for (std::uint64_t number = 0; number < layout.extents(); ++number) {
      const geometry::Coord extent = geometry::extent_coord(layout.bytes_, number);
      room_.take(layout.disk_of(extent));
      room_.take(layout.copy_disk_of(extent));
    }
  }

  void add(const ParityUnit& unit) {
    if (unit.page != page_) end_batch();
    page_ = unit.page;
    std::vector<geometry::ExtentOnDisks> extents;
    for (const ParityUnit::Extent& extent : unit.extents)
      extents.push_back({extent.place, std::uint64_t{1} << layout_.disk_of(extent.coord)});
    std::vector<unsigned> new_parities;  // their disks: all of a unit see the same room
    for (const std::uint64_t members : geometry::parity_groups(extents, layout_.most_members_))
      add_group(unit, members, new_parities);
    for (const unsigned disk : new_parities) room_.take(disk);
    if (bytes_ >= kRebuildPieceBytes) end_batch();
  }

 private:
  void add_group(const ParityUnit& unit, std::uint64_t members, std::vector<unsigned>& new_parities) {
    Stored group{.first_member = static_cast<std::uint32_t>(layout_.members_.size())};
    const ParityUnit::Extent* lowest = nullptr;
    std::uint64_t taken = 0;
    for (const ParityUnit::Extent& extent : unit.extents) {
      if ((members >> extent.place & 1) == 0) continue;
      if (lowest == nullptr) lowest = &extent;
      taken |= std::uint64_t{1} << layout_.disk_of(extent.coord);
      layout_.members_.push_back(extent.number);
      layout_.group_of_[extent.number] = static_cast<std::uint32_t>(layout_.groups_.size());
      ++group.members;
    }
    const unsigned copy_disk = layout_.copy_disk_of(lowest->coord);
    if (group.members == 1) {
      group.disk = static_cast<std::uint8_t>(copy_disk);
      ++layout_.copies_;
    } else {
      const auto disks = geometry::disks_by_room(taken, room_.of_disks(), copy_disk);
      MDFS_CHECK(!disks.empty());  // groups leave a disk
      group.disk = static_cast<std::uint8_t>(disks.front());
      new_parities.push_back(group.disk);
      bytes_ += group.members * step_bytes_;
      for (const ParityUnit::Extent& extent : unit.extents)
        if ((members >> extent.place & 1) != 0) ++left_copies_[layout_.copy_disk_of(extent.coord)];
    }
    group.rank = pieces_on_[group.disk]++;
    layout_.groups_.push_back(group);
  }

  // What was made is published, and the copies go.
  void end_batch() {
    bytes_ = 0;
    for (unsigned disk = 0; disk < left_copies_.size(); ++disk)
      for (std::uint32_t& left = left_copies_[disk]; left > 0; --left) room_.give(disk);
  }

  ParityLayout& layout_;
  const std::uint64_t step_bytes_;
  FreeRoom room_;
  std::vector<std::uint32_t> pieces_on_;
  std::vector<std::uint32_t> left_copies_;  // of groups that have not been published yet
  std::uint64_t page_ = 0, bytes_ = 0;
};

ParityLayout::ParityLayout(const Options& options)
    : placement_(options.placement),
      base_(options.base),
      bytes_(geometry::byte_geometry(options.image)),
      grid_(options.image.grid()),
      page_(geometry::page_box(options.image.rank, geometry::record_bytes(options.checksums))),
      most_members_(
          geometry::most_group_members(options.width, options.image.extent_bytes(), options.placement.disks)) {
  const std::uint64_t extents = geometry::extent_count(bytes_.rank, grid_);
  MDFS_CHECK(extents <= kMostExtents && options.placement.disks >= 2 && options.placement.disks <= 64);
  pages_ = 1;
  for (unsigned axis = 0; axis < bytes_.rank; ++axis) pages_ *= ceil_div(grid_[axis], page_.side[axis]);
  const geometry::Coord box = geometry::parity_box(bytes_.rank, grid_, page_, std::bit_floor(most_members_));
  for (std::uint64_t seen = 0; std::popcount(seen) < static_cast<int>(page_.places); seen |= boxes_.back())
    boxes_.push_back(geometry::places_of_box(bytes_.rank, page_, box, static_cast<unsigned>(std::countr_one(seen))));
  group_of_.resize(extents);
  Maker maker(*this, options.step_bytes);
  each_unit([&](const ParityUnit& unit) { maker.add(unit); });
}

ParityLayout::Group ParityLayout::group(std::size_t number) const {
  const Stored& stored = groups_[number];
  return {std::span(members_).subspan(stored.first_member, stored.members), stored.disk, stored.rank};
}

unsigned ParityLayout::disk_of(const geometry::Coord& extent) const {
  return geometry::disk_of(placement_, bytes_.rank, base_, extent);
}

unsigned ParityLayout::copy_disk_of(const geometry::Coord& extent) const {
  return geometry::second_disk_of(placement_, bytes_.rank, base_, extent);
}

ParityUnit ParityLayout::unit_of(std::uint64_t page, std::uint64_t places) const {
  ParityUnit unit{page, {}};
  for (; places != 0; places &= places - 1) {
    const auto place = static_cast<unsigned>(std::countr_zero(places));
    const geometry::Coord extent = geometry::extent_at(bytes_.rank, grid_, page_, {page, place});
    bool inside = true;
    for (unsigned axis = 0; axis < bytes_.rank; ++axis) inside = inside && extent[axis] < grid_[axis];
    if (inside)
      unit.extents.push_back({place, static_cast<std::uint32_t>(geometry::extent_index(bytes_, extent)), extent});
  }
  return unit;
}

}  // namespace mdfs::sim
