// The data of one open object: shape arithmetic.
// SPDX-License-Identifier: Apache-2.0
#include "engine/open_object.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "codec/codec.h"
#include "geometry/copies.h"
#include "geometry/copy_box.h"
#include "mdfs/ondisk.h"
#include "store/pairs.h"

namespace mdfs::engine {

namespace {

using geometry::Box;
using geometry::ByteGeometry;
using geometry::Coord;

constexpr std::uint64_t kItemOverhead = 64;  // of an item in its leaf, and its header

ByteGeometry file_shape() {
  ByteGeometry shape;
  shape.rank = 1;
  shape.extent[0] = MDFS_FILE_CELL;
  return shape;
}

}  // namespace

OpenObject::OpenObject(const ObjectSpec& spec, InodeUpdate inode_update, std::uint32_t volume_block_size,
                       bool volume_has_strips)
    : number(spec.number),
      image(spec.geometry),
      placement(spec.placement),
      base(spec.base),
      update(std::move(inode_update)),
      block_size(volume_block_size),
      wants_copies(spec.copies),
      group_members(spec.group_members),
      size(spec.size_bytes),
      published_size(spec.size_bytes),
      published_inline(spec.is_inline),
      has_cells(!spec.geometry && !spec.is_inline && spec.size_bytes > 0),
      syncs(spec.size_bytes),
      shape_(spec.geometry ? geometry::byte_geometry(*spec.geometry) : file_shape()) {
  rank = shape_.rank;
  extent_bytes = static_cast<std::uint32_t>(shape_.extent_bytes());
  capacity_bytes = static_cast<std::uint32_t>(align_up(extent_bytes, block_size));
  part_bytes = block_size;
  worst_case_blocks_ = capacity_bytes / block_size;
  if (!image) return;

  slab_bytes_ = image->slab_bytes();
  max_bytes = geometry::max_bytes(*image);
  if (rank == 1) step_bytes_ = image->sample_bytes();
  for (unsigned axis = 1; axis < rank; ++axis) extents_in_row_ *= ceil_div(shape_.shape[axis], shape_.extent[axis]);
  table = {static_cast<std::uint8_t>(image->codec), extent_bytes};
  page_box = geometry::page_box(rank, table.record_bytes());
  MDFS_CHECK(page_box.places == table.places());
  for (unsigned axis = 1; axis < rank; ++axis)
    pages_in_row_ *= ceil_div(ceil_div(shape_.shape[axis], shape_.extent[axis]), page_box.side[axis]);
  may_have_strips = volume_has_strips;
  groups = layout::Groups(rank, shape_.grid(), extent_bytes);
  part_bytes = is_raw() ? std::min<std::uint32_t>(MDFS_SUB_BLOCK, extent_bytes) : extent_bytes;
  worst_case_blocks_ = ceil_div(codec::compress_bound(image->codec, extent_bytes), block_size);
  worst_case_extent_ = {worst_case_blocks_, 1, table.record_bytes() + kItemOverhead};
  if (worst_case_blocks_ > 1) {
    const std::uint64_t runs = worst_case_blocks_ * sizeof(mdfs_extent_run) + kItemOverhead;
    worst_case_extent_ += {0, 1, std::min<std::uint64_t>(runs, MDFS_MAX_ITEM)};
  }
  worst_case_copy_ = worst_case_extent_;
  worst_case_copy_.bytes += sizeof(mdfs_group) + 2 * sizeof(mdfs_parity);  // its own, and one that leaves a group
  worst_case_copy_.pairs = worst_case_blocks_;
}

store::SpaceAmount OpenObject::worst_case(std::uint64_t blocks, bool small) const {
  if (is_image()) {
    store::SpaceAmount amount = worst_case_extent_;
    if (wants_copies.load(std::memory_order_relaxed)) amount += worst_case_copy_;
    return amount;
  }
  // Each block a run of its own, in the middle of one that there was.
  const std::uint64_t runs = blocks * (2 * sizeof(mdfs_file_run) + sizeof(std::uint32_t));
  store::SpaceAmount amount{blocks, 1, (small ? MDFS_MAX_INLINE : runs) + kItemOverhead};
  if (wants_copies.load(std::memory_order_relaxed))
    amount += {blocks, 1, runs + sizeof(mdfs_group) + kItemOverhead, blocks};
  return amount;
}

std::uint64_t OpenObject::whole_bytes() const {
  return std::uint64_t{capacity_bytes} * (wants_copies.load(std::memory_order_relaxed) ? 2 : 1);
}

store::SpaceAmount OpenObject::worst_case_data(std::uint64_t extents) const {
  return worst_case_blocks(extents * worst_case_blocks_);
}

store::SpaceAmount OpenObject::worst_case_blocks(std::uint64_t blocks) const {
  if (!wants_copies.load(std::memory_order_relaxed)) return {blocks, 0, 0};
  return {2 * blocks, 0, 0, blocks};
}

void OpenObject::add_full(const Coord& extent, std::uint64_t extents_in_group) {
  full_bytes += extent_bytes;
  FullGroup& group = full_groups[groups.group_of(extent)];
  if (++group.extents < extents_in_group || group.full_group_bytes > 0) return;
  group.full_group_bytes = group.extents * extent_bytes;
  full_group_bytes += group.full_group_bytes;
}

void OpenObject::remove_full(const Coord& extent) {
  full_bytes -= extent_bytes;
  const auto found = full_groups.find(groups.group_of(extent));
  full_group_bytes -= std::exchange(found->second.full_group_bytes, 0);
  if (--found->second.extents == 0) full_groups.erase(found);
}

ByteGeometry OpenObject::shape_for(std::uint64_t bytes) const {
  ByteGeometry shape = shape_;
  shape.shape[0] = ceil_div(bytes, slab_bytes_) * step_bytes_;
  return shape;
}

ByteGeometry OpenObject::planned_shape(std::uint64_t size_bytes, const Coord& extent) const {
  ByteGeometry shape = shape_for(size_bytes);
  const std::uint64_t planned = shape_.shape[0];
  shape.shape[0] = shape.shape[0] <= planned ? planned : (extent[0] + 1) * shape_.extent[0];
  return shape;
}

geometry::PagePlace OpenObject::page_of(const Coord& extent) const {
  return geometry::page_place(rank, shape_.grid(), page_box, extent);
}

std::uint64_t OpenObject::extents_in_page_row(std::uint64_t page) const {
  const Coord first = extent_of({page, 0});
  std::uint64_t extents = 1;
  for (unsigned axis = 1; axis < rank; ++axis)
    extents *=
        std::min<std::uint64_t>(page_box.side[axis], ceil_div(shape_.shape[axis], shape_.extent[axis]) - first[axis]);
  return extents;
}

unsigned OpenObject::placement_disk(const Coord& extent) const {
  return placement == nullptr ? 0 : geometry::disk_of(*placement, rank, base, extent);
}

unsigned OpenObject::copy_disk(const Coord& extent) const {
  return placement == nullptr ? 0 : geometry::second_disk_of(*placement, rank, base, extent);
}

std::uint16_t OpenObject::disk_for_copy(const Coord& extent, std::uint64_t blocks, std::uint64_t taken,
                                        std::span<const std::uint64_t> free_blocks) const {
  const auto of_pairs = store::disk_of_next_pairs(free_blocks, blocks);
  const bool can_take = of_pairs && (taken >> *of_pairs & 1) == 0;
  return static_cast<std::uint16_t>(can_take ? *of_pairs : copy_disk(extent));
}

namespace {

// Bytes [offset, offset + length) of the canonical layout of a box of the array, as boxes of the array.
std::vector<geometry::RangeBox> boxes_in(const OpenObject& object, const Box& box, std::uint64_t offset,
                                         std::uint64_t length) {
  std::vector<geometry::RangeBox> boxes = geometry::range_boxes(object.rank, box.length, offset, length);
  for (geometry::RangeBox& range : boxes)
    for (unsigned axis = 0; axis < object.rank; ++axis) range.box.start[axis] += box.start[axis];
  return boxes;
}

// The same of the canonical file, whose first axis has no end.
std::vector<geometry::RangeBox> boxes_in_file(const OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  return geometry::range_boxes(object.rank, object.array().shape, offset, length);
}

std::uint64_t count_in(const OpenObject& object, const std::vector<geometry::RangeBox>& boxes) {
  std::uint64_t parts = 0;
  for (const geometry::RangeBox& range : boxes)
    parts = checked_add(parts, geometry::piece_count(object.array(), range.box)).value_or(UINT64_MAX);
  return parts;
}

}  // namespace

Transfer plan_boxes(const OpenObject& object, const std::vector<geometry::RangeBox>& boxes) {
  const ByteGeometry& shape = object.array();
  Transfer transfer;
  transfer.regions.reserve(boxes.size());
  for (const geometry::RangeBox& range : boxes) {
    const Transfer::Region region{range.box.length, range.offset, geometry::box_bytes(object.rank, range.box)};
    const auto number = static_cast<std::uint32_t>(transfer.regions.size());
    transfer.regions.push_back(region);
    const std::vector<geometry::Piece> pieces = geometry::decompose(shape, range.box);
    transfer.parts.reserve(transfer.parts.size() + pieces.size());
    for (const geometry::Piece& piece : pieces)
      transfer.parts.push_back({object.extent_index(piece.extent), number, piece});
  }
  return transfer;
}

Transfer plan_range(const OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  return plan_boxes(object, boxes_in_file(object, offset, length));
}

std::uint64_t count_parts(const OpenObject& object, std::uint64_t offset, std::uint64_t length) {
  return count_in(object, boxes_in_file(object, offset, length));
}

Transfer plan_window(const OpenObject& object, const Box& box, std::uint64_t offset, std::uint64_t length) {
  return plan_boxes(object, boxes_in(object, box, offset, length));
}

std::uint64_t count_parts(const OpenObject& object, const Box& box, std::uint64_t offset, std::uint64_t length) {
  return count_in(object, boxes_in(object, box, offset, length));
}

GridBox extents_under(const OpenObject& object, const Box& box) {
  const ByteGeometry& shape = object.array();
  GridBox extents;
  for (unsigned axis = 0; axis < object.rank; ++axis) {
    extents.first[axis] = box.start[axis] / shape.extent[axis];
    extents.last[axis] = ceil_div(box.start[axis] + box.length[axis], shape.extent[axis]);
  }
  return extents;
}

void copy_out(const OpenObject& object, const Transfer& transfer, const Transfer::Part& part, const BufferRef& buffer,
              MutableBytes into) {
  const Transfer::Region& region = transfer.regions[part.region];
  const MutableBytes target = into.subspan(region.offset, region.bytes);
  const Box& box = part.piece.in_extent;
  if (!buffer)
    return geometry::fill_box(object.rank, box.length, std::byte{0}, target, region.shape, part.piece.in_box);
  if (object.is_image())
    return geometry::copy_box(object.rank, box.length, buffer.bytes(), object.array().extent, box.start, target,
                              region.shape, part.piece.in_box);
  const std::uint64_t stored = buffer.size() > box.start[0] ? std::min(box.length[0], buffer.size() - box.start[0]) : 0;
  std::byte* const to = target.data() + part.piece.in_box[0];
  if (stored > 0) std::memcpy(to, buffer.data() + box.start[0], stored);
  std::memset(to + stored, 0, box.length[0] - stored);
}

void copy_in(const OpenObject& object, const Transfer& transfer, const Transfer::Part& part, ConstBytes from,
             const BufferRef& buffer) {
  const Transfer::Region& region = transfer.regions[part.region];
  geometry::copy_box(object.rank, part.piece.in_extent.length, from.subspan(region.offset, region.bytes), region.shape,
                     part.piece.in_box, buffer.bytes(), object.array().extent, part.piece.in_extent.start);
}

std::vector<ByteRanges::Range> ranges_under(const OpenObject& object, const Box& in_extent) {
  return geometry::byte_runs(object.rank, object.array().extent, in_extent);
}

std::vector<ByteRanges::Range> parts_under(const OpenObject& object, const Box& in_extent) {
  return geometry::part_runs(object.rank, object.array().extent, in_extent, object.part_bytes);
}

bool covers(const OpenObject& object, const CacheBlock& block, const Box& in_extent) {
  if (block.complete) return true;
  if (block.valid.ranges().empty()) return false;
  // Loads make whole parts valid. The rows count where writes have made a piece of a part valid.
  bool all = true;
  for (const ByteRanges::Range& run : parts_under(object, in_extent)) {
    if (block.valid.covers(run.begin, run.end)) continue;
    all = false;
    for (std::uint32_t part = run.begin; part < run.end; part += object.part_bytes)
      if (!block.valid.touches(part, std::min(part + object.part_bytes, run.end))) return false;
  }
  if (all) return true;
  const std::vector<ByteRanges::Range> ranges = ranges_under(object, in_extent);
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](const ByteRanges::Range& range) { return block.valid.covers(range.begin, range.end); });
}

bool is_whole(const OpenObject& object, const ByteGeometry& shape, const Transfer::Part& part) {
  return geometry::box_bytes(object.rank, part.piece.in_extent) >= object.bytes_inside(shape, part.piece.extent);
}

}  // namespace mdfs::engine
