// The data of one open object: its shape, its size and its dirty cache blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/cache/cache_block.h"
#include "engine/locks.h"
#include "engine/options.h"
#include "engine/planned_loads.h"
#include "engine/sync_rhythm.h"
#include "engine/versions.h"
#include "format/extents.h"
#include "geometry/decompose.h"
#include "geometry/extent_grid.h"
#include "geometry/page.h"
#include "layout/groups.h"

namespace mdfs::engine {

// An ordinary file is treated as a rank-1 array of bytes whose extents are its cells. The fields under "constant" never
// change after construction; the others say how they are guarded.
// Lock order, outermost first: range_lock, barrier, publishing, planned_loads.locking, CacheBlock::mutex, state_mutex,
// then the shards of the cache.
class OpenObject : public std::enable_shared_from_this<OpenObject> {
 public:
  OpenObject(const ObjectSpec& spec, InodeUpdate inode_update, std::uint32_t volume_block_size, bool volume_has_strips);

  // ---- constant
  const std::uint64_t number;
  const std::optional<geometry::Geometry> image;  // shape[0] as it was when opened
  const std::shared_ptr<const geometry::Placement> placement;
  const std::uint64_t base;
  const InodeUpdate update;
  const std::uint32_t block_size;
  unsigned rank = 1;
  std::uint32_t extent_bytes = 0;                      // decoded
  std::uint32_t capacity_bytes = 0;                    // decoded bytes of an extent in whole blocks
  std::uint32_t part_bytes = 0;                        // loaded and verified at once: sub-block, block, or the extent
  std::uint64_t max_bytes = geometry::kMaxImageBytes;  // of the file
  bool may_have_strips = false;                        // an image on a volume with strips
  format::ExtentTableShape table;                      // of images
  geometry::PageBox page_box;                          // of images
  layout::Groups groups;

  bool is_image() const { return image.has_value(); }
  bool is_raw() const { return image.has_value() && image->codec == geometry::Codec::kRaw; }
  // The shape of the array once the slab of the extent is full: the shape at the opening, or, for an image that has
  // grown beyond it, up to the end of the extent.
  geometry::ByteGeometry planned_shape(std::uint64_t size_bytes, const geometry::Coord& extent) const;
  // Rank, extent and the faster axes; shape[0] must not be used.
  const geometry::ByteGeometry& array() const { return shape_; }
  // The array of a file of `bytes`; slabs that have begun count as whole.
  geometry::ByteGeometry shape_for(std::uint64_t bytes) const;
  // Bytes of the canonical file in one step of the grid along the slowest axis.
  std::uint64_t grid_row_bytes() const { return slab_bytes_ * shape_.extent[0] / step_bytes_; }
  std::uint64_t extent_index(const geometry::Coord& extent) const { return geometry::extent_index(shape_, extent); }
  geometry::Coord extent_coord(std::uint64_t index) const { return geometry::extent_coord(shape_, index); }
  // Extents of one step of the grid along the slowest axis.
  std::uint64_t extents_in_row() const { return extents_in_row_; }
  // Extents of a page in one step of the grid along the slowest axis: fewer at the image's edges.
  std::uint64_t extents_in_page_row(std::uint64_t page) const;
  // The first byte of the canonical file that can lie in the extent.
  std::uint64_t first_byte_of(std::uint64_t index) const { return index / extents_in_row_ * grid_row_bytes(); }
  // The end of the bytes in the extent's step of the grid along the slowest axis.
  std::uint64_t end_of(std::uint64_t index) const { return first_byte_of(index) + grid_row_bytes(); }
  geometry::PagePlace page_of(const geometry::Coord& extent) const;
  std::uint64_t pages_in_row() const { return pages_in_row_; }
  // The extent whose record is at a place of a page.
  geometry::Coord extent_of(const geometry::PagePlace& place) const {
    return geometry::extent_at(rank, shape_.grid(), page_box, place);
  }
  unsigned placement_disk(const geometry::Coord& extent) const;
  // The byte of an extent at a place inside it.
  std::uint32_t byte_at(const geometry::Coord& in_extent) const {
    std::uint64_t byte = 0;
    for (unsigned axis = 0; axis < rank; ++axis) byte = byte * shape_.extent[axis] + in_extent[axis];
    return static_cast<std::uint32_t>(byte);
  }
  // The offset in the canonical file of a byte of an extent; the byte must lie inside the array.
  std::uint64_t canonical_offset(const geometry::Coord& extent, std::uint32_t byte) const {
    return geometry::canonical_offset(shape_, extent, byte);
  }
  // The end of the contents of [.., end) of the extent, with the padding that follows.
  std::uint32_t end_with_padding(const geometry::Coord& extent, std::uint32_t end) const {
    return geometry::end_with_padding(shape_, extent, end);
  }
  CacheBlockKey key_of(std::uint64_t index) const { return {number, index}; }
  // Bytes of the extent that lie inside an array of this shape; the rest is padding.
  static std::uint64_t bytes_inside(const geometry::ByteGeometry& shape, const geometry::Coord& extent) {
    return geometry::bytes_inside(shape, extent);
  }
  // The disk of the second copy of an extent; that of the extent, if the placement has one disk alone.
  unsigned copy_disk(const geometry::Coord& extent) const;
  // Where a new copy of so many blocks should lie, by the free blocks of the disks (BlockSpace::free_of_disks): where
  // the placement says, or, if one disk has most of the free blocks, there. `taken`: the disks, a bit each, where it
  // cannot lie. The result may be taken: then any other disk will do.
  std::uint16_t disk_for_copy(const geometry::Coord& extent, std::uint64_t blocks, std::uint64_t taken,
                              std::span<const std::uint64_t> free_blocks) const;
  // Of an extent that is written whole, as raw bytes, with its copy if that is wanted.
  std::uint64_t whole_bytes() const;
  // The room for writing so many extents, without their records: with their second copies, if the image has them.
  store::SpaceAmount worst_case_data(std::uint64_t extents) const;
  // The same for so many blocks.
  store::SpaceAmount worst_case_blocks(std::uint64_t blocks) const;
  // The space that the write-back of one extent takes at most: an extent, or so many blocks of a cell. A file that may
  // still be `small` puts its bytes into the tree.
  store::SpaceAmount worst_case(std::uint64_t blocks, bool small) const;

  // ---- any thread
  // Extents and cells that are written from now on get second copies. Changes while writers are at work: an extent may
  // get a copy, or lack one, until Protector has seen it.
  std::atomic<bool> wants_copies{false};
  // Extents that are to share one parity in place of their copies, when they rest. 1: none do.
  std::atomic<unsigned> group_members{1};
  // A stored level: the volume computes from its image what cannot be read. Bytes on a lost disk are therefore an
  // error, also where lost bytes of other objects read as zeros. Set before the first read.
  std::atomic<bool> is_level{false};
  std::atomic<std::uint64_t> size{0};  // bytes; grows while the changed extent is locked, shrinks under `range_lock`
  // The tree has been searched for records beyond the end, which this version never writes. Done before the object
  // first grows.
  std::atomic<bool> end_is_clean{false};
  void grow(std::uint64_t to) {
    std::uint64_t now = size.load(std::memory_order_relaxed);
    while (now < to && !size.compare_exchange_weak(now, to, std::memory_order_acq_rel)) {
    }
  }
  RangeLock range_lock;
  Barrier barrier;  // loads pass; closed while records and cached extents change together
  PlannedLoads planned_loads;
  // Odd while a window write exchanges cached extents, with `swapping` held. A read that sees the number change is
  // repeated.
  std::atomic<std::uint64_t> swaps{0};
  std::mutex swapping;
  Versions versions;  // of windows that are read in parts; added while `swapping` is held
  // Held from before a transaction of this object until the published sizes are noted here. Sizes therefore reach the
  // tree in the order in which they hold. Taken within the barrier, before CacheBlock::mutex.
  std::mutex publishing;
  // The end of the last read, to recognize sequential readers.
  std::atomic<std::uint64_t> last_read_end{0};
  std::atomic<std::uint64_t> read_ahead_to{0};

  mutable std::mutex state_mutex;  // guards all below
  std::map<std::uint64_t, CacheBlockPtr> dirty_cache_blocks;
  std::uint64_t full_bytes = 0;        // of dirty extents that are full
  std::uint64_t full_group_bytes = 0;  // of those in full groups
  struct FullGroup {
    std::uint64_t extents = 0;           // dirty and full
    std::uint64_t full_group_bytes = 0;  // bytes of the group, if all its extents are dirty and full
  };
  std::unordered_map<std::uint64_t, FullGroup> full_groups;  // those with full extents
  void add_full(const geometry::Coord& extent, std::uint64_t extents_in_group);
  void remove_full(const geometry::Coord& extent);
  std::int64_t dirty_since_ns = 0;        // when the first dirty cache block became dirty
  std::int64_t last_dirtied_ns = 0;       // when a cache block last became dirty
  store::Reservation reservation;         // for all dirty extents
  std::optional<Error> error;             // of a write-back, not yet reported
  bool background_failed = false;         // the background leaves the object alone until a caller asks for write-back
  std::uint64_t published_size = 0;       // in the tree
  bool published_inline = false;          // the tree holds the bytes
  bool has_cells = false;                 // the tree holds cells
  SyncRhythm syncs;                       // of programs that append
  std::uint64_t early_bytes = 0;          // written since the last early write-back, while a sync is expected
  std::vector<std::uint64_t> disk_end;    // per disk: end of the last allocation of this object
  std::vector<std::uint64_t> disk_given;  // per disk: blocks allocated since the object was opened

 private:
  geometry::ByteGeometry shape_;  // shape[0] is not used
  std::uint64_t slab_bytes_ = 1;  // one step along the slowest axis in samples
  std::uint64_t step_bytes_ = 1;  // rank 1: extents along the slowest axis are counted in bytes
  std::uint64_t extents_in_row_ = 1;
  std::uint64_t pages_in_row_ = 1;
  std::uint64_t worst_case_blocks_ = 1;  // of one piece
  store::SpaceAmount worst_case_extent_;
  store::SpaceAmount worst_case_copy_;
};

// The places of the bytes of one call: boxes of the array, cut into parts of one extent each.
struct Transfer {
  struct Region {  // a contiguous row-major array in the caller's memory
    geometry::Coord shape{};
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  struct Part {
    std::uint64_t extent = 0;
    std::uint32_t region = 0;
    geometry::Piece piece;
  };
  std::vector<Region> regions;
  std::vector<Part> parts;
};

// Bytes [offset, offset + length) of the canonical file.
Transfer plan_range(const OpenObject& object, std::uint64_t offset, std::uint64_t length);
// The number of parts of plan_range() (saturating).
std::uint64_t count_parts(const OpenObject& object, std::uint64_t offset, std::uint64_t length);
// Bytes [offset, offset + length) of the canonical layout of a box of the image. The channel is not used.
Transfer plan_window(const OpenObject& object, const geometry::Box& box, std::uint64_t offset, std::uint64_t length);
// The number of parts of plan_window() (saturating).
std::uint64_t count_parts(const OpenObject& object, const geometry::Box& box, std::uint64_t offset,
                          std::uint64_t length);
// Whole boxes of the image, each into a region of its own: at the offset given, in its canonical layout.
Transfer plan_boxes(const OpenObject& object, const std::vector<geometry::RangeBox>& boxes);
// The extents that overlap a box of the array.
GridBox extents_under(const OpenObject& object, const geometry::Box& box);

// Copies a part between an extent's buffer and the caller's memory, whose offsets are those of the transfer. An extent
// without a buffer, and bytes beyond its end, read as zeros. copy_in needs a buffer that is large enough.
void copy_out(const OpenObject& object, const Transfer& transfer, const Transfer::Part& part, const BufferRef& buffer,
              MutableBytes into);
void copy_in(const OpenObject& object, const Transfer& transfer, const Transfer::Part& part, ConstBytes from,
             const BufferRef& buffer);

// The byte ranges of the extent under a box inside it, ascending; neighbouring rows are joined.
std::vector<ByteRanges::Range> ranges_under(const OpenObject& object, const geometry::Box& in_extent);
// The whole parts that hold these ranges, ascending; neighbouring parts are joined.
std::vector<ByteRanges::Range> parts_under(const OpenObject& object, const geometry::Box& in_extent);
// True if all bytes under the box are valid. The caller holds the cache block's mutex.
bool covers(const OpenObject& object, const CacheBlock& block, const geometry::Box& in_extent);
// True if the part covers all bytes of its extent that lie inside the array.
bool is_whole(const OpenObject& object, const geometry::ByteGeometry& shape, const Transfer::Part& part);

}  // namespace mdfs::engine
